// SPDX-License-Identifier: Apache-2.0
// Reads a run record, also one that was cut off: everything up to the cut is there, and what is
// missing or odd is said in `notes`.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "telemetry/account.h"
#include "telemetry/record.h"
#include "telemetry/sample.h"

namespace saturate {

struct RunRecord {
    RunInfo info;
    std::vector<StepRecord> steps;
    std::vector<DeviceSample> devices;
    std::vector<HostSample> hosts;
    std::vector<EventRecord> events;
    Json python;                        // what a Python process told (python.json); null: none did
    std::optional<RunSummary> summary;  // absent: the run did not come to its end
    std::vector<std::string> notes;     // cut lines, time going backwards, missing files
    // Of every step and event, where the lists hold only some of them (run_gather.h).
    std::optional<Account> account;
};

// How fast the run was and what it waited for: from every step, whichever way it was read.
[[nodiscard]] Account account_of(const RunRecord& record);

// True for a folder that has a run.json.
[[nodiscard]] bool is_run_record(const std::filesystem::path& folder);

// Throws UserError: no record there, or written by a newer schema.
[[nodiscard]] RunRecord read_run(const std::filesystem::path& folder);

// The same, line by line, for records larger than memory. Unset functions skip their lines.
struct RunVisitor {
    std::function<void(const StepRecord&)> step;
    std::function<void(const DeviceSample&)> device;
    std::function<void(const HostSample&)> host;
    std::function<void(const EventRecord&)> event;
};
// `info`, `summary` and `notes` of the answer are filled, its lists are empty.
[[nodiscard]] RunRecord visit_run(const std::filesystem::path& folder, const RunVisitor& visitor);

// A record while it is being written: each call visits what has come since the last one. One
// thread.
class RunFollower {
  public:
    RunFollower(std::filesystem::path folder, RunVisitor visitor);
    ~RunFollower();
    RunFollower(RunFollower&&) noexcept;

    // Half a line waits for its end, unless this is the end: then it counts as cut off. Throws as
    // visit_run does.
    [[nodiscard]] RunRecord catch_up(bool is_end);
    // A file is shorter than what was read of it: another run took the folder.
    [[nodiscard]] bool has_shrunk() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
