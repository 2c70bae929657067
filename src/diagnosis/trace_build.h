// SPDX-License-Identifier: Apache-2.0
// Turns a JSON event into a row of the event table. The trace reader uses one builder per file,
// from one thread.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "diagnosis/trace.h"

namespace saturate {

// One event as written. The views live as long as the parsed text. Numbers stay text, because a
// time stamp in nanoseconds since 1970 has more digits than a double.
struct RawEvent {
    char phase = 0;
    std::string_view category;
    std::string_view name;
    std::string_view process;  // raw: 25738 or "stream 7" with its quotes
    std::string_view thread;
    std::string_view time;
    std::string_view duration;
    std::string_view id;
    std::string_view correlation;
    std::string_view external;
    std::string_view device;
    std::string_view stream;
    std::string_view bytes;
    std::string_view reserved;
    std::string_view dims;
    std::string_view types;
    std::string_view call_stack;
    std::string_view label;  // the argument "name" of a metadata event
    std::uint64_t blocks = 0;
    std::uint64_t threads = 0;
};

class TraceBuilder {
  public:
    explicit TraceBuilder(Trace& trace) : trace_(trace) {}
    void add(const RawEvent& raw);

    // A state to return to if a chunk turns out to be broken in the middle.
    struct Mark {
        std::size_t events, gpu_details, op_details, flows, edges;
        TraceLosses losses;
    };
    [[nodiscard]] Mark mark() const;
    void rewind(const Mark& mark);
    void finish();  // closes ranges, names threads, drops unneeded flows

  private:
    std::uint16_t host_lane(std::string_view process, std::string_view thread);
    std::uint16_t lane_of(Category category, const RawEvent& raw);
    std::uint16_t stream_lane(int device, std::int64_t stream);
    void add_metadata(const RawEvent& raw);
    void add_flow(const RawEvent& raw);
    void add_complete(const RawEvent& raw);
    void add_end(const RawEvent& raw);
    void close_ranges();  // pairs begin and end events

    // A begin event (with its row, which has no duration yet) or an end event, in file order.
    struct RangeEdge {
        std::int64_t event;  // -1: an end
        std::int64_t time_ns;
        std::uint16_t lane;
    };
    Trace& trace_;
    std::vector<RangeEdge> edges_;
    std::unordered_map<std::string, std::uint16_t> lanes_;
    std::unordered_map<std::string, std::string> thread_names_;
    std::string key_;       // scratch
    std::string last_key_;  // cache: most events follow one of the same thread
    std::uint16_t last_lane_ = 0;
};

// Returns the category for the written one ("Kernel", "gpu_memcpy"); PyTorch's own annotations are
// recognised by name.
[[nodiscard]] Category category_of(std::string_view written, std::string_view name);
// Turns microseconds ("1712195495505543.234") into nanoseconds; quotes are allowed. Returns nullopt
// if the text is not a number or exceeds 2^62 ns.
[[nodiscard]] std::optional<std::int64_t> time_ns(std::string_view written);
// Returns the innermost frame of "a.py(3): f;b.py(9): <module>" that is not in an installed
// package.
[[nodiscard]] std::string_view user_frame(std::string_view call_stack);
[[nodiscard]] bool is_user_frame(std::string_view frame);

}  // namespace saturate
