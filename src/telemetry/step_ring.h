// SPDX-License-Identifier: Apache-2.0
// Reads the ring into which the Python shim writes its steps (step_ring_layout.h), while it is
// being written. Polled by telemetry/python_job, from one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "telemetry/step_ring_layout.h"

namespace saturate {

struct FetchTotals {
    int loader = 0;
    int worker = -1;  // -1: in the training process
    std::uint64_t batches = 0, wall_ns = 0, longest_ns = 0;
    std::uint64_t measured = 0, measured_wall_ns = 0, cpu_ns = 0, delay_ns = 0;
};

class StepRing {
  public:
    // Returns nullopt if the file is missing, incomplete or of another version.
    static std::optional<StepRing> open(const std::filesystem::path& path);
    ~StepRing();
    StepRing(StepRing&& other) noexcept;
    StepRing& operator=(StepRing&&) = delete;

    // Passes on, in order, the records that were written before the previous read(). On machines
    // that reorder stores, the newest record may be incomplete. `all`: also the rest, if the writer
    // has ended or has been quiet.
    void read(bool all, const std::function<void(const RingRecord&)>& take);

    [[nodiscard]] std::uint64_t lost() const { return lost_; }  // overwritten before being read
    [[nodiscard]] std::int64_t pid() const;
    [[nodiscard]] int rank() const;
    [[nodiscard]] int world_size() const;
    [[nodiscard]] std::vector<FetchTotals> fetches() const;

    void ask_facts();
    void ask_profile(int steps);  // 1 to 255

    // Marks that a profiler window lasts until `until_ns`: the script waits for its end before it
    // exits or starts its own profiler. Returns false if the script has already done so; then do
    // not open a window.
    [[nodiscard]] bool open_window(std::int64_t until_ns);
    void extend_window(std::int64_t until_ns);
    void close_window();

  private:
    StepRing(unsigned char* bytes, std::size_t size) : bytes_(bytes), size_(size) {}
    template <typename T>
    [[nodiscard]] T at(std::size_t offset) const;

    unsigned char* bytes_ = nullptr;
    std::size_t size_ = 0;
    std::uint64_t taken_ = 0, seen_ = 0, lost_ = 0;
};

}  // namespace saturate
