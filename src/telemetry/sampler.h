// SPDX-License-Identifier: Apache-2.0
// Reads the GPUs and the host once per tick, some values less often (in tiers), and keeps a
// snapshot with the last reading of each value. The caller passes the time, so that tests and
// recordings run without waiting. Used from one thread.
#pragma once

#include <vector>

#include "telemetry/host_sampler.h"
#include "telemetry/recorder.h"
#include "telemetry/sample.h"

namespace saturate {

// Absolute deadlines: tick n is due at start + n * interval, however long earlier ticks took.
class Deadlines {
  public:
    Deadlines(std::int64_t start_ns, double interval_seconds);
    // Returns when the next tick is due. Skips and counts deadlines that are an interval or more
    // late.
    [[nodiscard]] std::int64_t next(std::int64_t now_ns);
    [[nodiscard]] std::uint64_t lost() const { return lost_; }

  private:
    std::int64_t start_ns_;
    double interval_ns_;
    std::uint64_t index_ = 0;
    std::uint64_t lost_ = 0;
};

struct SamplerSettings {
    double interval_seconds = 1;
    std::vector<int> gpus;  // indices; empty: all
};

class Sampler {
  public:
    // `reader` and `host` may be null; their values are then unknown. They and `recorder` must
    // outlive the sampler. Throws UserError for a GPU that does not exist.
    Sampler(const SamplerSettings& settings, DeviceReader* reader, HostSampler* host,
            std::string devices_absent_because, Recorder& recorder);

    // Takes one tick at this time. The last tick reads all values, due or not, so that the end of
    // the run is complete.
    const Snapshot& tick(std::int64_t time_ns, std::int64_t wall_ns, bool is_last = false);
    [[nodiscard]] const Snapshot& snapshot() const { return snapshot_; }
    // Returns the readings of this tick without kept values, one per watched GPU.
    [[nodiscard]] const std::vector<DeviceSample>& readings() const { return readings_; }
    void note_late(std::uint64_t lost) { snapshot_.late_ticks = lost; }

  private:
    [[nodiscard]] bool is_due(std::int64_t& last_ns, std::int64_t time_ns,
                              double every_seconds) const;
    void read_devices(std::int64_t time_ns, bool is_last);
    void tell_losses(std::size_t position, const DeviceSample& reading);

    SamplerSettings settings_;
    DeviceReader* reader_;
    HostSampler* host_;
    Recorder& recorder_;
    Snapshot snapshot_;
    std::vector<DeviceSample> readings_;
    std::vector<bool> lost_;
    std::int64_t last_medium_ns_ = -1, last_processes_ns_ = -1;
};

}  // namespace saturate
