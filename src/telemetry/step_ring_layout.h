// SPDX-License-Identifier: Apache-2.0
// The layout of the ring into which the Python shim writes its steps: one file per process, mapped
// by writer and reader, without a lock. Little endian, like the machines that PyTorch runs on. The
// reader (step_ring.h) and the shim's extension (python/extension) share this header; the shim's
// Python code (python/_saturate_shim/steps.py) repeats the numbers.
//
//       0  "SATRING1", u32 version, u32 record bytes, u64 capacity
//      24  u64 records written, u64 pid
//      40  i32 rank (-1: none), i32 world size, i32 local world size
//      64  u8: request for the facts; 68 u8: request for a profiler window, in steps
//      72  u8: the script's own profiler is running; 76 u8: the script has ended
//      80  i64: steady clock time at which a profiler window that `run` opened from outside ends
//          at the latest; 0: none is open
//    4096  slots of 64 bytes, 8 loaders x 32 (0: in the process, else worker + 1):
//          u64 batches, wall ns, longest ns; then, for the batches measured in detail, their
//          number, wall ns, CPU ns, ns waiting for a core
//   20480  records
#pragma once

#include <cstddef>
#include <cstdint>

namespace saturate {

enum class RingKind : std::uint32_t { training = 1, evaluation = 2, loader = 3, checkpoint = 4 };

struct RingRecord {
    std::uint32_t kind = 0;
    std::uint32_t loader = 0;  // kNoLoader: the step did not start with a batch of a loader
    std::uint32_t samples = 0;
    std::uint32_t reads = 0;  // calls that made the host wait for the device
    std::int64_t start_ns = 0;
    std::int64_t duration_ns = 0;
    std::int64_t wait_ns = 0;
    std::int64_t read_ns = 0;
    std::int64_t gc_ns = 0;
    std::int64_t backward_ns = 0;
    std::int64_t optimizer_ns = 0;
    std::uint32_t backwards = 0;  // without those that raised
    std::uint32_t optimizer_steps = 0;
    double loss = 0;           // sum of the tensors on which backward was called, ...
    std::uint32_t losses = 0;  // ... in this many calls; complete if equal to `backwards`
    std::uint32_t batches = 0;
};
static_assert(sizeof(RingRecord) == 96);

namespace ring {

inline constexpr char kMagic[] = "SATRING1";
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kNoLoader = 0xFFFFFFFF;
inline constexpr std::size_t kVersionAt = 8, kRecordBytesAt = 12, kCapacityAt = 16, kCountAt = 24;
inline constexpr std::size_t kPidAt = 32, kRankAt = 40, kWorldAt = 44, kLocalWorldAt = 48;
inline constexpr std::size_t kFactsAt = 64, kProfileAt = 68;
inline constexpr std::size_t kOwnProfilerAt = 72, kEndedAt = 76, kWindowUntilAt = 80;
inline constexpr std::size_t kFetchAt = 4096, kSlots = 256, kSlotBytes = 64, kWorkerSlots = 32;
inline constexpr std::size_t kRecordsAt = kFetchAt + kSlots * kSlotBytes;

}  // namespace ring

}  // namespace saturate
