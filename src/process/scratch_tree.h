// SPDX-License-Identifier: Apache-2.0
// A folder of the user's as a trial sees it: with edited files, and free to be written to, while
// nothing of that reaches the folder itself. An overlay in a mount namespace of the trial's own;
// where the system forbids that, a tree of links in which sources are copies.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace saturate {

struct ScratchFile {
    std::string file;  // below the folder
    std::string text;
};

class ScratchTree {
  public:
    // `parent` is where its own files go; it must be outside of `folder`.
    ScratchTree(const std::filesystem::path& folder, const std::filesystem::path& parent,
                const std::vector<ScratchFile>& edited);
    ~ScratchTree();  // removes it
    ScratchTree(const ScratchTree&) = delete;
    ScratchTree& operator=(const ScratchTree&) = delete;

    // The command as it runs in the tree.
    [[nodiscard]] std::vector<std::string> command(const std::vector<std::string>& own) const;
    // What a trial could still change; empty: nothing below the folder.
    [[nodiscard]] std::string unguarded() const;

  private:
    void link_tree(const std::vector<ScratchFile>& edited);

    std::filesystem::path folder_;
    std::filesystem::path own_;
    bool is_overlay_ = false;
};

// Whether this system lets us put an overlay over a folder; tried once per process.
[[nodiscard]] bool can_overlay();

}  // namespace saturate
