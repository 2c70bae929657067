// SPDX-License-Identifier: Apache-2.0
// Makes traces of known causes in known amounts: a small model of a host thread, a compute stream
// and a communication stream runs a program of waits, launches, reads and collectives. A second run
// of the program with one cause changed shows the true gain of its fix.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "diagnosis/timeline.h"

namespace saturate {

enum class Do {
    input,       // waits for the DataLoader
    launch,      // an operator that launches a kernel
    python,      // Python between operators
    read,        // item()
    wait,        // cudaDeviceSynchronize
    allocate,    // cudaFree, which waits for the GPU
    collective,  // the next kernel waits for it
    first_call,  // start-up: a call that creates a context
    first_launch,
    record,  // records a CUDA graph
    step,    // starts a step
};

struct Action {
    Do what;
    std::int64_t host_ns = 0;
    std::int64_t gpu_ns = 0;
};

// The effect of a fix.
struct MixChange {
    double input = 1, launch = 1, python = 1, allocate = 1, collective = 1;
    bool reads_wait = true, waits_wait = true, allocations_wait = true;
};

struct MixOptions {
    bool marks_steps = true;
    bool has_stacks = false;
    double drops_launches = 0;            // share of the launches that is not recorded
    double cuts_start = 0, cuts_end = 0;  // shares of the time that is cut off
    unsigned seed = 1;                    // for choosing the dropped launches
};

class Mix {
  public:
    std::vector<Action> prelude;  // happens once
    std::vector<Action> steps;    // separated by Do::step
    bool is_training = true;

    // The result of a run: the trace, and the true times of GPU and host.
    struct Run {
        std::string text;  // the trace
        std::int64_t prelude_ns = 0, end_ns = 0;
        struct Busy {
            std::int64_t start, end;
        };
        std::vector<Busy> gpu;
        struct Host {
            std::int64_t start, end;
            Do what;
        };
        std::vector<Host> host;

        // Returns the idle time of the GPU in [from, to) while the host did `what`.
        [[nodiscard]] std::int64_t idle(Do what, std::int64_t from, std::int64_t to) const {
            std::int64_t sum = 0;
            for (const Host& one : host) {
                if (one.what != what) continue;
                std::int64_t at = std::max(one.start, from), end = std::min(one.end, to);
                if (end <= at) continue;
                std::int64_t busy = 0;
                auto first = std::ranges::upper_bound(gpu, at, {}, &Busy::end);
                for (; first != gpu.end() && first->start < end; ++first)
                    busy += std::min(first->end, end) - std::max(first->start, at);
                sum += end - at - busy;
            }
            return sum;
        }
        [[nodiscard]] std::int64_t collectives(std::int64_t from, std::int64_t to) const {
            std::int64_t sum = 0;
            for (const Busy& one : exchanged)
                sum += std::max<std::int64_t>(0, std::min(one.end, to) - std::max(one.start, from));
            return sum;
        }
        std::vector<Busy> exchanged;
    };

    [[nodiscard]] Run run(const MixChange& change = {}, const MixOptions& options = {}) const {
        return Model(change, options).run(*this);
    }

  private:
    static constexpr std::int64_t kCall = 5'000, kWay = 4'000, kQueue = 1'000;

    class Model {
      public:
        Model(const MixChange& change, const MixOptions& options)
            : change_(change), options_(options), random_(options.seed) {}

        Run run(const Mix& mix) {
            if (options_.marks_steps) begin_step();
            for (const Action& action : mix.prelude) act(action);
            if (!mix.prelude.empty()) {  // everything finishes before the steps start
                call("cudaStreamSynchronize", now_, std::max(now_ + 2'000, all_free() + 3'000));
                now_ = std::max(now_ + 2'000, all_free() + 3'000);
                end_step();
            }
            run_.prelude_ns = mix.prelude.empty() ? 0 : now_;
            step_began_ = now_;
            for (const Action& action : mix.steps) act(action);
            end_step();
            if (mix.is_training) host("cpu_op", "AddmmBackward0", now_, 1'000);
            now_ += 1'000;
            std::int64_t done = std::max(now_ + 2'000, all_free() + 3'000);
            call("cudaDeviceSynchronize", now_, done);  // the profiler's own call
            run_.end_ns = done;
            std::ranges::sort(run_.gpu, {}, &Run::Busy::start);
            finish();
            return std::move(run_);
        }

      private:
        struct Written {
            std::int64_t start, length;
            std::string text;  // JSON up to "ts"
            bool is_call = false;
        };

        [[nodiscard]] std::int64_t all_free() const { return std::max(compute_free_, comm_free_); }
        static std::int64_t scaled(std::int64_t ns, double scale) {
            return static_cast<std::int64_t>(static_cast<double>(ns) * scale);
        }

        void write(std::int64_t start, std::int64_t length, std::string text, bool is_call) {
            written_.push_back({start, length, std::move(text), is_call});
        }
        void host(std::string_view category, std::string_view name, std::int64_t start,
                  std::int64_t length) {
            write(start, length,
                  fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":9,"tid":1,)", category,
                              name),
                  false);
        }
        void call(std::string_view name, std::int64_t start, std::int64_t end, int id = 0) {
            write(start, end - start,
                  fmt::format(R"({{"ph":"X","cat":"cuda_runtime","name":"{}","pid":9,"tid":1,)"
                              R"("args":{{"correlation":{}}},)",
                              name, id),
                  true);
        }
        void gpu(std::string_view category, std::string_view name, std::int64_t start,
                 std::int64_t length, int id, int stream) {
            write(start, length,
                  fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":0,"tid":{},"args":{{)"
                              R"("device":0,"stream":{},"correlation":{},"grid":[200,1,1],)"
                              R"("bytes":1000}},)",
                              category, name, stream, stream, id),
                  false);
            run_.gpu.push_back({start, start + length});
        }
        void spend(Do what, std::int64_t ns) {
            run_.host.push_back({now_, now_ + ns, what});
            now_ += ns;
        }

