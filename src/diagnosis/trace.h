// SPDX-License-Identifier: Apache-2.0
// The event table. Every reader (profiler JSON, Nsight Systems) fills it and every rule reads it.
// One row of 40 bytes per event; names are interned; only arguments that a rule needs are kept.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/device.h"

namespace saturate {

enum class Category : std::uint8_t {
    kernel,
    memcpy,
    memset,
    op,          // an operator on the host (cpu_op)
    runtime,     // a call of the CUDA or HIP runtime or driver
    annotation,  // a range of the user or of PyTorch: ProfilerStep#, enumerate(DataLoader)#,
                 // Optimizer.
    python,      // a Python frame
    gpu_annotation,
    sync,
    overhead,
    other,
};

[[nodiscard]] inline bool is_gpu(Category category) { return category <= Category::memset; }

// Interned texts; id 0 is the empty text. Control characters become "?", because names are printed
// to terminals, where they must not move the cursor or change colours.
class Names {
  public:
    Names();
    ~Names();
    Names(Names&&) noexcept;
    Names& operator=(Names&&) noexcept;
    std::uint32_t add(std::string_view text);
    [[nodiscard]] std::string_view text(std::uint32_t id) const;
    [[nodiscard]] std::size_t size() const;
    [[nodiscard]] std::optional<std::uint32_t> find(std::string_view text) const;

  private:
    struct Table;
    std::unique_ptr<Table> table_;
};

struct Event {
    std::int64_t start_ns = 0;
    std::int64_t duration_ns = 0;
    std::uint32_t name = 0;         // in Trace::names
    std::uint32_t correlation = 0;  // links a GPU event to the call that launched it; 0: none
    std::uint32_t external = 0;     // links a call to the operator that made it; 0: none
    std::uint32_t detail = 0;       // in Trace::gpu_details or op_details, counted from 1; 0: none
    std::uint16_t lane = 0;         // in Trace::lanes
    Category category = Category::other;

    [[nodiscard]] std::int64_t end_ns() const { return start_ns + duration_ns; }
};

// Arguments of a kernel, copy or set.
struct GpuDetail {
    std::uint64_t bytes = 0;    // copies and sets
    std::uint32_t blocks = 0;   // in the grid; 0: unknown
    std::uint32_t threads = 0;  // per block
};

// Arguments of an operator, as far as the trace holds them. All are ids of Trace::names.
struct OpDetail {
    std::uint32_t dims = 0;   // "[[64,1000],[1000,512]]", kept for matrix products and convolutions
    std::uint32_t types = 0;  // "[\"c10::Half\",...]", likewise
    std::uint32_t source =
        0;  // "train.py(62): <module>", the innermost frame of the user's own code
};

// A host thread, or a stream of a GPU.
struct Lane {
    bool gpu = false;
    int device = -1;           // of a stream
    std::int64_t stream = -1;  // of a stream
    std::string process;       // of a thread: pid as written
    std::string thread;        // tid as written
    std::string name;          // from metadata, e.g. "thread 785244 (pt_autograd_0)"
};

struct TraceDevice {
    int id = 0;
    std::string name;
    std::uint64_t memory_bytes = 0;
    std::optional<Capability> capability;
    int sm_count = 0;
};

// The start of an arrow from a launch to its kernel, for launches whose call was not recorded.
struct Flow {
    std::uint32_t correlation = 0;
    std::uint16_t lane = 0;
    std::int64_t start_ns = 0;
};

// Counts of problems in the file. Lost data lowers the confidence; repairs do not.
struct TraceLosses {
    std::uint64_t dropped_events = 0;      // unreadable, or no name or time
    std::uint64_t implausible_times = 0;   // over a day away from the rest; dropped too
    std::uint64_t repaired_events = 0;     // control characters, unescaped quotes, broken UTF-8
    std::uint64_t negative_durations = 0;  // counted as 0
    std::uint64_t skipped_ranges = 0;      // begin events without an end, or ends without a begin
    bool truncated = false;                // the file is cut off

    [[nodiscard]] std::uint64_t lost() const { return dropped_events + implausible_times; }
};

enum class TraceKind { pytorch, tensorflow, nsys, unknown };

struct Trace {
    std::string file;
    TraceKind kind = TraceKind::unknown;
    std::vector<Event> events;  // by start; on a tie the longer first
    std::vector<GpuDetail> gpu_details;
    std::vector<OpDetail> op_details;
    Names names;
    std::vector<Lane> lanes;
    std::vector<Flow> flows;
    std::vector<TraceDevice> devices;
    std::optional<int> rank;
    std::optional<int> world_size;
    std::string backend;         // nccl, gloo
    std::string other_device;    // an accelerator whose work is not read ("mtia"); mostly empty
    std::int64_t origin_ns = 0;  // the time in the file that is start_ns 0
    bool has_stacks = false;     // Python frames or call stacks
    bool has_shapes = false;
    std::uint64_t reserved_bytes_peak = 0;  // by the allocator, on a GPU; 0: unknown
    std::uint64_t json_bytes = 0;           // unpacked
    TraceLosses losses;

    [[nodiscard]] std::string_view name(const Event& event) const { return names.text(event.name); }
    [[nodiscard]] const Lane& lane(const Event& event) const { return lanes[event.lane]; }
    [[nodiscard]] const GpuDetail* gpu_detail(const Event& event) const;
    [[nodiscard]] const OpDetail* op_detail(const Event& event) const;
    // Returns the device with that id, or the only one.
    [[nodiscard]] const TraceDevice* device(int id) const;
};

// Sorts the events, drops implausible times and makes the earliest event start at 0. Every reader
// calls it last.
void finish(Trace& trace);

}  // namespace saturate
