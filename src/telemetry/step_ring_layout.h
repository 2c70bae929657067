// SPDX-License-Identifier: Apache-2.0
// The layout of the ring that the Python shim writes its steps into: one file per process, mapped
// by writer and reader, no lock. Little endian, as the machines that PyTorch runs on. Shared by the
// reader (step_ring.h) and the shim's extension (python/extension); the shim's Python
// (python/_saturate_shim/steps.py) has the same figures.
//
//       0  "SATRING1", u32 version, u32 record bytes, u64 capacity
//      24  u64 records written, u64 pid
//      40  i32 rank (-1: none), i32 world size, i32 local world size
//      64  u8: asks for the facts; 68 u8: asks for a window of the profiler, in steps
//      72  u8: a profiler of the script's own is at work; 76 u8: the script has come to its end
//      80  i64: a window of the profiler that `run` opened from outside may last until then, on the
//          steady clock; 0: none is open
//    4096  slots of 64 bytes, 8 loaders x 32 (0: in the process, else worker + 1):
//          u64 batches, wall ns, longest ns, then of the batches that were measured closely
//          their number, wall ns, CPU ns, ns without a core
//   20480  records
#pragma once

#include <cstddef>
#include <cstdint>

namespace saturate {

enum class RingKind : std::uint32_t { training = 1, evaluation = 2, loader = 3, checkpoint = 4 };

struct RingRecord {
    std::uint32_t kind = 0;
    std::uint32_t loader = 0;  // kNoLoader: the step was not beaten by a loader
    std::uint32_t samples = 0;
    std::uint32_t reads = 0;  // calls that made the host wait for the device
    std::int64_t start_ns = 0;
    std::int64_t duration_ns = 0;
    std::int64_t wait_ns = 0;
    std::int64_t read_ns = 0;
    std::int64_t gc_ns = 0;
    std::int64_t backward_ns = 0;
    std::int64_t optimizer_ns = 0;
    std::uint32_t backwards = 0;  // those that raised are not counted
    std::uint32_t optimizer_steps = 0;
    double loss = 0;           // sum of the tensors that backward was called on, ...
    std::uint32_t losses = 0;  // ... of so many calls; it is whole if this is `backwards`
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
