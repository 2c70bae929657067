// SPDX-License-Identifier: Apache-2.0
// The run records below a folder, for a server that shows them. A run is named by its place below
// the folder and looked up in the list: no name of a client ever becomes a path. Links are not
// followed, so nothing outside the folder is read. scan() from one thread, view() from one other;
// a Listing does not change once made.
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
    std::string title;  // of a trial, what it was for: "num_workers=4"; else empty
    std::filesystem::path folder;
    std::string version;  // changes with the files
    bool is_running = false;
    std::string state;  // running, done, interrupted, failed, stopped without a summary; of a
                        // trial how it ended: measured, out of memory
    std::string kind, device, verdict;
    bool simulated = false;
    std::int64_t started_wall_ns = 0;
    std::optional<double> seconds, samples_per_second, busy_percent;

    // The folder that it shares with others: "tune-1"; empty: none.
    [[nodiscard]] std::string group() const;
    // As lists and reports call it: "num_workers=4, tune-1/trial-3".
    [[nodiscard]] std::string name() const;
};

struct Listing {
    std::vector<ShelfRun> runs;  // the newest first
    std::string version;         // of what a list of them shows
    bool is_cut = false;         // there are more than are listed

    [[nodiscard]] const ShelfRun* find(std::string_view id) const;
    [[nodiscard]] const ShelfRun* newest() const;  // one that runs before one that has ended
};

class RunShelf {
  public:
    // Looks below `folder`, or only at these folders of it. It need not be there yet.
    explicit RunShelf(std::filesystem::path folder, std::vector<std::string> only = {});

    [[nodiscard]] std::shared_ptr<const Listing> scan();
    // Once per version, and of a run that goes on only what is new; the last few are kept. Throws
    // UserError for a record that cannot be read.
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
        std::unique_ptr<RunViewer> viewer;  // while the run goes on
        std::int64_t started_wall_ns = 0;   // of the run that the viewer reads
        std::uint64_t used = 0;
    };
    std::map<std::string, Viewed> views_;
    std::uint64_t uses_ = 0;
};

}  // namespace saturate
