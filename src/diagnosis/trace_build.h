// SPDX-License-Identifier: Apache-2.0
// Turns what a JSON event says into a row of the event table. Used by the trace reader, one builder
// per file, from one thread.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "diagnosis/trace.h"

namespace saturate {

// One event as written; views live as long as the parsed text. Numbers stay text: a time stamp of
// nanoseconds since 1970 has more digits than a double.
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
    std::string_view label;  // "name" among the arguments of metadata
    std::uint64_t blocks = 0;
    std::uint64_t threads = 0;
};

class TraceBuilder {
  public:
    explicit TraceBuilder(Trace& trace) : trace_(trace) {}
    void add(const RawEvent& raw);

    // A point to go back to when a chunk turns out to be broken in the middle.
    struct Mark {
        std::size_t events, gpu_details, op_details, flows, edges;
        TraceLosses losses;
    };
    [[nodiscard]] Mark mark() const;
    void rewind(const Mark& mark);
    void finish();  // names threads, drops flows that no row needs

  private:
    std::uint16_t host_lane(std::string_view process, std::string_view thread);
    std::uint16_t lane_of(Category category, const RawEvent& raw);
    std::uint16_t stream_lane(int device, std::int64_t stream);
    void add_metadata(const RawEvent& raw);
    void add_flow(const RawEvent& raw);
    void add_complete(const RawEvent& raw);
    void add_end(const RawEvent& raw);
    void close_ranges();  // pairs begin with end events

    // A begin (its event, whose length is open) or an end, in the order of the file.
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
    std::string last_key_;  // most events come in runs of one thread
    std::uint16_t last_lane_ = 0;
};

// A category as written ("Kernel", "gpu_memcpy") and the name, which overrules it for annotations.
[[nodiscard]] Category category_of(std::string_view written, std::string_view name);
// "1712195495505543.234" microseconds to nanoseconds; quotes are allowed. Nothing when it is no
// number or beyond 2^62 ns.
[[nodiscard]] std::optional<std::int64_t> time_ns(std::string_view written);
// The innermost frame of "a.py(3): f;b.py(9): <module>" that is not of an installed package.
[[nodiscard]] std::string_view user_frame(std::string_view call_stack);
[[nodiscard]] bool is_user_frame(std::string_view frame);

}  // namespace saturate
