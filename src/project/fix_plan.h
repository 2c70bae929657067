// SPDX-License-Identifier: Apache-2.0
// From the facts of a project to edits of its files, each with its place, level and reason, and
// what is left alone and why. Nothing here is measured or written.
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
    std::optional<SourceEdit> source;  // one of the two
    std::optional<Edit> config;
};

struct FixProposal {
    std::string id;             // "num_workers", "num_workers-2"
    std::string setting;        // as settings.md names it
    SourcePlace at;             // what is changed
    Level level = Level::safe;  // by the catalogue of remedies
    std::string before;         // empty: not there
    std::string after;
    std::string reason;
    std::string expected = {};    // empty: as the catalogue says
    std::vector<FileEdit> edits;  // together or not at all
    std::string apply;            // `run --apply` puts it in force by this word; empty: it cannot
    int call = -1;                // the call it is about
    int loop = -1;                // the loop it is in
    // The setting of another proposal that this one makes room for: worth nothing without that one.
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
    std::vector<FixProposal> above_level;  // possible, but the level does not allow them
};

// The machine that the job runs on.
struct FixMachine {
    int workers = 1;          // that a loader should have (remedies/catalogue.h)
    bool is_watched = false;  // ... by what the loader of this job was measured to need
    bool has_bf16 = true;     // of the GPU that is there; true where none is
    int cores = 0;            // that the job may use; 0: not known
    int threads = 0;          // that should compute on the CPU, by a watched run; 0: as it is ...
    std::string threads_why = {};  // ... and why
    bool threads_for_workers = false;  // ... beside workers that are to be there
    WatchedCalls watched = {};     // empty: nothing was run
    bool waits_for_data = false;   // by a watched run, long enough to be worth a change
};

struct FixQuestion {
    std::filesystem::path folder = ".";  // that the command runs in
    Level level = Level::numerics;       // how far a change may go
};

[[nodiscard]] FixPlan plan_fixes(const ProjectFacts& facts, const FixMachine& machine,
                                 const FixQuestion& question);

}  // namespace saturate
