// SPDX-License-Identifier: Apache-2.0
#include "report/prometheus.h"

#include <fmt/format.h>

#include <functional>
#include <optional>

namespace saturate {

namespace {

using MaybeNumber = std::optional<double>;

// Escapes backslash, quote and line feed; no other character needs it inside a label.
std::string escaped(std::string_view text) {
    std::string out;
    for (char c : text) {
        if (c == '\\' || c == '"') out += '\\';
        if (c == '\n')
            out += "\\n";
        else
            out += c;
    }
    return out;
}

std::string gpu_labels(const GpuIdentity& gpu) {
    return fmt::format("gpu=\"{}\",uuid=\"{}\"", gpu.index, escaped(gpu.uuid));
}

template <typename T>
MaybeNumber scaled(const std::optional<T>& value, double factor) {
    if (!value) return std::nullopt;
    return static_cast<double>(*value) * factor;
}

// Turns percent into a ratio. Divides, so that 96 becomes 0.96 and not 0.9600000000000001.
MaybeNumber ratio(const std::optional<double>& percent) {
    if (!percent) return std::nullopt;
    return *percent / 100;
}

struct Family {
    const char* name;
    const char* type;
    const char* help;
};

struct GpuFamily : Family {
    MaybeNumber (*value)(const DeviceSample&);
};

constexpr double kMega = 1e6, kNano = 1e-9;

const std::vector<GpuFamily>& gpu_families() {
    using S = const DeviceSample&;
    static const std::vector<GpuFamily> kFamilies = {
        {{"saturate_gpu_utilization_ratio", "gauge",
          "Share of time in which any kernel was resident."},
         [](S s) { return ratio(s.utilization_percent); }},
        {{"saturate_gpu_memory_utilization_ratio", "gauge",
          "Share of time in which memory was read or written."},
         [](S s) { return ratio(s.memory_utilization_percent); }},
        {{"saturate_gpu_sm_active_ratio", "gauge", "Share of the multiprocessors that had work."},
         [](S s) { return ratio(s.sm_active_percent); }},
        {{"saturate_gpu_sm_occupancy_ratio", "gauge",
          "Resident warps as a share of the most possible."},
         [](S s) { return ratio(s.sm_occupancy_percent); }},
        {{"saturate_gpu_tensor_active_ratio", "gauge",
          "Share of time in which tensor cores were busy."},
         [](S s) { return ratio(s.tensor_active_percent); }},
        {{"saturate_gpu_dram_active_ratio", "gauge",
          "Share of time in which the memory interface was busy."},
         [](S s) { return ratio(s.dram_active_percent); }},
        {{"saturate_gpu_memory_total_bytes", "gauge", "Memory of the GPU."},
         [](S s) { return scaled(s.memory_total_bytes, 1); }},
        {{"saturate_gpu_memory_used_bytes", "gauge",
          "Memory in use, without what the driver reserves."},
         [](S s) { return scaled(s.memory_used_bytes, 1); }},
        {{"saturate_gpu_memory_reserved_bytes", "gauge", "Memory that the driver reserves."},
         [](S s) { return scaled(s.memory_reserved_bytes, 1); }},
        {{"saturate_gpu_power_watts", "gauge", "Power draw."}, [](S s) { return s.power_watts; }},
        {{"saturate_gpu_power_limit_watts", "gauge", "Enforced power limit."},
         [](S s) { return s.power_limit_watts; }},
        {{"saturate_gpu_energy_joules_total", "counter", "Energy since the driver was loaded."},
         [](S s) { return s.energy_joules; }},
        {{"saturate_gpu_temperature_celsius", "gauge", "Temperature of the chip."},
         [](S s) { return s.temperature_celsius; }},
        {{"saturate_gpu_memory_temperature_celsius", "gauge", "Temperature of the memory."},
         [](S s) { return s.memory_temperature_celsius; }},
        {{"saturate_gpu_sm_clock_hertz", "gauge", "Clock of the multiprocessors."},
         [](S s) { return scaled(s.clock_sm_mhz, kMega); }},
        {{"saturate_gpu_memory_clock_hertz", "gauge", "Clock of the memory."},
         [](S s) { return scaled(s.clock_memory_mhz, kMega); }},
        {{"saturate_gpu_pcie_transmit_bytes_total", "counter",
          "Bytes that the GPU sent over PCIe, since the monitor began."},
         [](S s) { return scaled(s.pcie_tx_bytes, 1); }},
        {{"saturate_gpu_pcie_receive_bytes_total", "counter",
          "Bytes that the GPU received over PCIe, since the monitor began."},
         [](S s) { return scaled(s.pcie_rx_bytes, 1); }},
        {{"saturate_gpu_nvlink_transmit_bytes_total", "counter",
          "Bytes sent over NVLink, since the monitor began."},
         [](S s) { return scaled(s.nvlink_tx_bytes, 1); }},
        {{"saturate_gpu_nvlink_receive_bytes_total", "counter",
          "Bytes received over NVLink, since the monitor began."},
         [](S s) { return scaled(s.nvlink_rx_bytes, 1); }},
        {{"saturate_gpu_ecc_uncorrected_total", "counter",
          "Uncorrected memory errors since the driver was loaded."},
         [](S s) { return scaled(s.ecc_uncorrected, 1); }},
    };
    return kFamilies;
}

constexpr Family kInfo{"saturate_gpu_info", "gauge", "Always 1; who the GPU is."};
constexpr Family kUp{"saturate_gpu_up", "gauge", "1 while the GPU answers, 0 when it is lost."};
constexpr Family kThrottle{"saturate_gpu_throttle_seconds_total", "counter",
                           "Time with clocks held down, by reason, since the driver was loaded."};
constexpr Family kProcess{"saturate_gpu_process_memory_bytes", "gauge",
                          "Memory of a process on a GPU."};

struct HostFamily : Family {
    MaybeNumber (*value)(const Snapshot&);
};

const std::vector<HostFamily>& host_families() {
    using S = const Snapshot&;
    static const std::vector<HostFamily> kFamilies = {
        {{"saturate_host_cpu_ratio", "gauge", "Busy share of all cores."},
         [](S s) { return ratio(s.host.cpu_percent); }},
        {{"saturate_host_io_wait_ratio", "gauge", "Share of all cores that waited for a disk."},
         [](S s) { return ratio(s.host.io_wait_percent); }},
        {{"saturate_host_memory_total_bytes", "gauge", "Memory of the host."},
         [](S s) { return scaled(s.host.memory_total_bytes, 1); }},
        {{"saturate_host_memory_available_bytes", "gauge", "Memory that programs can still get."},
         [](S s) { return scaled(s.host.memory_available_bytes, 1); }},
        {{"saturate_job_cpu_cores", "gauge", "Cores that the watched process tree uses."},
         [](S s) { return s.host.tree ? ratio(s.host.tree->cpu_percent) : MaybeNumber{}; }},
        {{"saturate_job_loader_workers", "gauge",
          "Loader workers recognised in the watched process tree."},
         [](S s) {
             return s.host.tree ? MaybeNumber(s.host.tree->loader_workers) : MaybeNumber{};
         }},
        {{"saturate_job_read_bytes_total", "counter",
          "Bytes that the watched process tree read from disk."},
         [](S s) { return s.host.tree ? scaled(s.host.tree->read_bytes, 1) : MaybeNumber{}; }},
        {{"saturate_monitor_ticks_total", "counter", "Readings taken."},
         [](S s) { return MaybeNumber(static_cast<double>(s.tick + 1)); }},
        {{"saturate_monitor_late_ticks_total", "counter", "Readings that came too late."},
         [](S s) { return MaybeNumber(static_cast<double>(s.late_ticks)); }},
        {{"saturate_monitor_driver_calls_total", "counter", "Calls into the GPU's driver."},
         [](S s) { return MaybeNumber(static_cast<double>(s.driver_calls)); }},
        {{"saturate_monitor_cpu_cores", "gauge", "Cores that the monitor itself uses."},
         [](S s) { return ratio(s.host.own_cpu_percent); }},
        {{"saturate_monitor_memory_bytes", "gauge", "Resident memory of the monitor itself."},
         [](S s) { return scaled(s.host.own_memory_bytes, 1); }},
    };
    return kFamilies;
}

class FamilyWriter {
  public:
    // The head of a family is written with its first value, so that no family is empty.
    void begin(const Family& family) {
        family_ = &family;
        is_open_ = false;
    }
    void add(const std::string& labels, const MaybeNumber& value) {
        if (!value) return;
        if (!is_open_) {
            out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", family_->name, family_->help,
                               family_->name, family_->type);
            is_open_ = true;
        }
        out += labels.empty() ? fmt::format("{} {}\n", family_->name, *value)
                              : fmt::format("{}{{{}}} {}\n", family_->name, labels, *value);
    }
    std::string out;

