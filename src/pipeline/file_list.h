// SPDX-License-Identifier: Apache-2.0
// The files of a folder tree that have one of some endings: listed by several threads, in an order
// that depends on their names alone, and remembered on disk so that a million files are not listed
// again. Made once, before the workers start; read from any thread afterwards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace saturate {

struct FileListSettings {
    std::vector<std::string> endings = {".jpg", ".jpeg", ".png", ".webp"};  // in small letters
    int threads = 8;                     // listing waits for storage, not for processors
    std::filesystem::path cache_folder;  // empty: nothing is remembered
    std::int64_t cache_from = 10'000;    // files; fewer are listed before one could blink
};

// Names in one block of text, 9 bytes and the name for each file.
class FileList {
  public:
    struct Folder {
        std::string path;             // below the root; "" is the root itself
        std::int64_t changed_ns = 0;  // when the folder last changed
        std::int64_t first = 0;       // its files are [first, first of the next)
    };

    [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(starts_.size()); }
    [[nodiscard]] const std::vector<Folder>& folders() const { return folders_; }
    [[nodiscard]] const Folder& folder_of(std::int64_t file) const;
    [[nodiscard]] std::string_view name(std::int64_t file) const;
    // Root, folder and name; into memory of the caller, so that a worker allocates nothing.
    void path(std::int64_t file, std::string& out) const;

    [[nodiscard]] bool from_cache() const { return from_cache_; }
    // Files came or went while they were listed, three times in a row: the list may lack some.
    [[nodiscard]] bool unsettled() const { return unsettled_; }

  private:
    friend FileList list_files(const std::filesystem::path&, const FileListSettings&);
    friend class FileLister;

    std::string root_;
    std::vector<Folder> folders_;  // by path
    std::string names_;            // each ends with NUL
    std::vector<std::uint64_t> starts_;
    bool from_cache_ = false;
    bool unsettled_ = false;
};

// Throws UserError when the folder is missing or cannot be read.
[[nodiscard]] FileList list_files(const std::filesystem::path& root,
                                  const FileListSettings& settings);

}  // namespace saturate
