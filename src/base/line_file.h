// SPDX-License-Identifier: Apache-2.0
// A file that grows by lines. Keeps data that a full disk refused and writes it again with the next
// write, so no line ever has a hole. What is not written at the end is lost. One thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/descriptor.h"

namespace saturate {

class LineFile {
  public:
    // Throws MachineError if the file cannot be made. `replace` empties an existing file; without
    // it the file must not exist.
    explicit LineFile(const std::filesystem::path& path, bool replace = false);

    // True if there is room for one more line. At most 16 MiB wait for a full disk.
    [[nodiscard]] bool has_room() const;
    std::string& text() { return waiting_; }  // append whole lines here
    void write();
    [[nodiscard]] std::string failure() const;  // "path: No space left on device", or empty
    [[nodiscard]] std::uint64_t lines_waiting() const;

  private:
    std::filesystem::path path_;
    Descriptor file_;
    int error_ = 0;
    std::string waiting_;
};

}  // namespace saturate
