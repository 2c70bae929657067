// SPDX-License-Identifier: Apache-2.0
// Runs the small job and keeps its results.
#pragma once

#include <gtest/gtest.h>

#include "engine/seed.h"
#include "small_job.h"
#include "support/run.h"

namespace saturate {

struct SmallRun {
    TrainResult result;
    MemoryRecorder recorder;
    ListeningObserver observer;

    // Returns the losses by step, as far as the record has them.
    [[nodiscard]] std::vector<std::pair<std::int64_t, double>> losses() const {
        std::vector<std::pair<std::int64_t, double>> out;
        for (const StepRecord& step : recorder.steps) {
            if (step.loss) out.emplace_back(*step.loss_step, *step.loss);
        }
        return out;
    }
    [[nodiscard]] int count(EventKind kind) const {
        int out = 0;
        for (const EventRecord& event : recorder.events) out += event.kind == kind ? 1 : 0;
        return out;
    }
    [[nodiscard]] std::string event_text(EventKind kind) const {
        for (const EventRecord& event : recorder.events) {
            if (event.kind == kind) return event.text;
        }
        return "";
    }
};

struct SmallWish {
    SmallJobSettings job = {};
    TrainSettings train = small_settings();
    TrainPlaces places = {};
    bool resume = false;
    std::int64_t stop_after = -1;
};

inline std::unique_ptr<SmallRun> train(const SmallWish& setup, DeviceBackend& backend) {
    auto ran = std::make_unique<SmallRun>();
    ran->observer.stop_after = setup.stop_after;
    set_seed(setup.train.seed);
    SmallJob job(setup.job);
    Trainer trainer(job, setup.train, setup.places, backend, ran->observer);
    if (setup.resume) {
        auto found = find_checkpoint(setup.places.checkpoints);
        EXPECT_TRUE(found);
        trainer.restore(*found);
    }
    ran->result = trainer.run(ran->recorder);
    return ran;
}

// Trains on the CPU.
inline std::unique_ptr<SmallRun> train(const SmallWish& setup) {
    auto backend = make_cpu_backend(setup.train.device, false);
    return train(setup, *backend);
}

}  // namespace saturate
