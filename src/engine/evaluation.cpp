// SPDX-License-Identifier: Apache-2.0
#include "engine/evaluation.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "engine/feed.h"
#include "pipeline/shard_source.h"

namespace saturate {

namespace {

// Puts the model into evaluation mode for a scope.
class Evaluating {
  public:
    explicit Evaluating(torch::nn::Module& model) : model_(model) { model_.eval(); }
    ~Evaluating() { model_.train(); }
    Evaluating(const Evaluating&) = delete;
    Evaluating& operator=(const Evaluating&) = delete;

  private:
    torch::nn::Module& model_;
};

void add(Job& job, const TensorBatch& batch, const EvaluationSettings& settings,
         DeviceBackend& backend, torch::Tensor& sums) {
    Autocast mixed(backend.device().type(), settings.precision);
    job.evaluate(settings.channels_last ? as_channels_last(batch) : batch, sums);
}

// Evaluates all of `data` and adds the results to `sums`.
void add_data(Job& job, std::shared_ptr<const SampleSource> data,
              const EvaluationSettings& settings, DeviceBackend& backend, Recorder& recorder,
              torch::Tensor& sums, Evaluation& out) {
    Loader loader(std::move(data),
                  {.batch_size = settings.batch_size,
                   .workers = settings.workers,
                   .cores = settings.cores,
                   .prefetch_bytes = settings.prefetch_bytes,
                   .shuffle = false,
                   .drop_last = false,
                   .seed = settings.seed,
                   .memory = settings.memory},
                  recorder);
    Feed feed(loader, backend, {});
    while (std::optional<Upload> upload = feed.next()) {
        std::int64_t size = upload->batch.size;
        for (std::int64_t begin = 0; begin < size;) {
            std::int64_t end = std::min(size, begin + out.batch_size);
            torch::Tensor before = sums.clone();
            try {
                with_memory_errors([&] {
                    add(job,
                        end - begin == size ? upload->tensors
                                            : part_of(upload->tensors, begin, end),
                        settings, backend, sums);
                });
                begin = end;
            } catch (const c10::OutOfMemoryError& error) {
                if (end - begin == 1) {
                    throw MachineError(
                        {.found = fmt::format("out of memory while evaluating one sample: {}",
                                              error.what_without_backtrace()),
                         .expected = "memory for the model and one sample",
                         .fix = "a smaller model, or a larger device"});
                }
                out.batch_size = (end - begin + 1) / 2;
                sums = before;
                backend.release_cached();
            }
        }
        out.samples += size;
        upload.reset();
        (void)backend.let_catch_up();
    }
}

}  // namespace

Evaluation evaluate(Job& job, std::shared_ptr<const SampleSource> data,
                    const EvaluationSettings& settings, DeviceBackend& backend,
                    Recorder& recorder) {
    torch::NoGradGuard no_gradients;
    Evaluating mode(job.model());
    torch::Tensor sums = torch::zeros(
        {job.metric_sums()}, torch::TensorOptions().dtype(torch::kDouble).device(backend.device()));
    Evaluation out{.batch_size = settings.batch_size};
    std::shared_ptr<const SampleSource> part = settings.shard.count > 1
                                                   ? part_of_source(std::move(data), settings.shard)
                                                   : std::move(data);
    if (part->size() > 0) add_data(job, part, settings, backend, recorder, sums, out);
    if (settings.share) settings.share(sums, out.samples);
    out.value = job.metric_value(sums.cpu());
    return out;
}

}  // namespace saturate
