// SPDX-License-Identifier: Apache-2.0
#include "cuda/nvml_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace saturate {

namespace {

// Field ids of NVML.
enum : unsigned {
    kFieldEccUncorrected = 4,
    kFieldPowerCap = 74,
    kFieldSyncBoost = 76,
    kFieldMemoryTemperature = 82,
    kFieldEnergy = 83,
    kFieldNvlinkTx = 138,
    kFieldNvlinkRx = 139,
    kFieldPowerAverage = 185,
    kFieldPowerInstant = 186,
    kFieldPowerLimit = 190,
    kFieldPcieTx = 197,
    kFieldPcieRx = 198,
    kFieldSoftwareThermal = 269,
    kFieldHardwareThermal = 270,
    kFieldPowerBrake = 271,
};
constexpr unsigned kAllLinks = ~0u;
constexpr unsigned kClockSm = 1, kClockMemory = 2;
constexpr unsigned kSamplesUtilization = 1;

// GPM metric ids.
enum : unsigned { kGpmSm = 2, kGpmOccupancy = 3, kGpmTensor = 5, kGpmDram = 10 };
constexpr unsigned kGpmIds[] = {kGpmSm, kGpmOccupancy, kGpmTensor, kGpmDram};

// True if asking again would give the same answer.
bool is_final(int code) {
    return code == kNvmlNotSupported || code == kNvmlFunctionNotFound ||
           code == kNvmlInvalidArgument;
}

// State per GPU between two readings.
struct GpuState {
    std::vector<NvmlField> fields;  // the fields that the GPU supports
    std::set<std::string> useless;  // calls that the GPU does not support
    std::map<unsigned, WrappingCounter> counters;
    std::int64_t ring_seen_us = 0;
    std::int64_t shares_seen_us = 0;
    std::optional<double> clock_sm_max_mhz;
    bool lost = false;
    bool has_mps = false;
    std::uint64_t slow_readings = 0;
};

class NvmlReader final : public DeviceReader {
  public:
    NvmlReader(std::unique_ptr<NvmlCalls> calls, std::function<std::int64_t()> now,
               std::int64_t wall_us)
        : calls_(std::move(calls)), now_(std::move(now)), driver_(nvml_driver(*calls_)) {
        GpuState fresh;
        for (unsigned id :
             {kFieldPowerAverage, kFieldPowerInstant, kFieldPowerLimit, kFieldEnergy,
              kFieldMemoryTemperature, kFieldPowerCap, kFieldSyncBoost, kFieldSoftwareThermal,
              kFieldHardwareThermal, kFieldPowerBrake, kFieldPcieTx, kFieldPcieRx, kFieldNvlinkTx,
              kFieldNvlinkRx, kFieldEccUncorrected}) {
            bool by_link = id == kFieldNvlinkTx || id == kFieldNvlinkRx;
            fresh.fields.push_back({.id = id, .scope = by_link ? kAllLinks : 0});
        }
        fresh.ring_seen_us = fresh.shares_seen_us = wall_us;
        states_.assign(driver_.gpus.size(), fresh);
    }

    [[nodiscard]] const GpuDriver& driver() const override { return driver_; }
    [[nodiscard]] std::uint64_t driver_calls() const override { return calls_->calls(); }
    DeviceSample read(int gpu, ReadTiers tiers) override;

  private:
    // One reading of one GPU in progress.
    struct Reading {
        int gpu;
        GpuState& state;
        DeviceSample& sample;
        bool mig;
    };

    // Returns false if the GPU is lost; the rest of the reading is then skipped.
    bool note(Reading& r, int code) {
        if (code != kNvmlGpuIsLost) return true;
        std::int64_t time = r.sample.time_ns;
        r.sample = {.gpu = r.gpu, .time_ns = time, .fault = calls_->error_text(code)};
        r.state.lost = true;
        return false;
    }

    // Asks, unless the call is known to be unsupported.
    template <typename Ask>
    auto ask(Reading& r, const char* name, Ask ask) -> decltype(ask()) {
        if (r.state.useless.contains(name)) return {kNvmlNotSupported, {}};
        auto answer = ask();
        if (is_final(answer.code)) r.state.useless.insert(name);
        return answer;
    }
    NvmlAnswer<std::uint64_t> number(Reading& r, const char* name, NvmlNumber what,
                                     unsigned arg = 0) {
        return ask(r, name, [&] { return calls_->number(r.gpu, what, arg); });
    }

