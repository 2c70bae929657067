// SPDX-License-Identifier: Apache-2.0
// Whole runs on a device: evaluation, moving average, checkpoint and resume, compared with the CPU;
// and gradients summed over ranks.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/free_port.h"
#include "engine/rank_team.h"
#include "engine/seed.h"
#include "engine/selftest.h"
#include "engine/selftest_net.h"
#include "engine/trainer.h"
#include "telemetry/recorder.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

class ScratchFolder {
  public:
    ScratchFolder() {
        std::string pattern = (fs::temp_directory_path() / "saturate-selftest-XXXXXX").string();
        if (!::mkdtemp(pattern.data()))
            throw MachineError({.where = {fs::temp_directory_path().string()},
                                .found = "cannot create a folder there",
                                .expected = "room for a checkpoint",
                                .fix = "TMPDIR=/another/folder"});
        path_ = pattern;
    }
    ~ScratchFolder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    [[nodiscard]] fs::path path() const { return path_; }

  private:
    fs::path path_;
};

class Nobody final : public TrainObserver {
  public:
    void progress(const TrainProgress&) override {}
    void say(const std::string&) override {}
    bool stop_wanted(const TrainPlace&) override { return false; }
};

TrainResult train(DeviceBackend& backend, std::int64_t epochs, const fs::path& checkpoints,
                  bool resume) {
    TrainSettings settings;
    settings.batch_size = settings.eval_batch_size = kSelftestBatch;
    settings.workers = 2;
    settings.epochs = epochs;
    settings.log_interval = 2;
    settings.ema = 0.9;
    settings.schedule.highest = 0.01;
    settings.step.optimizer.kind = OptimizerKind::sgd;
    set_seed(settings.seed);
    SelftestJob job;
    Nobody observer;
    MemoryRecorder recorder;
    Trainer trainer(job, settings, {.checkpoints = checkpoints}, backend, observer);
    if (resume) trainer.restore(find_checkpoint(checkpoints).value());
    TrainResult result = trainer.run(recorder);
    if (result.problem) throw MachineError(*result.problem);
    return result;
}

// Reads back the best model of a run and evaluates it on the CPU.
SelftestCheck check_evaluation(DeviceBackend& backend) {
    ScratchFolder scratch;
    TrainResult result = train(backend, 3, scratch.path() / "c", false);
    Checkpoint best = read_checkpoint(scratch.path() / "c" / "best");
    SelftestJob job;
    NamedTensors into;
    for (const auto& item : job.net.named_parameters()) into.emplace_back(item.key(), item.value());
    load_tensors(best.model, into, "best");
    auto cpu = make_cpu_backend({}, false);
    MemoryRecorder recorder;
    Evaluation judged = evaluate(job, job.validation_data(),
                                 {.batch_size = kSelftestBatch, .workers = 0}, *cpu, recorder);
    SelftestCheck check = check_within(std::fabs(judged.value - *result.metric_best), 1e-4);
    bool learnt = *result.metric_best < *result.metric_first;
    check.passed = check.passed && learnt;
    check.detail += learnt ? "" : "; nothing was learned";
    return check;
}

SelftestCheck check_resume(DeviceBackend& backend) {
    ScratchFolder scratch;
    TrainResult whole = train(backend, 3, scratch.path() / "whole", false);
    (void)train(backend, 2, scratch.path() / "parts", false);
    TrainResult parts = train(backend, 3, scratch.path() / "parts", true);
    return check_within(std::fabs(*parts.metric - *whole.metric), 1e-4);
}

// Trains a rank for four steps on its part of each batch and returns its weights in `out`.
void train_rank(int rank, int count, int port, const OpenRank& open, std::mutex& seeding,
                SelftestTrained& out) {
    ProcessGroup group({.rank = rank, .count = count, .port = port});
    std::unique_ptr<DeviceBackend> backend = open(group);
    std::unique_lock lock(seeding);  // ranks are threads here and share the process's generator
    set_seed(1);
    SelftestJob job;
    lock.unlock();
    StepSettings settings{.optimizer = {.kind = OptimizerKind::sgd}};
    TrainingStep step(job, settings, *backend);
    std::unique_ptr<Ranks> ranks = make_ranks(&group);
    ranks->join(step, {}, {});
    std::int64_t own = kSelftestBatch / count;
    for (int i = 0; i < 4; ++i) {
        TensorBatch there;
        for (const torch::Tensor& tensor : selftest_batch(i % 3, rank * own, (rank + 1) * own))
            there.push_back(tensor.to(backend->device()));
        step.run({&there, 1}, 0.01);
    }
    for (const torch::Tensor& weight : job.net.parameters())
        out.weights.push_back(weight.detach().to(torch::kCPU, torch::kDouble));
}

SelftestCheck check_ranks(int count, const OpenRank& open) {
    int port = free_port();
    std::vector<SelftestTrained> trained(static_cast<std::size_t>(count));
    std::vector<std::string> said(static_cast<std::size_t>(count));
    std::mutex seeding;
    {
        std::vector<std::jthread> threads;
        for (int rank = 0; rank < count; ++rank) {
            threads.emplace_back([&, rank] {
                auto i = static_cast<std::size_t>(rank);
                try {
                    train_rank(rank, count, port, open, seeding, trained[i]);
                } catch (const std::exception& error) {
                    said[i] = error.what();
                }
            });
        }
    }
    for (std::size_t i = 0; i < said.size(); ++i) {
        if (!said[i].empty()) return {"", false, fmt::format("rank {}: {}", i, said[i])};
    }
    auto cpu = make_cpu_backend({}, false);
    SelftestTrained whole =
        selftest_train(*cpu, {.count = 4, .batches = {kSelftestBatch / count * count}});
    double error = 0;
    for (const SelftestTrained& one : trained)
        error = std::fmax(error, largest_difference(one, whole));
    return check_within(error, kSelftestAllowed);
}

}  // namespace

std::vector<SelftestItem> selftest_run_items(DeviceBackend& backend) {
    return {{"evaluation, moving mean and checkpoint against the CPU",
             [&] { return check_evaluation(backend); }},
            {"a resumed run against one that was not interrupted",
             [&] { return check_resume(backend); }}};
}

SelftestItem selftest_ranks_item(int count, OpenRank open) {
    return {fmt::format("gradients summed over {} {}", count, count == 1 ? "rank" : "ranks"),
            [count, open = std::move(open)] { return check_ranks(count, open); }};
}

// Opens the device in a separate thread, because opening changes the thread's current device.
SelftestItem selftest_device_item(std::string name,
                                  std::function<std::unique_ptr<DeviceBackend>()> open) {
    return {std::move(name), [open = std::move(open)] {
                SelftestCheck check;
                std::jthread([&] {
                    check = run_check({"", [&] {
                                           auto backend = open();
                                           return check_within(
                                               largest_difference(selftest_train(*backend, {}),
                                                                  selftest_train_plainly()),
                                               kSelftestAllowed);
                                       }});
                }).join();
                return check;
            }};
}

}  // namespace saturate
