// SPDX-License-Identifier: Apache-2.0
// The answer of `fix`: the facts, the proposals with their outcomes, and the patch.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "project/fix_patch.h"

namespace saturate {

enum class FixResult {
    not_tried,
    kept,
    no_gain,
    slower,
    not_proven,  // it gained in its trial
    not_needed,  // another kept change does the same
    not_in_force,
    changed_training,
    failed
};
[[nodiscard]] std::string_view result_name(FixResult result);  // "not tried"

struct FixOutcome {
    FixResult result = FixResult::not_tried;
    std::optional<double> ratio;  // of the rates: after over before
    std::string note;
    bool lacks_time = false;  // not tried, and a longer budget would try it
};

// A value that the watched run read from the device.
struct WatchedRead {
    std::string file;  // relative to the job's folder; a file elsewhere has its full path
    int line = 0;
    std::string what;  // item, cpu, ...
    bool per_step = false;
    double ms_per_step = 0;
};
// The reads that waited for a device, from the python.json of a run of the job in `folder`.
[[nodiscard]] std::vector<WatchedRead> watched_reads(const Json& python,
                                                     const std::filesystem::path& folder);
// A place as the user of the job in `folder` names it: "/home/me/job/train.py:41 (<module>)" of a
// job in /home/me/job becomes "train.py:41".
[[nodiscard]] std::string place_in(const std::filesystem::path& folder, const std::string& where);

struct FixAnswer {
    ProjectFacts facts;
    FixPlan plan;
    FixPatch patch;
    std::string patch_file;  // empty: no patch was written
    Level level = Level::numerics;
    std::map<std::string, FixOutcome> outcomes;  // by the proposal's id
    std::vector<WatchedRead> watched;            // empty: no run, or nothing waited
    std::string longer;             // "20m": a budget for what lacks time; empty: unknown, or hours
    bool batch_lacks_time = false;  // the search for another batch size
    bool is_interrupted = false;    // by Ctrl-C, before everything was tried

    [[nodiscard]] FixOutcome outcome(const FixProposal& proposal) const;
    // The settings that were not tried for lack of time.
    [[nodiscard]] std::vector<std::string> untried() const;
    [[nodiscard]] bool has_training() const;  // the source has a loop, a loader or a trainer
};

// Places that wait in every step or in some steps, one per line of a file.
[[nodiscard]] std::vector<const FactWait*> said_waits(const ProjectFacts& facts);
// Places that wait if the code that gets the tensor reads it: a logger, an `if`.
[[nodiscard]] std::vector<const FactWait*> possible_waits(const ProjectFacts& facts);
// Settings reported as without effect. Leaves out those that the source does not settle.
[[nodiscard]] std::vector<const FactWithoutEffect*> said_without_effect(const ProjectFacts& facts);
[[nodiscard]] std::string wait_words(const FactWait& wait);  // "read for logging"

[[nodiscard]] Json to_json(const FixAnswer& answer);  // docs/json.md, section fix

}  // namespace saturate