    bool read_counters(Reading& r);
    bool read_fields(Reading& r);
    void take_field(Reading& r, const NvmlField& field);
    bool read_medium(Reading& r);
    bool read_slow(Reading& r);
    void read_shares(Reading& r);

    std::unique_ptr<NvmlCalls> calls_;
    std::function<std::int64_t()> now_;
    GpuDriver driver_;
    std::vector<GpuState> states_;
};

DeviceSample NvmlReader::read(int gpu, ReadTiers tiers) {
    DeviceSample sample{.gpu = gpu, .time_ns = now_()};
    if (gpu < 0 || static_cast<std::size_t>(gpu) >= states_.size()) {
        sample.fault = fmt::format("no GPU {}", gpu);
        return sample;
    }
    const GpuIdentity& identity = driver_.gpus[static_cast<std::size_t>(gpu)];
    Reading r{gpu, states_[static_cast<std::size_t>(gpu)], sample, identity.mig.value_or(false)};
    bool unreachable = identity.fault && identity.name.empty();
    if (unreachable || (r.state.lost && !tiers.processes)) {
        sample.fault = identity.fault.value_or(calls_->error_text(kNvmlGpuIsLost));
        return sample;
    }
    r.state.lost = false;
    bool alive = read_counters(r) && read_fields(r);
    if (alive && tiers.medium) alive = read_medium(r);
    if (alive && tiers.processes) alive = read_slow(r);
    sample.took_ns = std::max<std::int64_t>(0, now_() - sample.time_ns);
    return sample;
}

bool NvmlReader::read_counters(Reading& r) {
    DeviceSample& s = r.sample;
    if (!r.mig) {
        auto rates = ask(r, "rates", [&] { return calls_->rates(r.gpu); });
        if (!note(r, rates.code)) return false;
        if (rates.ok()) {
            s.utilization_percent = static_cast<double>(rates.value.gpu);
            s.memory_utilization_percent = static_cast<double>(rates.value.memory);
        }
    }
    auto memory = ask(r, "memory", [&] { return calls_->memory(r.gpu); });
    if (!note(r, memory.code)) return false;
    if (memory.ok()) {
        s.memory_total_bytes = memory.value.total;
        s.memory_used_bytes = memory.value.used;
        s.memory_reserved_bytes = memory.value.reserved;
    }
    return true;
}

void NvmlReader::take_field(Reading& r, const NvmlField& field) {
    DeviceSample& s = r.sample;
    auto count = static_cast<std::uint64_t>(field.whole);
    bool narrow = field.type == 1;
    auto counted = [&](std::uint64_t unit) {
        return r.state.counters[field.id].add(count, narrow) * unit;
    };
    switch (field.id) {
        case kFieldEccUncorrected:
            s.ecc_uncorrected = count;
            break;
        case kFieldPowerCap:
            s.throttle.power_cap_ns = count;
            break;
        case kFieldSyncBoost:
            s.throttle.sync_boost_ns = count;
            break;
        case kFieldSoftwareThermal:
            s.throttle.software_thermal_ns = count;
            break;
        case kFieldHardwareThermal:
            s.throttle.hardware_thermal_ns = count;
            break;
        case kFieldPowerBrake:
            s.throttle.power_brake_ns = count;
            break;
        case kFieldMemoryTemperature:
            if (field.real > 0) s.memory_temperature_celsius = field.real;
            break;
        case kFieldEnergy:
            s.energy_joules = field.real / 1e3;
            break;
        case kFieldPowerAverage:
            s.power_watts = field.real / 1e3;
            break;
        case kFieldPowerInstant:
            s.power_instant_watts = field.real / 1e3;
            break;
        case kFieldPowerLimit:
            s.power_limit_watts = field.real / 1e3;
            break;
        case kFieldPcieTx:
            s.pcie_tx_bytes = counted(1);
            break;
        case kFieldPcieRx:
            s.pcie_rx_bytes = counted(1);
            break;
        case kFieldNvlinkTx:
            s.nvlink_tx_bytes = counted(1024);
            break;
        case kFieldNvlinkRx:
            s.nvlink_rx_bytes = counted(1024);
            break;
        default:
            break;
    }
}

// Reads many values in one call. If the driver lacks an important one, makes the
// separate call for it.
bool NvmlReader::read_fields(Reading& r) {
    DeviceSample& s = r.sample;
    if (!r.state.fields.empty()) {
        int code = calls_->fields(r.gpu, r.state.fields);
        if (!note(r, code)) return false;
        for (const NvmlField& field : r.state.fields) {
            if (!note(r, field.code)) return false;
            if (field.code == kNvmlSuccess) take_field(r, field);
        }
        std::erase_if(r.state.fields, [](const NvmlField& field) { return is_final(field.code); });
    }
    if (!s.power_watts) s.power_watts = s.power_instant_watts;
    if (!s.power_watts) {
        auto power = number(r, "power", NvmlNumber::power_usage);
        if (!note(r, power.code)) return false;
        if (power.ok()) s.power_watts = static_cast<double>(power.value) / 1e3;
    }
    return true;
}

bool NvmlReader::read_medium(Reading& r) {
    DeviceSample& s = r.sample;
    auto temperature = number(r, "temperature", NvmlNumber::temperature);
    if (!note(r, temperature.code)) return false;
    if (temperature.ok()) s.temperature_celsius = static_cast<double>(temperature.value);
    auto clock = number(r, "clock", NvmlNumber::clock, kClockSm);
    if (clock.ok()) s.clock_sm_mhz = static_cast<double>(clock.value);
    if (!r.state.clock_sm_max_mhz) {
        auto most = number(r, "max clock", NvmlNumber::max_clock, kClockSm);
        if (most.ok()) r.state.clock_sm_max_mhz = static_cast<double>(most.value);
    }
    s.clock_sm_max_mhz = r.state.clock_sm_max_mhz;
    // If available, the counters of throttled time say more than the reasons at this moment.
    if (!s.throttle.power_cap_ns) {
        auto reasons = number(r, "reasons", NvmlNumber::clocks_event_reasons);
        if (reasons.ok()) s.throttle_reasons = reasons.value;
    }
    if (r.mig) return true;  // MIG instances have no utilisation by design
    auto ring = ask(r, "ring", [&] {
        return calls_->samples(r.gpu, kSamplesUtilization, r.state.ring_seen_us);
    });
    if (!note(r, ring.code)) return false;
    for (const NvmlTimed& entry : ring.value) {  // empty if the GPU is idle: NOT_FOUND
        if (entry.value < 0 || entry.value > 100) continue;
        s.utilization_ring.push_back({entry.wall_us, entry.value});
        r.state.ring_seen_us = std::max(r.state.ring_seen_us, entry.wall_us);
    }
    auto activity = ask(r, "activity", [&] { return calls_->activity(r.gpu, kGpmIds); });
    for (const NvmlMetric& metric : activity.value) {
        bool sound = metric.code == kNvmlSuccess && metric.value >= 0 && metric.value <= 100.5;
        if (!sound) continue;
        double percent = std::min(metric.value, 100.0);
        if (metric.id == kGpmSm) s.sm_active_percent = percent;
        if (metric.id == kGpmOccupancy) s.sm_occupancy_percent = percent;
        if (metric.id == kGpmTensor) s.tensor_active_percent = percent;
        if (metric.id == kGpmDram) s.dram_active_percent = percent;
    }
    return true;
}

bool NvmlReader::read_slow(Reading& r) {
    DeviceSample& s = r.sample;
    if (!s.power_limit_watts) {
        auto limit = number(r, "limit", NvmlNumber::enforced_power_limit);
        if (limit.ok()) s.power_limit_watts = static_cast<double>(limit.value) / 1e3;
    }
    auto clock = number(r, "memory clock", NvmlNumber::clock, kClockMemory);
    if (!note(r, clock.code)) return false;
    if (clock.ok()) s.clock_memory_mhz = static_cast<double>(clock.value);
    // Only if no field has the energy: a few readings of this counter are enough for the increase.
    if (!s.energy_joules) {
        auto energy = number(r, "energy", NvmlNumber::total_energy);
        if (energy.ok()) s.energy_joules = static_cast<double>(energy.value) / 1e3;
    }
    // Values that hardly ever matter are read only every second time.
    bool rare = r.state.slow_readings++ % 2 == 0;
    if (rare) {
        auto state = number(r, "state", NvmlNumber::performance_state);
        if (state.ok() && state.value <= 15) s.performance_state = static_cast<int>(state.value);
    }
    if (!s.throttle_reasons) {
        auto reasons = number(r, "reasons", NvmlNumber::clocks_event_reasons);
        if (reasons.ok()) s.throttle_reasons = reasons.value;
    }
    constexpr std::pair<GpuProcessKind, const char*> kKinds[] = {
        {GpuProcessKind::compute, "compute"},
        {GpuProcessKind::mps, "mps"},
        {GpuProcessKind::graphics, "graphics"}};
    for (const auto& [kind, name] : kKinds) {
        if (kind == GpuProcessKind::mps && !rare && !r.state.has_mps) continue;
        auto list = ask(r, name, [&, kind = kind] { return calls_->processes(r.gpu, kind); });
        if (!note(r, list.code)) return false;
        if (!list.ok()) continue;
        if (!s.processes) s.processes.emplace();
        if (kind == GpuProcessKind::mps) r.state.has_mps = !list.value.empty();
        for (const NvmlProcess& process : list.value) {
            bool known = std::ranges::any_of(
                *s.processes, [&](const GpuProcess& other) { return other.pid == process.pid; });
            if (process.pid <= 0 || known) continue;  // may be in both compute and graphics
            s.processes->push_back(
                {.pid = process.pid, .kind = kind, .memory_bytes = process.used_bytes});
        }
    }
    if (s.processes && !s.processes->empty()) read_shares(r);
    return true;
}

// Takes the newest share of each process. The driver also returns old entries, shares over 100 %
// and processes that ended long ago.
void NvmlReader::read_shares(Reading& r) {
    std::int64_t since = r.state.shares_seen_us;
    auto shares = ask(r, "shares", [&] { return calls_->process_shares(r.gpu, since); });
    std::map<std::int64_t, std::int64_t> newest;
    for (const NvmlProcessShare& share : shares.value) {
        if (share.wall_us <= since || share.sm > 100) continue;
        r.state.shares_seen_us = std::max(r.state.shares_seen_us, share.wall_us);
        for (GpuProcess& process : *r.sample.processes) {
            if (process.pid != share.pid || newest[share.pid] > share.wall_us) continue;
            newest[share.pid] = share.wall_us;
            process.sm_percent = share.sm;
        }
    }
}

}  // namespace

