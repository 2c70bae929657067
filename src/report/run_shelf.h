// SPDX-License-Identifier: Apache-2.0
// Finds the run records below a folder, for a server that shows them. The name of a run is its path
// below the folder, and requests look it up in the list: a name from a client never becomes a path.
// Links are not followed, so nothing outside the folder is read. Call scan() from one thread and
// view() from one other thread; a Listing is immutable.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/run_view.h"

namespace saturate {

struct ShelfRun {
    std::string id;     // "before", "tune-1/trial-3"; "." is the folder itself
    std::string title;  // purpose of a trial, "num_workers=4"; else empty
    std::filesystem::path folder;
    std::string version;  // changes if the files change
    bool is_running = false;
    std::string state;  // running, done, interrupted, failed, stopped (without a summary); of a
                        // trial the outcome: measured, out of memory
    std::string kind, device, verdict;
    bool simulated = false;
    std::int64_t started_wall_ns = 0;
    std::optional<double> seconds, samples_per_second, busy_percent;

    // Returns the folder that the run shares with others, "tune-1", or "".
    [[nodiscard]] std::string group() const;
    // Returns the name in lists and reports: "num_workers=4, tune-1/trial-3".
    [[nodiscard]] std::string name() const;
};

struct Listing {
    std::vector<ShelfRun> runs;  // newest first
    std::string version;         // changes if the shown content changes
    bool is_cut = false;         // there are more runs than listed

    [[nodiscard]] const ShelfRun* find(std::string_view id) const;
    [[nodiscard]] const ShelfRun* newest() const;  // prefers a running one
};

class RunShelf {
  public:
    // Looks below `folder`, or only in the folders `only` of it. The folder may appear later.
    explicit RunShelf(std::filesystem::path folder, std::vector<std::string> only = {});

    [[nodiscard]] std::shared_ptr<const Listing> scan();
    // Reads a run once per version; of a running job it reads only the new part. Keeps the last few
    // views. Throws UserError for a record that cannot be read.
    [[nodiscard]] std::shared_ptr<const RunView> view(const ShelfRun& run);

    static constexpr std::size_t kMostRuns = 1000;
    static constexpr int kDepth = 3;

  private:
    struct Head {
        std::string version;  // of run.json, summary.json and the note of a trial
        ShelfRun run;
    };
    void look(const std::filesystem::path& folder, const std::string& id, int depth, Listing& out);
    ShelfRun described(const std::filesystem::path& folder, const std::string& id,
                       const std::string& head_version);

    std::filesystem::path folder_;
    std::vector<std::string> only_;
    std::map<std::string, Head> heads_;
    std::size_t folders_seen_ = 0;

    struct Viewed {
        std::string version;
        std::shared_ptr<const RunView> view;
        std::unique_ptr<RunViewer> viewer;  // while the job runs
        std::int64_t started_wall_ns = 0;   // of the run in the viewer
        std::uint64_t used = 0;
    };
    std::map<std::string, Viewed> views_;
    std::uint64_t uses_ = 0;
};

}  // namespace saturate
