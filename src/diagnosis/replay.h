// SPDX-License-Identifier: Apache-2.0
// Runs the window again with other durations: the host's calls in their order, each stream in its
// order, launch to kernel, waiting calls to what they wait for. Linear in the number of GPU events.
// How far it can be believed is told by running it unchanged with every lag that was seen between
// host and GPU replaced by the usual one of its kind: what then differs from the measured window
// was not understood.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "diagnosis/timeline.h"

namespace saturate {

// What a fix changes. Functions get the index of an event in Trace::events; empty: unchanged.
struct ReplayChange {
    std::array<double, kCauses> host_scale = ones();  // of the host's time, by what it was spent on
    std::function<double(std::uint32_t)> gpu_scale;   // of a GPU event's duration; 0 removes it
    std::function<double(std::uint32_t)> call_scale;  // of the host's own time up to and in a call
    std::function<bool(std::uint32_t)> unblock;       // this call no longer waits for the GPU

    static constexpr std::array<double, kCauses> ones() {
        std::array<double, kCauses> out = {};
        out.fill(1.0);
        return out;
    }
    [[nodiscard]] double& scale(Cause cause) { return host_scale[static_cast<std::size_t>(cause)]; }
    // Both: where both change the same, the smaller scale wins.
    [[nodiscard]] ReplayChange with(const ReplayChange& other) const;
};

class Replay {
  public:
    explicit Replay(const Timeline& timeline);

    // The length of the window after the change.
    [[nodiscard]] std::int64_t run(const ReplayChange& change) const {
        return run(change, Lags::seen);
    }
    // How far the unchanged replay with usual lags is off the measured window, in percent of it;
    // never negative.
    [[nodiscard]] double error_percent() const { return error_percent_; }
    // Unchanged over changed, both replayed: 1.0 is no gain. Never below 1.
    [[nodiscard]] double gain(const ReplayChange& change) const;

  private:
    struct Call {
        std::uint32_t event = 0;
        std::int32_t before = -1;  // the call of any thread that had returned last when it began
        std::int64_t own_ns = 0;   // its duration without waiting
        std::int64_t tail_ns = 0;  // from the end of what it waits for to its own end
        std::uint32_t first_part = 0;  // parts_: how the time before it was spent
        std::uint32_t part_count = 0;
        std::int32_t waits_for = -1;   // works_
        std::uint32_t first_work = 0;  // works_ that it launches
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
        std::int32_t after = -1;  // work of another stream that it waits for
        std::int64_t launch_lag =
            0;  // from the call's start to its own, where nothing else holds it
        std::int64_t queue_lag = 0;  // from the end of what runs before it
        std::int64_t duration_ns = 0;
        std::uint8_t kind = 0;       // usual_launch_, usual_queue_: kernel, copy, set
        bool has_launch = true;      // recorded
        bool has_unseen = false;     // behind graph nodes that were not recorded
        bool is_collective = false;  // waits for other ranks: starts no sooner than now
    };
    struct Span {
        std::int64_t start, end;
    };
    [[nodiscard]] Span span_of(const Call& call) const;  // inside the window
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
    std::vector<Part> tail_parts_;  // after the last call to return
    std::int32_t tail_call_ = -1;   // that call
    std::array<std::int64_t, 3> usual_launch_ = {};
    std::array<std::int64_t, 3> usual_queue_ = {};
    std::int64_t usual_tail_ = 0;
    std::int64_t usual_copy_tail_ = 0;  // of copies that block their caller
    std::size_t streams_ = 0;
    std::int64_t unchanged_ns_ = 0;
    double error_percent_ = 0;
};

}  // namespace saturate
