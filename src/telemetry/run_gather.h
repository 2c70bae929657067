// SPDX-License-Identifier: Apache-2.0
// Reads a run record of any length into bounded memory: the account of every step and event, and a
// few thousand entries of each list, spread evenly over the run. `diagnose`, `report` and `serve`
// all read records this way, so that their figures agree. Used from one thread.
#pragma once

#include <filesystem>
#include <map>

#include "telemetry/account.h"
#include "telemetry/record_reader.h"
#include "telemetry/thinned.h"

namespace saturate {

class RunGather {
  public:
    // Returns a visitor that gathers the values of a record and then also calls `also`.
    [[nodiscard]] RunVisitor visitor(RunVisitor also = {});

    // Fills the gathered values into a record from visit_run() or RunFollower.
    [[nodiscard]] RunRecord fill(RunRecord record) const;

    [[nodiscard]] std::int64_t events_left_out() const;

  private:
    RunAccount account_;
    Thinned<StepRecord> steps_{20'000};
    Thinned<DeviceSample> devices_{4'000};
    Thinned<HostSample> hosts_{4'000};
    // By kind, so that rare events are not lost among frequent ones.
    std::map<EventKind, Thinned<EventRecord>> events_;
};

// Throws like read_run().
[[nodiscard]] RunRecord gather_run(const std::filesystem::path& folder);

}  // namespace saturate
