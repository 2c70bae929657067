// SPDX-License-Identifier: Apache-2.0
// What the ranks of a data-parallel job do together apart from summing gradients: begin with the
// same weights, agree on losses and metrics, end together. A single process counts as one rank, for
// which these calls do nothing, so the trainer need not distinguish. Training thread.
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

    // Checks that all ranks have the same facts. Throws UserError with the first difference,
    // identical on all ranks.
    virtual void compare(const std::vector<RankFact>& facts) = 0;
    [[nodiscard]] virtual std::string text_of_first(const std::string& mine) = 0;
    virtual void from_first(const NamedTensors& tensors) = 0;  // copies rank 0's values to all
    // Throws MachineError with the ranks whose weights differ from those of rank 0.
    virtual void compare_weights(const NamedTensors& weights, std::int64_t step) = 0;
    // Saves the generators of ranks 1 and up for a checkpoint, and restores them. If the number of
    // ranks has changed, each is seeded anew from the seed, its rank and the step. Each state is
    // the host's followed by the device's, if the device has one.
    [[nodiscard]] virtual NamedTensors random_states(DeviceBackend& backend) = 0;
    virtual void set_random_states(DeviceBackend& backend, const NamedTensors& kept,
                                   std::uint64_t seed, std::int64_t step) = 0;

    // From now on the step sums its gradients over the ranks; `buffers` follow rank 0's.
    virtual void join(TrainingStep& step, std::vector<torch::Tensor> buffers,
                      const ReducerSettings& settings) = 0;
    // Returns when the device has the sums of all steps so far. Call before reading from
    // it. Throws RankLost.
    virtual void settle() = 0;
    // After RankLost: whether the device has the sums of this mark. Gives it time to get there.
    [[nodiscard]] virtual AtMark stands_at(std::optional<std::int64_t> mark) = 0;
    // Times of a step's collectives, if the device measures them; see DeviceCollectives.
    [[nodiscard]] virtual std::optional<CollectiveTimes> device_times(std::int64_t mark) = 0;
    // Sends this rank's wish to stop with the next step and returns what any rank wished in the
    // last one.
    [[nodiscard]] virtual StopWish agree(TrainingStep& step, const StopWish& own) = 0;
    virtual void mean(std::vector<float>& losses) = 0;
    virtual void sum(torch::Tensor& sums, std::int64_t& samples) = 0;
    // The text of the first rank that has one, with its number.
    [[nodiscard]] virtual std::string text_of_any(const std::string& mine) = 0;

    // Announces why this rank ends. No collective works afterwards.
    virtual void give_up(const std::string& why) noexcept = 0;
    // Another rank is gone: no more collectives, and the device stops waiting for it.
    virtual void lose_others() noexcept = 0;
};

// `group` is null for a single process.
[[nodiscard]] std::unique_ptr<Ranks> make_ranks(ProcessGroup* group);

// The device that a rank trains on.
struct RankDevice {
    std::string kind;        // "cuda", "cpu"
    std::string host;        // unique among the hosts; empty if unknown
    std::string pci_bus_id;  // of a GPU; empty if unknown
};
// Call it before the first collective on a device: that would wait forever for a rank on another
// kind of device, and fails if two ranks have the same GPU. Throws the same UserError on all ranks.
void compare_devices(ProcessGroup& group, const RankDevice& own);

// Hashes names, shapes and optionally values. Equal tensors have equal hashes on all machines.
[[nodiscard]] std::uint64_t hash_of(const NamedTensors& tensors, bool with_values);

}  // namespace saturate
