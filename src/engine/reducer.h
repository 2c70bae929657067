// SPDX-License-Identifier: Apache-2.0
// Gradients summed over the ranks while the backward pass still runs: parameters in buckets, in
// reverse order, each bucket sent as soon as its last gradient is there. c10d's own Reducer cannot
// be used: when one rank runs out of memory in its backward pass, the others wait in a collective
// that it never begins; here it begins all of them and says so. Training thread, and autograd's.
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
    bool compress = false;                        // bf16 on the wire
};

// The numbers of the parameters that are sent together, in the order of sending.
[[nodiscard]] std::vector<std::vector<std::size_t>> divide_into_buckets(
    const NamedTensors& parameters, const ReducerSettings& settings);

// Why a rank would end; all end together, for the first reason that any has.
struct StopWish {
    bool interrupted = false;
    bool timed_out = false;
};

struct ReducerAnswer {
    bool any_failed = false;      // a rank had no memory: the gradients are of no use
    StopWish stop;                // of any rank
    std::int64_t exposed_ns = 0;  // waited after the backward pass
    std::int64_t total_ns = 0;    // something was under way, hidden or not; 0: unknown
    std::int64_t collectives = 0;
    std::int64_t bytes = 0;            // of this rank, in all of them
    std::optional<std::int64_t> mark;  // of the device's collectives, which tell their times later
};

class GradientReducer {
  public:
    // Gradients are set to views into the buckets. `buffers` follow rank 0's after every step.
    GradientReducer(ProcessGroup& group, const NamedTensors& parameters,
                    std::vector<torch::Tensor> buffers, const ReducerSettings& settings);
    ~GradientReducer();
    GradientReducer(const GradientReducer&) = delete;
    GradientReducer& operator=(const GradientReducer&) = delete;

    [[nodiscard]] int ranks() const;
    // Sending begins with the next gradient that is complete: before the last backward of a step.
    void begin();
    // After it; gradients that no backward pass told about (compiled graphs) are sent now.
    // Parameters whose gradient no rank has keep none. Throws RankLost.
    [[nodiscard]] ReducerAnswer finish(bool failed, const StopWish& wish);
    // Returns when the device has the sums of all steps so far: what is read from it then does not
    // wait for a rank. Throws RankLost.
    void settle();
    // Whether memory ran out on any rank in what follows finish(): before the weights change.
    [[nodiscard]] bool any_failed(bool failed);
    // Once: parameters that got no gradient in the first step, by name; may be empty.
    [[nodiscard]] std::string take_note();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
