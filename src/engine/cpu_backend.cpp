// SPDX-License-Identifier: Apache-2.0
// The CPU as a device: batches are already where they are needed, nothing runs asynchronously.
#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include "base/clock.h"
#include "base/error.h"
#include "engine/cpu_allocator.h"
#include "engine/device_backend.h"

namespace saturate {

namespace {

class ReadAlready final : public Reading {
  public:
    explicit ReadAlready(torch::Tensor values) : values_(std::move(values)) {}
    torch::Tensor values() override { return values_; }

  private:
    torch::Tensor values_;
};

class CpuBackend final : public DeviceBackend {
  public:
    CpuBackend(const DeviceOptions& options, bool has_bf16) : has_bf16_(has_bf16) {
        use_caching_cpu_allocator();
        set_cpu_memory_limit(options.memory_limit_bytes);
        if (options.threads > 0) at::set_num_threads(options.threads);
        at::globalContext().setDeterministicAlgorithms(options.deterministic, true);
        // Denormals (below 1e-38) make a processor many times slower, and the optimizer's averages
        // of a gradient that has become zero stay denormal for ever.
        at::globalContext().setFlushDenormal(true);  // inherited by threads made from here on
    }
    ~CpuBackend() override { set_cpu_memory_limit(0); }

    [[nodiscard]] torch::Device device() const override { return torch::kCPU; }
    [[nodiscard]] std::string name() const override { return "cpu"; }
    [[nodiscard]] bool has_bf16() const override { return has_bf16_; }

    // The host is the device: between the marks it is busy except while it reports that it waits.
    [[nodiscard]] DeviceProof proves() const override {
        return {.exact_busy = true, .exposed_communication = true};
    }
    [[nodiscard]] bool is_lost() noexcept override { return false; }

    [[nodiscard]] SimulatedStep* simulated() override { return nullptr; }
    [[nodiscard]] std::unique_ptr<DeviceReader> counters() override { return nullptr; }

    [[nodiscard]] int uploads_ahead() const override { return 0; }
    std::shared_ptr<SlabMemory> slab_memory() override { return nullptr; }
    Upload start_upload(Batch batch) override {
        TensorBatch tensors = wrap_batch(batch);
        return {std::move(tensors), nullptr, std::move(batch)};
    }
    void await_upload(const Upload&) override {}
    bool let_catch_up() override { return false; }

    std::unique_ptr<Reading> start_reading(const torch::Tensor& values) override {
        return std::make_unique<ReadAlready>(values.detach().clone());
    }
    void synchronise() override {}
    std::optional<torch::Tensor> random_state() override { return std::nullopt; }
    void set_random_state(const torch::Tensor&) override {
        throw Bug(__FILE__, __LINE__, "the CPU uses the host's generator");
    }

    void mark_begin(std::int64_t step) override {
        step_ = step;
        begin_ns_ = now_ns();
    }
    void mark_end(std::int64_t) override { busy_ns_ = now_ns() - begin_ns_; }
    std::optional<std::int64_t> step_ns(std::int64_t step) override {
        if (step != step_) return std::nullopt;
        return busy_ns_;
    }

    [[nodiscard]] DeviceMemory memory() const override {
        CpuMemory now = cpu_memory();
        return {.used_bytes = static_cast<std::uint64_t>(now.used_bytes),
                .peak_bytes = static_cast<std::uint64_t>(now.peak_bytes),
                .reserved_bytes = static_cast<std::uint64_t>(now.reserved_bytes)};
    }
    void reset_peak() override { reset_cpu_peak(); }
    void release_cached() override { release_cached_cpu_memory(); }

    void run_apart(const std::function<void()>& work) override { work(); }
    std::unique_ptr<CapturedStep> capture(const std::function<void()>&) override {
        throw Bug(__FILE__, __LINE__, "nothing is captured on the CPU");
    }

  private:
    bool has_bf16_;
    std::int64_t step_ = -1, begin_ns_ = 0, busy_ns_ = 0;
};

}  // namespace

std::unique_ptr<DeviceBackend> make_cpu_backend(const DeviceOptions& options, bool has_bf16) {
    return std::make_unique<CpuBackend>(options, has_bf16);
}

}  // namespace saturate
