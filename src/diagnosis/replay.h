// SPDX-License-Identifier: Apache-2.0
// Replays the window of a trace with other durations. Keeps the order of the host's calls, the
// order of each stream, the link from launch to kernel and the link from a waiting call to the work
// that it waits for. Linear in the number of GPU events.
// To check itself, it replays the window unchanged, but with each measured lag between host and GPU
// replaced by the usual lag of its kind. The difference from the measured window is the error.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "diagnosis/timeline.h"

namespace saturate {

// The effect of a fix. The functions get an index into Trace::events; an empty function changes
// nothing.
struct ReplayChange {
    std::array<double, kCauses> host_scale = ones();  // of the host's time, by cause
    std::function<double(std::uint32_t)> gpu_scale;   // of a GPU event's duration; 0 removes it
    std::function<double(std::uint32_t)> call_scale;  // of the host's own time before and in a call
    std::function<bool(std::uint32_t)> unblock;       // true: this call no longer waits for the GPU

    static constexpr std::array<double, kCauses> ones() {
        std::array<double, kCauses> out = {};
        out.fill(1.0);
        return out;
    }
    [[nodiscard]] double& scale(Cause cause) { return host_scale[static_cast<std::size_t>(cause)]; }
    // Returns both changes together. If both scale the same thing, the smaller scale wins.
    [[nodiscard]] ReplayChange with(const ReplayChange& other) const;
};

class Replay {
  public:
    explicit Replay(const Timeline& timeline);

    // Returns the length of the window in ns after the change.
    [[nodiscard]] std::int64_t run(const ReplayChange& change) const {
        return run(change, Lags::seen);
    }
    // Returns how far the unchanged replay with the usual lags is off the measured window, in
    // percent of the window; never negative.
    [[nodiscard]] double error_percent() const { return error_percent_; }
    // Returns the unchanged time over the changed time, both replayed: 1.0 is no gain; never less.
    [[nodiscard]] double gain(const ReplayChange& change) const;

  private:
    struct Call {
        std::uint32_t event = 0;
        std::int32_t before = -1;  // the last call, of any thread, to return before this one began
        std::int64_t own_ns = 0;   // duration without the wait
        std::int64_t tail_ns = 0;  // from the end of the awaited work to the end of the call
        std::uint32_t first_part = 0;  // in parts_: the host's time before the call
        std::uint32_t part_count = 0;
        std::int32_t waits_for = -1;   // index into works_
        std::uint32_t first_work = 0;  // in works_: the work that it launches
        std::uint32_t work_count = 0;
        Cause cause = Cause::launch;
    };
    struct Part {
        Cause cause = Cause::host;
        std::int64_t ns = 0;
    };
    struct Work {
        std::uint32_t event = 0;
        std::uint32_t stream = 0;
        std::int32_t after = -1;  // awaited work of another stream
        std::int64_t launch_lag =
            0;  // from the start of the call to its own start, if nothing else delays it
        std::int64_t queue_lag = 0;  // from the end of the previous work
        std::int64_t duration_ns = 0;
        std::uint8_t kind = 0;       // index into usual_launch_, usual_queue_: kernel, copy, set
        bool has_launch = true;      // its launch was recorded
        bool has_unseen = false;     // runs behind graph nodes that were not recorded
        bool is_collective = false;  // waits for other ranks, so never starts earlier
    };
    struct Span {
        std::int64_t start, end;
    };
    [[nodiscard]] Span span_of(const Call& call) const;  // clamped to the window
    enum class Lags { seen, usual };
    [[nodiscard]] std::int64_t run(const ReplayChange& change, Lags lags) const;
    void collect();
    void link_work();
    void link_order();
    void link_waits();

    const Timeline& line_;
    std::vector<Call> calls_;
    std::vector<Part> parts_;
    std::vector<Work> works_;
    std::vector<Part> tail_parts_;  // the host's time after the last call
    std::int32_t tail_call_ = -1;   // that call
    std::array<std::int64_t, 3> usual_launch_ = {};
    std::array<std::int64_t, 3> usual_queue_ = {};
    std::int64_t usual_tail_ = 0;
    std::int64_t usual_copy_tail_ = 0;  // for copies that block the caller
    std::size_t streams_ = 0;
    std::int64_t unchanged_ns_ = 0;
    double error_percent_ = 0;
};

}  // namespace saturate
