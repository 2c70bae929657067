// SPDX-License-Identifier: Apache-2.0
// Maps a file into memory instead of reading it: pages are loaded when touched and dropped when
// memory is short. For arrays larger than memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace saturate {

class MappedFile {
  public:
    // Throws UserError if it is missing, unreadable or empty; `what` names it ("an array").
    MappedFile(const std::filesystem::path& path, std::string_view what);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }
    [[nodiscard]] std::string_view text() const {
        return {reinterpret_cast<const char*>(data_), size_};
    }

  private:
    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace saturate
