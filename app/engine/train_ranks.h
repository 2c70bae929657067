// SPDX-License-Identifier: Apache-2.0
// The part that a data-parallel job plays in a run: who this process is, the group it joins, its
// share of the cores, where its record and its log go. One process on its own is rank 0 of 1.
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
    // By torchrun, srun, mpirun or our own launcher; maybe as the only process of the job.
    [[nodiscard]] bool is_launched() const { return place_.has_value(); }
    [[nodiscard]] int rank() const { return place_ ? place_->rank : 0; }
    [[nodiscard]] int count() const { return place_ ? place_->count : 1; }
    [[nodiscard]] int local_rank() const { return place_ ? place_->local_rank : 0; }
    [[nodiscard]] bool is_first() const { return rank() == 0; }
    [[nodiscard]] ProcessGroup* group() { return group_.get(); }

    // Threads, loader workers and memory of this process out of the host's.
    void divide_host(const Machine& machine, TrainSettings& settings) const;
    void refuse_simulated() const;
    // Waits for the others of a launched job.
    void join(double timeout_seconds);
    // What the ranks share goes over the device's own network from now on, where it has one.
    void use_device(const DeviceBackend& backend);

    // RUN for rank 0, RUN/rank<k> for the others.
    [[nodiscard]] std::filesystem::path record_of(const std::filesystem::path& run) const;
    // Under our own launcher: what rank 1 and up say goes to log.txt in their record.
    void move_log(const std::filesystem::path& record) const;

    template <typename Work>
    auto first_then_others(const Work& work) {
        if (group_ && !is_first()) (void)group_->text_of_first("");
        auto out = work();
        if (group_ && is_first()) (void)group_->text_of_first("made");
        return out;
    }

    // What ends this rank before its run begins is told to the others.
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
