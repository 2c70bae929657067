// SPDX-License-Identifier: Apache-2.0
#include "train_places.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "process/run_folder.h"
#include "telemetry/record_json.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void throw_no_checkpoint(const fs::path& where) {
    throw UserError({.where = {where.string()},
                     .found = "there is no checkpoint to resume from",
                     .expected = "a run folder with checkpoints, or one of its checkpoints",
                     .fix = "leave --resume out to start from the beginning"});
}

// Returns how the run in `folder` was started, or nullopt if it is not a run of `train`.
std::optional<RunInfo> run_of(const fs::path& folder) {
    try {
        fs::path file = folder / "run.json";
        RunInfo info = info_of(Json::parse(read_file(file, 64 << 20, "a run"), file.string()));
        if (info.kind == "train") return info;
    } catch (const UserError&) {
        // the folder holds something else
    }
    return std::nullopt;
}

// True if the run uses this configuration. Both paths are relative to the working folder, which
// also holds the folders of the runs.
bool is_of(const RunInfo& run, const std::string& config) {
    std::error_code ignored;
    return fs::weakly_canonical(run.settings_source, ignored) ==
           fs::weakly_canonical(config, ignored);
}

// Returns the newest run of this configuration; runs with a checkpoint take precedence.
std::optional<fs::path> newest_run(const fs::path& runs, const std::string& config) {
    struct Candidate {
        bool has_checkpoint = false;
        std::int64_t started_ns = 0;
        fs::path path;
        auto operator<=>(const Candidate&) const = default;
    };
    std::optional<Candidate> best;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(runs, error)) {
        std::optional<RunInfo> run = run_of(entry.path());
        if (!run || !is_of(*run, config)) continue;
        Candidate one{!list_checkpoints(entry.path() / "checkpoints").empty(), run->started_wall_ns,
                      entry.path()};
        if (!best || *best < one) best = one;
    }
    if (!best) return std::nullopt;
    return best->path;
}

std::vector<std::string> values_in(const std::vector<std::string>& command) {
    std::vector<std::string> out;
    for (std::size_t i = 0; i + 1 < command.size(); ++i) {
        if (command[i] == "--set") out.push_back(command[++i]);
    }
    return out;
}

// Returns the folder of the run to resume and fills in its checkpoint and lock.
fs::path resumed_run(const PlaceWish& wish, RunPlaces& out) {
    fs::path run = wish.output;
    if (*wish.resume == "auto" || wish.resume->empty()) {
        if (run.empty()) {
            auto newest = newest_run(kRunsFolder, wish.config);
            if (!newest) throw_no_checkpoint(kRunsFolder);
            run = *newest;
        }
        if (!wish.bare && fs::exists(run / "checkpoints"))
            out.lock = CheckpointLock(run / "checkpoints");
        out.found = find_checkpoint(run / "checkpoints");
        // It is fine if the run was killed before its first checkpoint, or never started: scripts
        // pass --resume without checking.
        bool is_nothing = !fs::exists(run) || fs::is_empty(run);
        if (!out.found && !is_nothing && !run_of(run)) throw_no_checkpoint(run);
        return run;
    }
    fs::path given = *wish.resume;
    bool is_checkpoint = fs::exists(given / "state.json");
    if (run.empty())
        run = is_checkpoint ? fs::weakly_canonical(given).parent_path().parent_path() : given;
    if (!wish.bare && fs::exists(run / "checkpoints"))
        out.lock = CheckpointLock(run / "checkpoints");
    if (is_checkpoint)
        out.found = FoundCheckpoint{given, read_checkpoint(given), {}};
    else
        out.found = find_checkpoint(given / "checkpoints");
    if (!out.found) throw_no_checkpoint(given);
    return run;
}

}  // namespace

RunPlaces choose_places(const PlaceWish& wish) {
    RunPlaces out;
    if (!wish.resume) {
        out.record = wish.output.empty() ? new_run_folder(fs::path(wish.config).stem().string())
                                         : fs::path(wish.output);
        out.checkpoints = out.record / "checkpoints";
        return out;
    }
    fs::path run = resumed_run(wish, out);
    out.checkpoints = run / "checkpoints";
    std::optional<RunInfo> begun = run_of(run);
    if (out.found) {
        for (const Json& value : out.found->checkpoint.facts["set"].items())
            out.values.push_back(value.string().value_or(""));
    } else if (begun) {
        out.values = values_in(begun->command);
        out.notes.push_back(
            fmt::format("{} has no checkpoint yet: starting from the beginning", run.string()));
    }
    if (begun && !is_of(*begun, wish.config))
        out.notes.push_back(
            fmt::format("{} was started with {}", run.string(), begun->settings_source));
    out.record = run;
    for (int n = 1; fs::exists(out.record) && !fs::is_empty(out.record); ++n)
        out.record = run / fmt::format("resumed_{}", n);
    return out;
}

std::vector<std::string> joined_values(const std::vector<std::string>& earlier,
                                       const std::vector<std::string>& newer) {
    auto key = [](const std::string& value) { return value.substr(0, value.find('=')); };
    std::vector<std::string> out;
    for (const std::string& value : earlier) {
        bool again = std::ranges::any_of(
            newer, [&](const std::string& other) { return key(other) == key(value); });
        if (!again) out.push_back(value);
    }
    out.insert(out.end(), newer.begin(), newer.end());
    return out;
}

}  // namespace saturate
