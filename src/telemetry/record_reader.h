// SPDX-License-Identifier: Apache-2.0
// Reads a run record, complete or cut off. Returns everything up to the cut and lists missing or
// odd parts in `notes`.
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
    Json python;                        // python.json of a Python process; null if there is none
    std::optional<RunSummary> summary;  // absent if the run did not end properly
    std::vector<std::string> notes;     // cut lines, time going backwards, missing files
    // The account of every step and event, if the lists hold only some of them (run_gather.h).
    std::optional<Account> account;
};

// Returns the account over every step, however the record was read.
[[nodiscard]] Account account_of(const RunRecord& record);

// True if the folder has a run.json.
[[nodiscard]] bool is_run_record(const std::filesystem::path& folder);

// Throws UserError if there is no record or it has a newer schema.
[[nodiscard]] RunRecord read_run(const std::filesystem::path& folder);

// The same, line by line, for records larger than memory. Unset functions skip their lines.
struct RunVisitor {
    std::function<void(const StepRecord&)> step;
    std::function<void(const DeviceSample&)> device;
    std::function<void(const HostSample&)> host;
    std::function<void(const EventRecord&)> event;
};
// Fills everything in the result except its lists.
[[nodiscard]] RunRecord visit_run(const std::filesystem::path& folder, const RunVisitor& visitor);

// Follows a record while it is being written: each call visits the lines added since the last one.
// Used from one thread.
class RunFollower {
  public:
    RunFollower(std::filesystem::path folder, RunVisitor visitor);
    ~RunFollower();
    RunFollower(RunFollower&&) noexcept;

    // Leaves an incomplete last line for the next call; if `is_end`, counts it as cut off. Throws
    // like visit_run().
    [[nodiscard]] RunRecord catch_up(bool is_end);
    // True if a file is now shorter than the part already read: another run took the folder.
    [[nodiscard]] bool has_shrunk() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