std::uint64_t WrappingCounter::add(std::uint64_t raw, bool narrow) {
    constexpr std::uint64_t kNarrow = std::uint64_t{1} << 32;
    // More than any link transfers between two readings: the counter was reset, it did not wrap.
    constexpr std::uint64_t kImplausible = std::uint64_t{1} << 46;
    if (last_) {
        std::uint64_t step = raw - *last_;  // also correct across a 64-bit wrap
        if (raw < *last_ && (narrow || *last_ < kNarrow)) step = raw + kNarrow - *last_;
        if (step > kImplausible) step = raw;
        total_ += step;
    }
    last_ = raw;
    return total_;
}

GpuDriver nvml_driver(NvmlCalls& calls) {
    const NvmlSystem& system = calls.system();
    GpuDriver driver{.driver_version = system.driver};
    if (system.cuda)
        driver.cuda_version = fmt::format("{}.{}", *system.cuda / 1000, *system.cuda % 1000 / 10);
    for (int gpu = 0; gpu < system.gpus; ++gpu) driver.gpus.push_back(calls.identity(gpu).gpu);
    return driver;
}

std::unique_ptr<DeviceReader> make_nvml_reader(std::unique_ptr<NvmlCalls> calls,
                                               std::function<std::int64_t()> now,
                                               std::int64_t wall_us_at_start) {
    return std::make_unique<NvmlReader>(std::move(calls), std::move(now), wall_us_at_start);
}

}  // namespace saturate
