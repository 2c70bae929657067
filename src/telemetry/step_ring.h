// SPDX-License-Identifier: Apache-2.0
// Reads the ring that the Python shim writes its steps into (step_ring_layout.h), while it is
// written. Polled by telemetry/python_job, one thread.
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
    // Nothing while the file is not there, not whole or not of this version.
    static std::optional<StepRing> open(const std::filesystem::path& path);
    ~StepRing();
    StepRing(StepRing&& other) noexcept;
    StepRing& operator=(StepRing&&) = delete;

    // What was written up to the read before this one, in order: on machines that reorder stores
    // the newest record may not be whole yet. `all`: also the rest, once the writer is gone or has
    // been quiet.
    void read(bool all, const std::function<void(const RingRecord&)>& take);

    [[nodiscard]] std::uint64_t lost() const { return lost_; }  // overwritten before they were read
    [[nodiscard]] std::int64_t pid() const;
    [[nodiscard]] int rank() const;
    [[nodiscard]] int world_size() const;
    [[nodiscard]] std::vector<FetchTotals> fetches() const;

    void ask_facts();
    void ask_profile(int steps);  // 1 to 255

    // A window of the profiler begins and lasts until then: the script waits for it before it ends
    // or starts a profiler of its own. False: it has done so already, there must be no window.
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
