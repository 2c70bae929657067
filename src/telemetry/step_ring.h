// SPDX-License-Identifier: Apache-2.0
// The ring that the Python shim writes its steps into (python/_saturate_shim/steps.py has the same
// layout): one file per process, mapped by both, no lock. Little endian, as the machines that
// PyTorch runs on.
//
//       0  "SATRING1", u32 version, u32 record bytes, u64 capacity
//      24  u64 records written, u64 pid
//      40  i32 rank (-1: none), i32 world size, i32 local world size
//      64  u8: asks for the facts; 68 u8: asks for a window of the profiler, in steps
//    4096  slots of 64 bytes, 8 loaders x 32 (0: in the process, else worker + 1):
//          u64 batches, wall ns, longest ns, then of the batches that were measured closely
//          their number, wall ns, CPU ns, ns without a core
//   20480  records
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

namespace saturate {

enum class RingKind : std::uint32_t { training = 1, evaluation = 2, loader = 3, checkpoint = 4 };

struct RingRecord {
    std::uint32_t kind = 0;
    std::uint32_t loader = 0;  // 0xFFFFFFFF: the step was not beaten by a loader
    std::uint32_t samples = 0;
    std::uint32_t reads = 0;  // calls that made the host wait for the device
    std::int64_t start_ns = 0;
    std::int64_t duration_ns = 0;
    std::int64_t wait_ns = 0;
    std::int64_t read_ns = 0;
    std::int64_t gc_ns = 0;
    std::int64_t backward_ns = 0;
    std::int64_t optimizer_ns = 0;
    std::uint32_t backwards = 0;
    std::uint32_t optimizer_steps = 0;
};
static_assert(sizeof(RingRecord) == 80);

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

  private:
    StepRing(unsigned char* bytes, std::size_t size) : bytes_(bytes), size_(size) {}
    template <typename T>
    [[nodiscard]] T at(std::size_t offset) const;

    unsigned char* bytes_ = nullptr;
    std::size_t size_ = 0;
    std::uint64_t taken_ = 0, seen_ = 0, lost_ = 0;
};

}  // namespace saturate