        void begin_step() { step_began_ = now_; }
        void end_step() {
            if (options_.marks_steps && now_ > step_began_)
                host("user_annotation", fmt::format("ProfilerStep#{}", ++step_), step_began_,
                     now_ - step_began_);
            step_began_ = now_;
        }

        void act(const Action& action) {
            switch (action.what) {
                case Do::step:
                    end_step();
                    break;
                case Do::input: {
                    std::int64_t ns = scaled(action.host_ns, change_.input);
                    host("user_annotation",
                         "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", now_, ns);
                    spend(Do::input, ns);
                    break;
                }
                case Do::python: {
                    std::int64_t ns = scaled(action.host_ns, change_.python);
                    if (options_.has_stacks)
                        host("python_function", "train.py(10): prepare", now_, ns);
                    spend(Do::python, ns);
                    break;
                }
                case Do::launch:
                    launch(action, "ampere_bf16_s16816gemm_128x128", "cudaLaunchKernel",
                           change_.launch);
                    break;
                case Do::first_launch:
                    launch(action, fmt::format("first_{}_s16816gemm", ++names_), "cudaLaunchKernel",
                           1.0, true);
                    break;
                case Do::collective:
                    collective(action);
                    break;
                case Do::read:
                    read();
                    break;
                case Do::wait: {
                    std::int64_t end = now_ + 2'000;
                    if (change_.waits_wait) end = std::max(end, all_free() + 3'000);
                    call("cudaDeviceSynchronize", now_, end);
                    spend(Do::wait, end - now_);
                    break;
                }
                case Do::allocate: {
                    std::int64_t begin =
                        change_.allocations_wait ? std::max(now_, all_free()) : now_;
                    std::int64_t end = begin + scaled(action.host_ns, change_.allocate);
                    call("cudaFree", now_, end);
                    run_.host.push_back({now_, end, Do::allocate});
                    now_ = end;
                    break;
                }
                case Do::first_call:
                    call("cudaStreamCreateWithFlags", now_, now_ + action.host_ns);
                    spend(Do::first_call, action.host_ns);
                    break;
                case Do::record: {
                    std::int64_t ns = action.host_ns;
                    host("cpu_op", "Torch-Compiled Region: 0/0", now_, ns);
                    call("cudaStreamBeginCapture", now_ + ns / 4, now_ + ns / 4 + 3'000);
                    for (std::int64_t i = 0; i < 20; ++i)
                        call("cudaLaunchKernel", now_ + ns / 4 + 5'000 + i * ns / 80,
                             now_ + ns / 4 + 9'000 + i * ns / 80, ++id_);
                    call("cudaStreamEndCapture", now_ + ns / 2 + 20'000, now_ + ns / 2 + 25'000);
                    call("cudaGraphInstantiate", now_ + ns / 2 + 30'000, now_ + ns - 10'000);
                    spend(Do::record, ns);
                    break;
                }
            }
        }

        // The call is at the end of its operator.
        void launch(const Action& action, std::string_view kernel, std::string_view name,
                    double scale, bool is_first = false) {
            std::int64_t own = scaled(std::max(action.host_ns, kCall), scale);
            std::int64_t length = is_first ? own - 1'000 : scaled(kCall, scale);
            std::int64_t called = now_ + own - length;
            host("cpu_op", "aten::mm", now_, own);
            int id = ++id_;
            call(name, called, called + length, id);
            std::int64_t ready = is_first ? called + length : called + kWay;
            std::int64_t start = std::max(ready, std::max(compute_free_, waits_for_) + kQueue);
            gpu("kernel", kernel, start, action.gpu_ns, id, 7);
            compute_free_ = start + action.gpu_ns;
            spend(is_first ? Do::first_launch : Do::launch, own);
        }

        void collective(const Action& action) {
            std::int64_t own = scaled(20'000, change_.launch);
            std::int64_t called = now_ + own - scaled(kCall, change_.launch);
            host("cpu_op", "nccl:all_reduce", now_, own);
            int id = ++id_;
            call("cudaLaunchKernel", called, called + scaled(kCall, change_.launch), id);
            std::int64_t start =
                std::max(called + kWay, std::max(compute_free_, comm_free_) + kQueue);
            std::int64_t length = scaled(action.gpu_ns, change_.collective);
            gpu("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", start, length, id, 20);
            run_.exchanged.push_back({start, start + length});
            comm_free_ = waits_for_ = start + length;
            spend(Do::launch, own);
        }

        void read() {
            std::int64_t began = now_;
            std::int64_t called = now_ + 3'000;
            int id = ++id_;
            std::int64_t start =
                std::max(called + kWay, std::max(compute_free_, waits_for_) + kQueue);
            gpu("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", start, 2'000, id, 7);
            compute_free_ = start + 2'000;
            std::int64_t copied = change_.reads_wait
                                      ? std::max(called + kCall, compute_free_ + 3'000)
                                      : called + kCall;
            call("cudaMemcpyAsync", called, copied, id);
            call("cudaStreamSynchronize", copied + 500, copied + 2'500);
            std::int64_t end = copied + 3'000;
            host("cpu_op", "aten::item", began, end - began);
            host("cpu_op", "aten::_local_scalar_dense", began + 1'000, end - began - 1'500);
            spend(Do::read, end - now_);
        }

        // Drops the events that the options leave out, then writes the text.
        void finish() {
            std::int64_t from = scaled(run_.end_ns, options_.cuts_start);
            std::int64_t to = run_.end_ns - scaled(run_.end_ns, options_.cuts_end);
            std::bernoulli_distribution is_dropped(options_.drops_launches);
            std::string events;
            for (const Written& one : written_) {
                if (one.start < from || one.start + one.length > to) continue;
                if (one.is_call && options_.drops_launches > 0 && is_dropped(random_)) continue;
                events += fmt::format("{}{}\"ts\":{}.{:03},\"dur\":{}.{:03}}}",
                                      events.empty() ? "" : ",\n", one.text, one.start / 1000,
                                      one.start % 1000, one.length / 1000, one.length % 1000);
            }
            run_.text = fmt::format("{{\"traceEvents\":[{}]}}", events);
        }

        MixChange change_;
        MixOptions options_;
        std::mt19937 random_;
        Run run_;
        std::vector<Written> written_;
        std::int64_t now_ = 1'000'000, compute_free_ = 0, comm_free_ = 0, waits_for_ = 0;
        std::int64_t step_began_ = 1'000'000;
        int id_ = 0, step_ = 0, names_ = 0;
    };
};

// Makes a random job. `random` chooses the causes and their sizes.
inline Mix random_mix(std::mt19937& random) {
    auto between = [&](double low, double high) {
        return std::uniform_real_distribution<double>(low, high)(random);
    };
    auto is = [&](double share) { return std::bernoulli_distribution(share)(random); };
    auto ns = [](double us) { return static_cast<std::int64_t>(us * 1000); };
    Mix mix;
    int steps = static_cast<int>(between(4, 8)), kernels = static_cast<int>(between(30, 120));
    double host = between(6, 40), gpu = between(15, 120);
    double work = kernels * std::max(host, gpu);  // us per step
    double input = is(0.5) ? between(0.1, 1.5) * work : 0;
    double python = is(0.4) ? between(0.1, 1.0) * work : 0;
    double churn = is(0.25) ? between(0.1, 0.6) * work : 0;
    double exchange = is(0.3) ? between(0.15, 0.8) * work : 0;
    int reads = is(0.3) ? static_cast<int>(between(1, 6)) : 0;
    bool waits = is(0.2);
    if (is(0.4)) {
        double all = steps * (work + input + python + churn + exchange);
        mix.prelude.push_back({Do::first_call, ns(std::max(20'000.0, between(0.3, 1.5) * all))});
        for (int i = 0; i < 6; ++i)
            mix.prelude.push_back({Do::first_launch, ns(between(3'000, 30'000)), ns(gpu)});
    }
    if (is(0.2))
        mix.prelude.push_back(
            {Do::record, ns(std::max(50'000.0, between(0.5, 2.0) * steps * work))});
    for (int step = 0; step < steps; ++step) {
        if (step > 0) mix.steps.push_back({Do::step});
        if (input > 0) mix.steps.push_back({Do::input, ns(input * between(0.9, 1.1))});
        for (int i = 0; i < kernels; ++i) {
            if (i == kernels / 4 && python > 0)
                mix.steps.push_back({Do::python, ns(python * between(0.9, 1.1))});
            mix.steps.push_back(
                {Do::launch, ns(host * between(0.8, 1.2)), ns(gpu * between(0.7, 1.3))});
            if (reads > 0 && i % std::max(1, kernels / reads) == kernels / reads / 2)
                mix.steps.push_back({Do::read});
            if (churn > 0 && i % (kernels / 4) == kernels / 8)
                mix.steps.push_back({Do::allocate, ns(churn / 4)});
        }
        if (exchange > 0) {
            for (int i = 0; i < 4; ++i) mix.steps.push_back({Do::collective, 0, ns(exchange / 4)});
            mix.steps.push_back({Do::launch, ns(host), ns(gpu)});
        }
        if (waits) mix.steps.push_back({Do::wait});
    }
    return mix;
}

}  // namespace saturate
