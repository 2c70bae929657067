// SPDX-License-Identifier: Apache-2.0
// Turns the facts of a project into edits of its files, each with its place, level and reason, and
// into refusals with a reason. Nothing here is measured or written.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/edit.h"
#include "config/schema.h"
#include "project/facts.h"
#include "project/source_edit.h"
#include "project/watched_calls.h"

namespace saturate {

struct FileEdit {
    std::string file;
    std::optional<SourceEdit> source;  // either `source` or `config` is set
    std::optional<Edit> config;
    bool operator==(const FileEdit&) const = default;
};

struct FixProposal {
    std::string id;             // "num_workers", "num_workers-2"
    std::string setting;        // name in settings.md
    SourcePlace at;             // place of the change
    Level level = Level::safe;  // by the catalogue of remedies
    std::string before;         // empty: the setting is not there
    std::string after;
    std::string reason;
    std::string expected = {};    // expected effect; empty: the catalogue's text
    std::vector<FileEdit> edits;  // all of them or none
    std::string apply;            // word for `run --apply`; empty: not possible there
    int call = -1;                // the call that it changes
    int loop = -1;                // the loop that it changes
    // The setting of another proposal that may gain only together with this one. Without it this
    // one is useless.
    std::string room_for = {};
};

struct FixRefusal {
    SourcePlace at;
    std::string setting;
    std::string why;
};

struct FixPlan {
    std::vector<FixProposal> proposals;
    std::vector<FixRefusal> refused;
    std::vector<FixProposal> above_level;  // possible, but above the allowed level
};

// The machine that the job runs on.
struct FixMachine {
    int workers = 1;          // suitable for a loader (remedies/catalogue.h)
    bool is_watched = false;  // true: `workers` is from the measured need of this job's loader
    bool has_bf16 = true;     // of the GPU; true if there is none
    int cores = 0;            // that the job may use; 0: unknown
    int threads = 0;  // suitable for computing on the CPU, from a watched run; 0: no change ...
    std::string threads_why = {};      // ... and why
    bool threads_for_workers = false;  // the threads make room for proposed workers
    WatchedCalls watched = {};         // empty: no run
    bool waits_for_data = false;       // in a watched run, long enough to be worth a change
};

struct FixQuestion {
    std::filesystem::path folder = ".";  // the folder that the command runs in
    Level level = Level::numerics;       // how far a change may go
};

[[nodiscard]] FixPlan plan_fixes(const ProjectFacts& facts, const FixMachine& machine,
                                 const FixQuestion& question);

}  // namespace saturate
