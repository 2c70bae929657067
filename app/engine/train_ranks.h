// SPDX-License-Identifier: Apache-2.0
// The data-parallel part of a training run: the rank of this process, the group that it joins, its
// share of the cores, and the places of its record and log. A single process is rank 0 of 1.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "engine/process_group.h"
#include "engine/train_settings.h"
#include "probe/machine.h"
#include "process/rank_environment.h"

namespace saturate {

class TrainRanks {
  public:
    TrainRanks();  // from the environment; throws UserError
    // True if torchrun, srun, mpirun or our own launcher started this process, even alone.
    [[nodiscard]] bool is_launched() const { return place_.has_value(); }
    [[nodiscard]] int rank() const { return place_ ? place_->rank : 0; }
    [[nodiscard]] int count() const { return place_ ? place_->count : 1; }
    [[nodiscard]] int local_rank() const { return place_ ? place_->local_rank : 0; }
    [[nodiscard]] bool is_first() const { return rank() == 0; }
    [[nodiscard]] ProcessGroup* group() { return group_.get(); }

    // Sets threads, loader workers and memory to the share of this process on the host.
    void divide_host(const Machine& machine, TrainSettings& settings) const;
    void refuse_simulated() const;
    // Waits for the other ranks of a launched job.
    void join(double timeout_seconds);
    // From now on the ranks communicate over the device's own network, if it has one.
    void use_device(const DeviceBackend& backend);

    // Returns RUN for rank 0, RUN/rank<k> for the others.
    [[nodiscard]] std::filesystem::path record_of(const std::filesystem::path& run) const;
    // Under our own launcher, the output of ranks 1 and up goes to log.txt in their record.
    void move_log(const std::filesystem::path& record) const;

    template <typename Work>
    auto first_then_others(const Work& work) {
        if (group_ && !is_first()) (void)group_->text_of_first("");
        auto out = work();
        if (group_ && is_first()) (void)group_->text_of_first("made");
        return out;
    }

    // Runs `work`. If this rank fails before its run starts, tells the other ranks why.
    template <typename Work>
    auto tell_failures(const Work& work) {
        try {
            auto outcome = work();
            outcome.lost_rank = group_ && (group_->is_lost() || outcome.result.problem);
            return outcome;
        } catch (const Failure& failure) {
            if (group_) group_->tell_failed(failure.problems().at(0).found);
            throw;
        }
    }

  private:
    std::optional<RankPlace> place_;
    std::unique_ptr<ProcessGroup> group_;
};

}  // namespace saturate
