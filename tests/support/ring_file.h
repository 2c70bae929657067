// SPDX-License-Identifier: Apache-2.0
// Makes the file of a ring like the Python shim, with room for `capacity` records.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "telemetry/step_ring.h"

namespace saturate {

class RingFile {
  public:
    explicit RingFile(std::uint64_t capacity)
        : bytes_(kRecordsAt + capacity * sizeof(RingRecord)), capacity_(capacity) {
        std::memcpy(bytes_.data(), "SATRING1", 8);
        put<std::uint32_t>(8, 1);
        put<std::uint32_t>(12, sizeof(RingRecord));
        put<std::uint64_t>(16, capacity);
        put<std::uint64_t>(32, 4711);
        put<std::int32_t>(40, 3);
        put<std::int32_t>(44, 8);
    }
    template <typename T>
    void put(std::size_t offset, T value) {
        std::memcpy(bytes_.data() + offset, &value, sizeof value);
    }
    void add(const RingRecord& record) {
        std::memcpy(bytes_.data() + kRecordsAt + (written_ % capacity_) * sizeof record, &record,
                    sizeof record);
        put<std::uint64_t>(24, ++written_);
    }
    void add(std::int64_t start_ns) { add(RingRecord{.kind = 1, .start_ns = start_ns}); }
    // Writes in place, because a reader may have the file mapped.
    void save(const std::filesystem::path& path) const {
        auto mode = std::filesystem::exists(path) ? std::ios::in | std::ios::out : std::ios::out;
        std::fstream(path, mode | std::ios::binary)
            .write(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
    }

  private:
    static constexpr std::size_t kRecordsAt = 20480;
    std::vector<char> bytes_;
    std::uint64_t capacity_, written_ = 0;
};

}  // namespace saturate
