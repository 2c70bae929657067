// SPDX-License-Identifier: Apache-2.0
// Writes an event file for TensorBoard: scalars by tag and step. Never waits for the disk; a full
// one loses curves, never training. Training thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace saturate {

class TensorBoardFile {
  public:
    // Creates the folder and a new file in it, named by time, host and process.
    // Throws MachineError.
    explicit TensorBoardFile(const std::filesystem::path& folder);
    ~TensorBoardFile();
    TensorBoardFile(const TensorBoardFile&) = delete;
    TensorBoardFile& operator=(const TensorBoardFile&) = delete;

    void scalar(std::string_view tag, std::int64_t step, double value);
    void flush();
    // "path: No space left on device", or empty. After a failure nothing more is written.
    [[nodiscard]] const std::string& failure() const { return failure_; }

  private:
    void record(const std::string& event);

    std::filesystem::path path_;
    int fd_ = -1;
    std::string waiting_, failure_;
};

}  // namespace saturate
