// SPDX-License-Identifier: Apache-2.0
// A private view of the user's folder for one trial: with edited files, and writable without any
// effect on the folder itself. It is an overlay in a mount namespace of the trial. If the system
// forbids that, it is a tree of links with copies of the sources, plus a guard against writing
// through the links. It is removed when its maker ends, even by SIGKILL, and after the processes
// that the maker started.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "process/mortal_folder.h"
#include "process/write_guard.h"

namespace saturate {

struct ScratchFile {
    std::string file;  // relative to the folder that the command runs in
    std::string text;
};

struct FilesMade {
    std::size_t count = 0;
    std::string folder;  // the folder with most of them, relative to where the command runs
};

struct ScratchSettings {
    std::filesystem::path folder;       // the user's folder, which is guarded
    std::filesystem::path inside = {};  // where the command runs, relative to `folder`
    std::filesystem::path parent;       // place for the tree's own files; empty: a temporary folder
    std::vector<ScratchFile> edited = {};
    bool may_overlay = true;
    std::filesystem::path writable = {};  // may be written to in spite of the guard: for records
};

class ScratchTree {
  public:
    explicit ScratchTree(const ScratchSettings& settings);

    // The command line that runs `own` in the tree.
    [[nodiscard]] std::vector<std::string> command(const std::vector<std::string>& own) const;
    // The folder that the command runs in, as the command sees it.
    [[nodiscard]] std::filesystem::path root() const {
        return (is_overlay_ ? folder_ : upper()) / inside_;
    }
    // Must be put in force in the command's process. Null: not needed, or not possible here.
    [[nodiscard]] const WriteGuard* guard() const { return guard_.get(); }
    // Files that the command created or overwrote. Without an overlay: none.
    [[nodiscard]] FilesMade files_made() const;
    // What a trial could still change; empty: nothing below the folder.
    [[nodiscard]] std::string unguarded() const;

  private:
    [[nodiscard]] std::filesystem::path upper() const { return own_.path() / "upper"; }
    void link_tree(const std::vector<ScratchFile>& edited);
    void put(const ScratchFile& edited);

    std::filesystem::path folder_, inside_;
    MortalFolder own_;
    std::vector<std::filesystem::path> mounts_;  // mounts of other file systems below the folder
    std::unique_ptr<WriteGuard> guard_;
    std::size_t edited_ = 0;
    bool is_overlay_ = false;
};

// The folder that a job in `folder` may write to: the git working tree around it, or `folder`. With
// `above`, also that many folders further up if an overlay works there: a job that names "../model"
// writes there.
[[nodiscard]] std::filesystem::path guarded_around(const std::filesystem::path& folder,
                                                   int above = 0);
// How many folders up the "../" paths in the text lead; at most 3.
[[nodiscard]] int folders_above(std::string_view text);

// True if this system lets us mount an overlay over a folder. Tried once per process.
[[nodiscard]] bool can_overlay();

}  // namespace saturate
