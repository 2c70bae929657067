// SPDX-License-Identifier: Apache-2.0
// A run record of any length in bounded memory: the account of every step and event, and of its
// lists some thousand entries, evenly over the run. `diagnose`, `report` and `serve` read records
// in this way, so that they cannot differ. One thread.
#pragma once

#include <filesystem>
#include <map>

#include "telemetry/account.h"
#include "telemetry/record_reader.h"
#include "telemetry/thinned.h"

namespace saturate {

class RunGather {
  public:
    // Counts the values of a record from here on; `also` is called besides.
    [[nodiscard]] RunVisitor visitor(RunVisitor also = {});

    // What was gathered, put into a record that visit_run or RunFollower gave.
    [[nodiscard]] RunRecord fill(RunRecord record) const;

    [[nodiscard]] std::int64_t events_left_out() const;

  private:
    RunAccount account_;
    Thinned<StepRecord> steps_{20'000};
    Thinned<DeviceSample> devices_{4'000};
    Thinned<HostSample> hosts_{4'000};
    // By kind: what is rare is not lost among what is frequent.
    std::map<EventKind, Thinned<EventRecord>> events_;
};

// Throws as read_run does.
[[nodiscard]] RunRecord gather_run(const std::filesystem::path& folder);

}  // namespace saturate
