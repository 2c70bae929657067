// SPDX-License-Identifier: Apache-2.0
// One training loop of the engine for bench/step, bench/ddp and bench/scaling: the counterpart of
// step_peer.py, same wish, same answers. Ways: native, native_compiled (the compiled gradient
// graph). With "ranks" it is one rank of a group. "steps N" is answered by "N SECONDS EXPOSED TOTAL
// FORWARD BACKWARD OPTIMIZER", in seconds, "sum BYTES" by what one sum over the ranks takes,
// "buckets 0" by the bytes of gradients in each of train's buckets.
#include "engine/step.h"

#include <fmt/format.h>

#include <functional>
#include <iostream>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "engine/compiled_step.h"
#include "engine/seed.h"
#include "workloads/classifier.h"
#include "workloads/locator.h"
#include "workloads/restoration.h"
#include "workloads/sequence.h"
#include "workloads/tiny_mlp.h"
#include "workloads/window_cnn.h"

namespace saturate {
namespace {

std::unique_ptr<Job> job_of(const std::string& name, const Json& settings) {
    auto whole = [&](const char* key) { return settings[key].integer().value_or(0); };
    if (name == "restoration")
        return restoration_job({.shape = {whole("base_channels"), whole("num_blocks")}}, {});
    if (name == "locator") return locator_job(whole("base_channels"), {});
    if (name == "classifier")
        return classifier_job({whole("base_channels"), whole("num_classes")}, {});
    if (name == "sequence")
        return sequence_job({.num_features = whole("num_features"),
                             .hidden_size = whole("hidden_size"),
                             .num_layers = whole("num_layers")},
                            {});
    if (name == "window_cnn")
        return window_cnn_job({whole("window_size"), whole("num_features"), whole("base_channels")},
                              {});
    return tiny_mlp_job(whole("hidden_size"));
}

torch::Tensor field_of(const Json& spec) {
    std::vector<std::int64_t> shape;
    for (const Json& size : spec["shape"].items()) shape.push_back(size.integer().value_or(1));
    if (auto below = spec["below"].integer()) return torch::randint(*below, shape, torch::kLong);
    return torch::rand(shape) * spec["scale"].number().value_or(1);
}

int run(const Json& wish) {
    std::string way = wish["way"].string().value_or("");
    bool channels_last = wish["layout"].string() == "channels_last";
    auto threads = static_cast<int>(wish["threads"].integer().value_or(1));
    auto backend = make_cpu_backend({.threads = threads}, false);
    set_seed(0);
    auto job = job_of(wish["job"].string().value_or(""), wish["settings"]);
    set_seed(1);
    std::vector<TensorBatch> batches(8);
    for (TensorBatch& batch : batches) {
        for (const Json& spec : wish["fields"].items()) batch.push_back(field_of(spec));
        if (channels_last) batch = as_channels_last(batch);
    }
    StepSettings settings{.channels_last = channels_last,
                          .compile = way == "native_compiled",
                          .optimizer = {.kind = OptimizerKind::adamw, .weight_decay = 1e-2}};
    TrainingStep step(*job, settings, *backend);
    std::unique_ptr<ProcessGroup> group;
    std::optional<GradientReducer> reducer;
    if (auto ranks = static_cast<int>(wish["ranks"].integer().value_or(1)); ranks > 1) {
        group = std::make_unique<ProcessGroup>(
            GroupSettings{.rank = static_cast<int>(wish["rank"].integer().value_or(0)),
                          .count = ranks,
                          .port = static_cast<int>(wish["port"].integer().value_or(29500))});
        ReducerSettings how;
        if (auto bytes = wish["bucket_bytes"].integer()) how.bucket_bytes = *bytes;
        if (auto bytes = wish["first_bucket_bytes"].integer()) how.first_bucket_bytes = *bytes;
        reducer.emplace(*group, step.parameters(), job->model().buffers(), how);
        step.set_reducer(&*reducer);
    }
    std::int64_t done = 0;
    StepTimes times;
    auto one = [&] { times = step.run({&batches[static_cast<std::size_t>(done++ % 8)], 1}, 1e-3); };
    for (int i = 0; i < 8; ++i) {
        one();
        std::string note = step.take_note();
        if (note.empty()) continue;
        fmt::print(stderr, "{}\n", note);
        if (note.find("not compiled") == std::string::npos) continue;
        fmt::print("{}\n", note);  // this way is not there: said instead of "ready"
        return 1;
    }
    fmt::print("ready {:.6g}\n", step.loss().item<double>());
    std::fflush(stdout);
    for (std::string word; std::cin >> word;) {
        double seconds = 0;  // or steps
        std::cin >> seconds;
        if (word == "buckets") {
            for (const std::vector<std::size_t>& bucket :
                 divide_into_buckets(step.parameters(), {})) {
                std::size_t bytes = 0;
                for (std::size_t k : bucket) bytes += step.parameters()[k].second.nbytes();
                fmt::print("{} ", bytes);
            }
            fmt::print("\n");
            std::fflush(stdout);
            continue;
        }
        if (word == "sum" && group) {
            torch::Tensor numbers = torch::ones({static_cast<std::int64_t>(seconds) / 4});
            constexpr int kTimes = 20;
            group->sum(numbers);
            std::int64_t begin = now_ns();
            for (int i = 0; i < kTimes; ++i) group->sum(numbers);
            fmt::print("{}\n", static_cast<double>(now_ns() - begin) * 1e-9 / kTimes);
            std::fflush(stdout);
            continue;
        }
        if (word == "steps") {
            StepTimes all;
            std::int64_t begin = now_ns();
            for (double i = 0; i < seconds; ++i) {
                one();
                all.communication_ns += times.communication_ns;
                all.communication_total_ns += times.communication_total_ns;
                all.forward_ns += times.forward_ns;
                all.backward_ns += times.backward_ns;
                all.optimizer_ns += times.optimizer_ns;
            }
            fmt::print("{} {}", seconds, static_cast<double>(now_ns() - begin) * 1e-9);
            for (std::int64_t part : {all.communication_ns, all.communication_total_ns,
                                      all.forward_ns, all.backward_ns, all.optimizer_ns})
                fmt::print(" {}", static_cast<double>(part) * 1e-9);
            fmt::print("\n");
            std::fflush(stdout);
            continue;
        }
        std::int64_t begin = now_ns(), end = begin + static_cast<std::int64_t>(seconds * 1e9);
        std::int64_t steps = 0, now = begin;
        for (; now < end; now = now_ns(), ++steps) one();
        fmt::print("{} {}\n", steps, static_cast<double>(now - begin) * 1e-9);
        std::fflush(stdout);
    }
    return 0;
}

}  // namespace
}  // namespace saturate

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    return saturate::run(saturate::Json::parse(argv[1], "wish"));
}
