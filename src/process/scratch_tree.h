// SPDX-License-Identifier: Apache-2.0
// A folder of the user's as a trial sees it: with edited files, and free to be written to, while
// nothing of that reaches the folder itself. An overlay in a mount namespace of the trial's own;
// where the system forbids that, a tree of links in which sources are copies. It goes with its
// maker, even where that is killed, and after the processes that the maker started.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "process/mortal_folder.h"

namespace saturate {

struct ScratchFile {
    std::string file;  // below the folder, or from where the command runs
    std::string text;
};

struct ScratchSettings {
    std::filesystem::path folder;       // the user's: what is guarded
    std::filesystem::path inside = {};  // below it, where the command runs
    std::filesystem::path parent;  // where its own files go; empty: a folder for temporary files
    std::vector<ScratchFile> edited = {};
    bool may_overlay = true;
};

class ScratchTree {
  public:
    explicit ScratchTree(const ScratchSettings& settings);

    // The command as it runs in the tree.
    [[nodiscard]] std::vector<std::string> command(const std::vector<std::string>& own) const;
    // The folder that the command runs in, as it sees it.
    [[nodiscard]] std::filesystem::path root() const {
        return (is_overlay_ ? folder_ : upper()) / inside_;
    }
    // What a trial could still change; empty: nothing below the folder.
    [[nodiscard]] std::string unguarded() const;

  private:
    [[nodiscard]] std::filesystem::path upper() const { return own_.path() / "upper"; }
    void link_tree(const std::vector<ScratchFile>& edited);

    std::filesystem::path folder_, inside_;
    MortalFolder own_;
    std::vector<std::filesystem::path> mounts_;  // of other file systems, below the folder
    bool is_overlay_ = false;
};

// What a job in this folder may write to: the working tree of git around it, else the folder.
[[nodiscard]] std::filesystem::path guarded_around(const std::filesystem::path& folder);

// Whether this system lets us put an overlay over a folder; tried once per process.
[[nodiscard]] bool can_overlay();

}  // namespace saturate
