// SPDX-License-Identifier: Apache-2.0
// What the ranks of a data-parallel job do together besides their gradients: begin from the same
// weights, agree on losses and metrics, end together. One process alone is a rank too, for which
// all of this is nothing, so that the trainer need not ask. Training thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/process_group.h"
#include "engine/step.h"
#include "pipeline/sample_order.h"

namespace saturate {

struct RankFact {
    std::string name, value;
};

class Ranks {
  public:
    virtual ~Ranks() = default;
    [[nodiscard]] virtual int rank() const = 0;
    [[nodiscard]] virtual int count() const = 0;
    [[nodiscard]] bool is_first() const { return rank() == 0; }
    [[nodiscard]] Shard shard() const { return {.rank = rank(), .count = count()}; }
    virtual void stands(std::int64_t step, const char* doing) = 0;  // for the others' messages

    // All must have the same. Throws UserError with the first that differs, the same on all.
    virtual void compare(const std::vector<RankFact>& facts) = 0;
    [[nodiscard]] virtual std::string text_of_first(const std::string& mine) = 0;
    virtual void from_first(const NamedTensors& tensors) = 0;  // all get rank 0's values
    // Throws MachineError with the ranks whose weights are not those of rank 0.
    virtual void compare_weights(const NamedTensors& weights, std::int64_t step) = 0;
    // The generators of ranks 1 and up, for a checkpoint, and back. With another number of ranks
    // than they were kept of each begins anew, from the seed, its number and the step.
    // Each is the host's state followed by the device's, where it has one.
    [[nodiscard]] virtual NamedTensors random_states(DeviceBackend& backend) = 0;
    virtual void set_random_states(DeviceBackend& backend, const NamedTensors& kept,
                                   std::uint64_t seed, std::int64_t step) = 0;

    // The step's gradients are summed over the ranks from now on; `buffers` follow rank 0's.
    virtual void join(TrainingStep& step, std::vector<torch::Tensor> buffers,
                      const ReducerSettings& settings) = 0;
    // Returns when the device has the sums of all steps so far; before it is read. Throws RankLost.
    virtual void settle() = 0;
    // After RankLost: whether the device got the sums of this mark. Gives it time to come there.
    [[nodiscard]] virtual AtMark stands_at(std::optional<std::int64_t> mark) = 0;
    // Of the collectives of a step, where the device tells them; see DeviceCollectives.
    [[nodiscard]] virtual std::optional<CollectiveTimes> device_times(std::int64_t mark) = 0;
    // Told with the next step, after which all follow anyone's wish.
    [[nodiscard]] virtual StopWish agree(TrainingStep& step, const StopWish& own) = 0;
    virtual void mean(std::vector<float>& losses) = 0;
    virtual void sum(torch::Tensor& sums, std::int64_t& samples) = 0;
    // The text of the first rank that has one, with its number.
    [[nodiscard]] virtual std::string text_of_any(const std::string& mine) = 0;

    // This rank ends for a reason that it tells; nothing is done together any more.
    virtual void give_up(const std::string& why) noexcept = 0;
    // Another is gone: nothing is done together any more, and the device waits for it no longer.
    virtual void lose_others() noexcept = 0;
};

// Null: one process.
[[nodiscard]] std::unique_ptr<Ranks> make_ranks(ProcessGroup* group);

// Of names, shapes and perhaps values: equal tensors give equal numbers on all machines.
[[nodiscard]] std::uint64_t hash_of(const NamedTensors& tensors, bool with_values);

}  // namespace saturate
