// SPDX-License-Identifier: Apache-2.0
// Sums gradients over the ranks while the backward pass still runs. Parameters are grouped into
// buckets in reverse order, and each bucket is sent as soon as its last gradient is ready. c10d's
// own Reducer cannot be used: when one rank runs out of memory in its backward pass, the others
// wait in a collective that this rank never begins. Here the rank still begins all collectives and
// reports the failure. Training thread and autograd's threads.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/optimizer.h"
#include "engine/process_group.h"

namespace saturate {

struct ReducerSettings {
    std::int64_t bucket_bytes = 4 << 20;
    std::int64_t first_bucket_bytes = 256 << 10;  // small, so that sending begins early
    bool compress = false;                        // send as bf16
};

// Returns the indices of the parameters sent together, in the order of sending.
[[nodiscard]] std::vector<std::vector<std::size_t>> divide_into_buckets(
    const NamedTensors& parameters, const ReducerSettings& settings);

// Why a rank wants to stop. All ranks stop together, for the first reason that any of them has.
struct StopWish {
    bool interrupted = false;
    bool timed_out = false;
};

struct ReducerAnswer {
    bool any_failed = false;      // a rank ran out of memory: the gradients are unusable
    StopWish stop;                // what any rank wished
    std::int64_t exposed_ns = 0;  // waited after the backward pass
    std::int64_t total_ns = 0;    // collectives in progress, hidden or not; 0: unknown
    std::int64_t collectives = 0;
    std::int64_t bytes = 0;            // sent by this rank in all of them
    std::optional<std::int64_t> mark;  // of the device's collectives, whose times come later
};

class GradientReducer {
  public:
    // Makes the gradients views into the buckets. `buffers` follow rank 0's after every step.
    GradientReducer(ProcessGroup& group, const NamedTensors& parameters,
                    std::vector<torch::Tensor> buffers, const ReducerSettings& settings);
    ~GradientReducer();
    GradientReducer(const GradientReducer&) = delete;
    GradientReducer& operator=(const GradientReducer&) = delete;

    [[nodiscard]] int ranks() const;
    // Call before the last backward pass of a step: each bucket that becomes complete is then sent.
    void begin();
    // Call after the last backward pass. Sends the gradients that no hook reported (compiled
    // graphs). A parameter without a gradient on any rank stays without one. Throws RankLost.
    [[nodiscard]] ReducerAnswer finish(bool failed, const StopWish& wish);
    // Returns when the device has the sums of all steps so far; reads from it then do not wait for
    // a rank. Throws RankLost.
    void settle();
    // Returns whether any rank ran out of memory between finish() and the change of the weights.
    [[nodiscard]] bool any_failed(bool failed);
    // Names the parameters without a gradient, after the first step that has any. Returned once;
    // may be empty.
    [[nodiscard]] std::string take_note();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
