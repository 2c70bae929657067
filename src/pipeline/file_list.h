// SPDX-License-Identifier: Apache-2.0
// Lists the files of a folder tree with certain endings. Several threads list; the order depends on
// the names alone. The list is cached on disk, so that a million files are not listed again. Made
// once before the workers start; afterwards read from any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace saturate {

struct FileListSettings {
    std::vector<std::string> endings = {".jpg", ".jpeg", ".png", ".webp"};  // in lower case
    int threads = 8;                     // listing waits for storage, not for the CPU
    std::filesystem::path cache_folder;  // empty: no cache
    std::int64_t cache_from = 10'000;    // files; fewer are listed fast enough anyway
};

// Stores the names in one block of text: 9 bytes plus the name per file.
class FileList {
  public:
    struct Folder {
        std::string path;             // relative to the root; "" is the root itself
        std::int64_t changed_ns = 0;  // when the folder last changed
        std::int64_t first = 0;       // index of its first file; the next folder's follow
    };

    [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(starts_.size()); }
    [[nodiscard]] const std::vector<Folder>& folders() const { return folders_; }
    [[nodiscard]] const Folder& folder_of(std::int64_t file) const;
    [[nodiscard]] std::string_view name(std::int64_t file) const;
    // Writes root, folder and name into the caller's string, so that a worker allocates nothing.
    void path(std::int64_t file, std::string& out) const;

    [[nodiscard]] bool from_cache() const { return from_cache_; }
    // True if files came or went in each of three listings: the list may lack some.
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

// Throws UserError if the folder is missing or cannot be read.
[[nodiscard]] FileList list_files(const std::filesystem::path& root,
                                  const FileListSettings& settings);

}  // namespace saturate
