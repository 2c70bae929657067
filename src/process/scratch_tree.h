// SPDX-License-Identifier: Apache-2.0
// A folder of the user's as a trial sees it: with edited files, and free to be written to, while
// nothing of that reaches the folder itself. An overlay in a mount namespace of the trial's own;
// where the system forbids that, a tree of links in which sources are copies, and a guard against
// writing through the links. It goes with its maker, even where that is killed, and after the processes that the maker started.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "process/mortal_folder.h"
#include "process/write_guard.h"

namespace saturate {

struct ScratchFile {
    std::string file;  // below the folder, or from where the command runs
    std::string text;
};

struct FilesMade {
    std::size_t count = 0;
    std::string folder;  // that has most of them, from where the command runs
};

struct ScratchSettings {
    std::filesystem::path folder;       // the user's: what is guarded
    std::filesystem::path inside = {};  // below it, where the command runs
    std::filesystem::path parent;  // where its own files go; empty: a folder for temporary files
    std::vector<ScratchFile> edited = {};
    bool may_overlay = true;
    std::filesystem::path writable = {};  // what may be written to all the same: for records
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
    // To be in force in the command's process; null: the tree alone does it, or nothing can.
    [[nodiscard]] const WriteGuard* guard() const { return guard_.get(); }
    // Those that were not there before. Of a tree of copies: nothing.
    [[nodiscard]] FilesMade files_made() const;
    // What a trial could still change; empty: nothing below the folder.
    [[nodiscard]] std::string unguarded() const;

  private:
    [[nodiscard]] std::filesystem::path upper() const { return own_.path() / "upper"; }
    void link_tree(const std::vector<ScratchFile>& edited);
    void put(const ScratchFile& edited);

    std::filesystem::path folder_, inside_;
    MortalFolder own_;
    std::vector<std::filesystem::path> mounts_;  // of other file systems, below the folder
    std::unique_ptr<WriteGuard> guard_;
    std::size_t edited_ = 0;
    bool is_overlay_ = false;
};

// What a job in this folder may write to: the working tree of git around it, else the folder. With
// `above`, also so many folders further up, where an overlay over that works: a job that names
// "../model" writes there.
[[nodiscard]] std::filesystem::path guarded_around(const std::filesystem::path& folder,
                                                   int above = 0);
// How far up paths in the text go that begin with "../"; 3 at most.
[[nodiscard]] int folders_above(std::string_view text);

// Whether this system lets us put an overlay over a folder; tried once per process.
[[nodiscard]] bool can_overlay();

}  // namespace saturate
