// SPDX-License-Identifier: Apache-2.0
// A file that grows by lines and keeps what a full disk refused, to offer it again at the next
// write: what comes out is never a line with a hole in it. One thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace saturate {

class LineFile {
  public:
    // Throws MachineError when the file cannot be made; `replace` empties one that is there.
    explicit LineFile(const std::filesystem::path& path, bool replace = false);
    ~LineFile();  // closes; what waits is lost
    LineFile(const LineFile&) = delete;
    LineFile& operator=(const LineFile&) = delete;

    // Room for one more line: what a full disk leaves waiting is bounded (16 MiB).
    [[nodiscard]] bool has_room() const;
    std::string& text() { return waiting_; }  // append whole lines here
    void write();
    [[nodiscard]] std::string failure() const;  // "path: No space left on device", or empty
    [[nodiscard]] std::uint64_t lines_waiting() const;

  private:
    std::filesystem::path path_;
    int fd_ = -1;
    int error_ = 0;
    std::string waiting_;
};

}  // namespace saturate
