// SPDX-License-Identifier: Apache-2.0
#include "telemetry/sampler.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "telemetry/record_json.h"

namespace saturate {

Deadlines::Deadlines(std::int64_t start_ns, double interval_seconds)
    : start_ns_(start_ns), interval_ns_(interval_seconds * 1e9) {}

std::int64_t Deadlines::next(std::int64_t now_ns) {
    ++index_;
    double passed = static_cast<double>(now_ns - start_ns_) / interval_ns_;
    auto current = static_cast<std::uint64_t>(std::max(0.0, std::floor(passed)));
    // A tick that is late by less than an interval is taken at once; older ones are skipped.
    if (current > index_) {
        lost_ += current - index_;
        index_ = current;
    }
    return start_ns_ +
           static_cast<std::int64_t>(std::llround(static_cast<double>(index_) * interval_ns_));
}

namespace {

constexpr double kMediumSeconds = 2, kProcessSeconds = 5;

// Values that this reading did not ask for keep their last reading.
void hold(DeviceSample& shown, const DeviceSample& reading) {
    DeviceSample before = std::move(shown);
    shown = reading;
    if (reading.fault) return;
    for (const DeviceField& field : device_fields()) {
        if (field.real && !(shown.*field.real)) shown.*field.real = before.*field.real;
        if (field.count && !(shown.*field.count)) shown.*field.count = before.*field.count;
    }
    if (!shown.performance_state) shown.performance_state = before.performance_state;
    if (!shown.processes) shown.processes = std::move(before.processes);
}

}  // namespace

Sampler::Sampler(const SamplerSettings& settings, DeviceReader* reader, HostSampler* host,
                 std::string devices_absent_because, Recorder& recorder)
    : settings_(settings), reader_(reader), host_(host), recorder_(recorder) {
    snapshot_.interval_seconds = settings_.interval_seconds;
    snapshot_.devices_absent_because = std::move(devices_absent_because);
    if (!reader_) return;
    const GpuDriver& driver = reader_->driver();
    snapshot_.driver_version = driver.driver_version;
    if (settings_.gpus.empty()) {
        for (const GpuIdentity& gpu : driver.gpus) settings_.gpus.push_back(gpu.index);
    }
    for (int index : settings_.gpus) {
        if (index < 0 || static_cast<std::size_t>(index) >= driver.gpus.size()) {
            throw UserError({.found = fmt::format("no GPU {}", index),
                             .expected = driver.gpus.empty()
                                             ? "a machine with a GPU"
                                             : fmt::format("0 to {}", driver.gpus.size() - 1)});
        }
        snapshot_.gpus.push_back(driver.gpus[static_cast<std::size_t>(index)]);
        snapshot_.devices.push_back({.gpu = index});
    }
    if (driver.gpus.empty() && snapshot_.devices_absent_because.empty()) {
        snapshot_.devices_absent_because = "there is a driver, but no GPU";
    }
    lost_.assign(settings_.gpus.size(), false);
}

// Allows half an interval of tolerance, so that "every 2 s" holds if a tick comes after 1.999 s.
bool Sampler::is_due(std::int64_t& last_ns, std::int64_t time_ns, double every_seconds) const {
    double since = static_cast<double>(time_ns - last_ns) / 1e9;
    if (last_ns >= 0 && since < every_seconds - settings_.interval_seconds / 2) return false;
    last_ns = time_ns;
    return true;
}

const Snapshot& Sampler::tick(std::int64_t time_ns, std::int64_t wall_ns, bool is_last) {
    if (snapshot_.tick++ == 0) snapshot_.started_ns = time_ns;
    snapshot_.time_ns = time_ns;
    snapshot_.wall_ns = wall_ns;
    readings_.clear();
    if (reader_) read_devices(time_ns, is_last);
    if (host_) {
        snapshot_.host = host_->sample(time_ns);
        recorder_.host(snapshot_.host);
    }
    return snapshot_;
}

void Sampler::read_devices(std::int64_t time_ns, bool is_last) {
    ReadTiers tiers{.medium = is_due(last_medium_ns_, time_ns, kMediumSeconds),
                    .processes = is_due(last_processes_ns_, time_ns, kProcessSeconds)};
    // Activity is measured between two readings; reading at the second tick gives it to short runs.
    if (snapshot_.tick == 2 || is_last) {
        tiers.medium = true;
        last_medium_ns_ = time_ns;
    }
    for (std::size_t i = 0; i < settings_.gpus.size(); ++i) {
        DeviceSample reading = reader_->read(settings_.gpus[i], tiers);
        tell_losses(i, reading);
        recorder_.device(reading);
        hold(snapshot_.devices[i], reading);
        readings_.push_back(std::move(reading));
    }
    if (tiers.processes) {
        if (host_) {
            snapshot_.processes = host_->rows(readings_, time_ns);
        } else {
            snapshot_.processes.clear();
            for (const DeviceSample& reading : readings_) {
                if (!reading.processes) continue;
                for (const GpuProcess& process : *reading.processes) {
                    snapshot_.processes.push_back({.gpu = reading.gpu, .process = process});
                }
            }
        }
    }
    snapshot_.driver_calls = reader_->driver_calls();
}

void Sampler::tell_losses(std::size_t position, const DeviceSample& reading) {
    bool is_lost = reading.fault.has_value();
    if (is_lost == lost_[position]) return;
    lost_[position] = is_lost;
    recorder_.event({.kind = is_lost ? EventKind::gpu_lost : EventKind::note,
                     .time_ns = reading.time_ns,
                     .text = is_lost ? fmt::format("GPU {}: {}", reading.gpu, *reading.fault)
                                     : fmt::format("GPU {} answers again", reading.gpu),
                     .values = Json::object({{"gpu", reading.gpu}})});
}

}  // namespace saturate