  private:
    const Family* family_ = nullptr;
    bool is_open_ = false;
};

void write_throttle(FamilyWriter& writer, const std::string& labels, const ThrottleTimes& times) {
    const std::pair<const char*, const std::optional<std::uint64_t>&> kReasons[] = {
        {"power_cap", times.power_cap_ns},
        {"sync_boost", times.sync_boost_ns},
        {"software_thermal", times.software_thermal_ns},
        {"hardware_thermal", times.hardware_thermal_ns},
        {"power_brake", times.power_brake_ns},
    };
    for (const auto& [reason, ns] : kReasons)
        writer.add(fmt::format("{},reason=\"{}\"", labels, reason), scaled(ns, kNano));
}

}  // namespace

std::string prometheus_text(const Snapshot& snapshot) {
    FamilyWriter writer;
    std::vector<std::string> labels;
    for (const GpuIdentity& gpu : snapshot.gpus) labels.push_back(gpu_labels(gpu));
    std::size_t count = std::min(snapshot.devices.size(), labels.size());

    writer.begin(kInfo);
    for (std::size_t i = 0; i < labels.size(); ++i) {
        writer.add(fmt::format("{},name=\"{}\",pci_bus_id=\"{}\",driver=\"{}\"", labels[i],
                               escaped(snapshot.gpus[i].name), escaped(snapshot.gpus[i].pci_bus_id),
                               escaped(snapshot.driver_version.value_or(""))),
                   1.0);
    }
    writer.begin(kUp);
    for (std::size_t i = 0; i < count; ++i)
        writer.add(labels[i], snapshot.devices[i].fault ? 0.0 : 1.0);
    for (const GpuFamily& family : gpu_families()) {
        writer.begin(family);
        for (std::size_t i = 0; i < count; ++i)
            writer.add(labels[i], family.value(snapshot.devices[i]));
    }
    writer.begin(kThrottle);
    for (std::size_t i = 0; i < count; ++i)
        write_throttle(writer, labels[i], snapshot.devices[i].throttle);
    writer.begin(kProcess);
    for (const ProcessRow& row : snapshot.processes) {
        writer.add(fmt::format("gpu=\"{}\",pid=\"{}\",user=\"{}\",slurm_job=\"{}\"", row.gpu,
                               row.process.pid, escaped(row.user.value_or("")),
                               escaped(row.slurm_job.value_or(""))),
                   scaled(row.process.memory_bytes, 1));
    }
    for (const HostFamily& family : host_families()) {
        writer.begin(family);
        writer.add("", family.value(snapshot));
    }
    return writer.out;
}

std::vector<std::string> prometheus_names() {
    std::vector<std::string> names{kInfo.name, kUp.name, kThrottle.name, kProcess.name};
    for (const GpuFamily& family : gpu_families()) names.emplace_back(family.name);
    for (const HostFamily& family : host_families()) names.emplace_back(family.name);
    return names;
}

}  // namespace saturate
