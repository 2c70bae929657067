// SPDX-License-Identifier: Apache-2.0
#include "report/run_shelf.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "telemetry/record_json.h"
#include "telemetry/trial_note.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestHead = 64u << 20;
constexpr std::size_t kMostFolders = 10'000;
constexpr std::size_t kViewsKept = 16;
constexpr std::int64_t kQuietNs = 30'000'000'000;  // a run that wrote in this time is running

constexpr const char* kHeads[] = {"run.json", "summary.json"};
constexpr const char* kBodies[] = {"steps.jsonl", "samples.jsonl", "events.jsonl", "python.json"};

struct FileState {
    bool is_there = false;
    bool is_foreign = false;  // a link, pipe or folder, which must not be read
    std::string version;
    std::int64_t changed_ns = 0;
};

FileState state_of(const fs::path& path) {
    struct stat found {};
    if (::lstat(path.c_str(), &found) != 0) return {};
    std::int64_t changed =
        std::int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec;
    return {.is_there = true,
            .is_foreign = !S_ISREG(found.st_mode),
            .version = fmt::format("{:x}.{:x}-", found.st_size, changed),
            .changed_ns = changed};
}

// Returns a digest that is short enough for a page and its address.
std::string digest(std::string_view text) { return fmt::format("{:016x}", fnv1a(text)); }

}  // namespace

std::string ShelfRun::group() const {
    std::size_t slash = id.rfind('/');
    return slash == std::string::npos ? "" : id.substr(0, slash);
}

std::string ShelfRun::name() const {
    std::string place = id == "." ? run_folder_name(folder) : id;
    return title.empty() ? place : fmt::format("{}, {}", title, place);
}

const ShelfRun* Listing::find(std::string_view id) const {
    auto found = std::ranges::find(runs, id, &ShelfRun::id);
    return found == runs.end() ? nullptr : &*found;
}

const ShelfRun* Listing::newest() const {
    auto running = std::ranges::find(runs, true, &ShelfRun::is_running);
    if (running != runs.end()) return &*running;
    return runs.empty() ? nullptr : &runs.front();
}

RunShelf::RunShelf(fs::path folder, std::vector<std::string> only)
    : folder_(std::move(folder)), only_(std::move(only)) {}

std::shared_ptr<const Listing> RunShelf::scan() {
    auto out = std::make_shared<Listing>();
    folders_seen_ = 0;
    if (only_.empty()) look(folder_, ".", 0, *out);
    for (const std::string& name : only_) look(folder_ / name, name, 1, *out);
    std::ranges::sort(out->runs, [](const ShelfRun& a, const ShelfRun& b) {
        if (a.started_wall_ns != b.started_wall_ns) return a.started_wall_ns > b.started_wall_ns;
        return a.id < b.id;
    });
    std::string all;
    std::set<std::string> ids;
    for (const ShelfRun& run : out->runs) {
        all += run.id + run.state + heads_[run.id].version;
        ids.insert(run.id);
    }
    out->version = digest(all);
    std::erase_if(heads_, [&](const auto& entry) { return !ids.contains(entry.first); });
    return out;
}

void RunShelf::look(const fs::path& folder, const std::string& id, int depth, Listing& out) {
    if (out.runs.size() >= kMostRuns || ++folders_seen_ > kMostFolders) {
        out.is_cut = true;
        return;
    }
    std::string heads, all;
    std::int64_t changed_ns = 0;
    bool is_run = false, is_foreign = false;
    for (const char* name : kHeads) {
        FileState state = state_of(folder / name);
        is_run = is_run || (state.is_there && name == kHeads[0]);
        is_foreign = is_foreign || state.is_foreign;
        heads += state.version + ";";
    }
    if (is_run) {
        FileState note = state_of(trial_note_file(folder));
        is_foreign = is_foreign || note.is_foreign;
        heads += note.version + ";";
        for (const char* name : kBodies) {
            FileState state = state_of(folder / name);
            is_foreign = is_foreign || state.is_foreign;
            all += state.version + ";";
            changed_ns = std::max(changed_ns, state.changed_ns);
        }
        changed_ns = std::max(changed_ns, state_of(folder / kHeads[0]).changed_ns);
    }
    if (is_run && !is_foreign) {
        ShelfRun run = described(folder, id, heads);
        run.is_running = run.state.empty() && wall_ns() - changed_ns < kQuietNs;
        if (run.state.empty()) run.state = run.is_running ? "running" : "stopped";
        run.version = digest(heads + all + run.state);
        out.runs.push_back(std::move(run));
    }
    if (depth >= kDepth) return;
    std::error_code error;
    std::vector<std::string> below;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        std::error_code ignored;
        std::string name = entry->path().filename().string();
        bool is_folder = entry->symlink_status(ignored).type() == fs::file_type::directory;
        if (is_folder && !name.starts_with('.') && name != "checkpoints" && name != "tensorboard")
            below.push_back(std::move(name));
    }
    std::ranges::sort(below);
    for (const std::string& name : below)
        look(folder / name, id == "." ? name : id + "/" + name, depth + 1, out);
}

// Describes a run from its run.json and summary.json; reads them again if one of them has changed.
ShelfRun RunShelf::described(const fs::path& folder, const std::string& id,
                             const std::string& head_version) {
    Head& head = heads_[id];
    if (head.version == head_version) return head.run;
    ShelfRun run{.id = id, .folder = folder};
    auto parsed = [&](const char* name) {
        try {
            return Json::parse(read_file(folder / name, kLargestHead, "a part of a run record"),
                               name);
        } catch (const Failure&) {
            return Json();  // missing, or just being written
        }
    };
    RunInfo info = info_of(parsed(kHeads[0]));
    run.kind = info.kind;
    run.device = info.device;
    run.simulated = info.simulated;
    run.started_wall_ns = info.started_wall_ns;
    if (Json json = parsed(kHeads[1]); json.is_object()) {
        RunSummary summary = summary_of(json);
        run.state = summary.ended.empty() ? "done" : summary.ended;
        run.verdict = summary.verdict;
        run.seconds = static_cast<double>(summary.duration_ns) / 1e9;
        run.busy_percent = summary.busy_percent;
        if (summary.samples_per_second) run.samples_per_second = summary.samples_per_second->rate;
    }
    TrialNote note = read_trial_note(folder);
    run.title = note.name;
    if (!note.outcome.empty()) run.state = note.outcome;
    head = {head_version, run};
    return run;
}

std::shared_ptr<const RunView> RunShelf::view(const ShelfRun& run) {
    Viewed& kept = views_[run.id];
    kept.used = ++uses_;
    if (kept.view && kept.version == run.version) return kept.view;
    try {
        if (!kept.viewer || kept.started_wall_ns != run.started_wall_ns ||
            kept.viewer->has_shrunk())
            kept.viewer = std::make_unique<RunViewer>(run.folder);
        kept.started_wall_ns = run.started_wall_ns;
        auto fresh = std::make_shared<RunView>(kept.viewer->view(!run.is_running));
        if (run.is_running) {
            // A running job has no summary yet, and some files appear later.
            std::erase_if(fresh->notes, [](const std::string& note) {
                return note.find(": not found") != std::string::npos;
            });
        } else {
            kept.viewer = nullptr;
        }
        kept.version = run.version;
        kept.view = std::move(fresh);
    } catch (...) {
        views_.erase(run.id);
        throw;
    }
    std::shared_ptr<const RunView> out = kept.view;
    if (views_.size() > kViewsKept) {
        views_.erase(std::ranges::min_element(views_, {},
                                              [](const auto& entry) { return entry.second.used; }));
    }
    return out;
}

}  // namespace saturate
