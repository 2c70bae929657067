// SPDX-License-Identifier: Apache-2.0
#include "engine/sim_backend.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "engine/cpu_allocator.h"
#include "engine/device_rates.h"

namespace saturate {

namespace {

constexpr std::int64_t kStepsAhead = 2;  // how far the host may run ahead before it waits

std::int64_t as_ns(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

void sleep_until(std::int64_t time_ns) {
    timespec at{.tv_sec = time_ns / 1'000'000'000, .tv_nsec = time_ns % 1'000'000'000};
    while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) != 0) {
    }
}

// Launching keeps a core busy, as with a real driver.
void spin_until(std::int64_t time_ns) {
    while (now_ns() < time_ns) {
    }
}

// When the device worked, for readers of its counters.
class DeviceActivity {
  public:
    void add(std::int64_t start_ns, std::int64_t end_ns, std::int64_t busy_ns) {
        std::lock_guard lock(mutex_);
        spans_.push_back({start_ns, end_ns, busy_ns});
        while (spans_.size() > kMost) spans_.pop_front();
    }
    // Share of the time between `from_ns` and `to_ns` in which the device was busy.
    [[nodiscard]] double share(std::int64_t from_ns, std::int64_t to_ns) {
        std::lock_guard lock(mutex_);
        double busy = 0;
        for (const Span& span : spans_) {
            double inside =
                static_cast<double>(std::min(span.end, to_ns) - std::max(span.start, from_ns));
            if (inside <= 0 || span.end <= span.start) continue;
            busy += inside * static_cast<double>(span.busy) /
                    static_cast<double>(span.end - span.start);
        }
        return to_ns > from_ns ? std::min(1.0, busy / static_cast<double>(to_ns - from_ns)) : 0;
    }
    void set_memory(std::uint64_t bytes) {
        std::lock_guard lock(mutex_);
        memory_bytes_ = bytes;
    }
    [[nodiscard]] std::uint64_t memory() {
        std::lock_guard lock(mutex_);
        return memory_bytes_;
    }

  private:
    struct Span {
        std::int64_t start, end, busy;
    };
    static constexpr std::size_t kMost = 100'000;
    std::mutex mutex_;
    std::deque<Span> spans_;
    std::uint64_t memory_bytes_ = 0;
};

// Reports the counters as a driver would.
class SimReader final : public DeviceReader {
  public:
    SimReader(const GpuFacts& gpu, std::shared_ptr<DeviceActivity> activity)
        : gpu_(gpu), activity_(std::move(activity)), last_ns_(now_ns()) {
        driver_.gpus = {{.index = 0,
                         .name = gpu.name + " (simulated)",
                         .memory_total_bytes = gpu.memory_bytes}};
    }
    [[nodiscard]] const GpuDriver& driver() const override { return driver_; }
    [[nodiscard]] std::uint64_t driver_calls() const override { return 0; }
    DeviceSample read(int gpu, ReadTiers) override {
        std::int64_t now = now_ns();
        double share = activity_->share(last_ns_, now);
        double seconds = static_cast<double>(now - last_ns_) / 1e9;
        last_ns_ = now;
        DeviceSample sample{.gpu = gpu, .time_ns = now};
        sample.utilization_percent = 100 * share;
        sample.memory_total_bytes = gpu_.memory_bytes;
        sample.memory_used_bytes = activity_->memory();
        sample.power_watts = simulated_power(gpu_, share);
        sample.power_limit_watts = gpu_.tdp_watts;
        joules_ += *sample.power_watts * seconds;
        sample.energy_joules = joules_;
        return sample;
    }

  private:
    GpuFacts gpu_;
    std::shared_ptr<DeviceActivity> activity_;
    GpuDriver driver_;
    std::int64_t last_ns_;
    double joules_ = 0;
};

class SimulatedReading final : public Reading {
  public:
    SimulatedReading(torch::Tensor values, std::int64_t ready_ns)
        : values_(std::move(values)), ready_ns_(ready_ns) {}
    torch::Tensor values() override {
        sleep_until(ready_ns_);
        return values_;
    }

  private:
    torch::Tensor values_;
    std::int64_t ready_ns_;
};

class SimBackend final : public DeviceBackend, public SimulatedStep {
  public:
    SimBackend(GpuFacts gpu, const DeviceOptions& options)
        : gpu_(std::move(gpu)),
          rates_(find_rates(gpu_.name)),
          pinned_(options.pin_memory),
          activity_(std::make_shared<DeviceActivity>()) {
        use_caching_cpu_allocator();
        ::prctl(PR_SET_TIMERSLACK, 1);  // waits end on time, not 50 us later
    }

    [[nodiscard]] torch::Device device() const override { return torch::kCPU; }
    [[nodiscard]] std::string name() const override {
        return fmt::format("sim:{} (simulated{})", gpu_.name,
                           rates_ == MeasuredRates{} ? "" : ", with the rates measured here");
    }
    [[nodiscard]] bool has_bf16() const override { return gpu_.has_bf16; }
    // The model knows the cost of a captured step; nothing is really captured.
    [[nodiscard]] DeviceProof proves() const override { return {.exact_busy = true}; }
    [[nodiscard]] bool is_lost() noexcept override { return false; }
    [[nodiscard]] SimulatedStep* simulated() override { return this; }
    [[nodiscard]] std::unique_ptr<DeviceReader> counters() override {
        return std::make_unique<SimReader>(gpu_, activity_);
    }

    [[nodiscard]] int uploads_ahead() const override { return 1; }
    std::shared_ptr<SlabMemory> slab_memory() override { return nullptr; }
    Upload start_upload(Batch batch) override {
        TensorBatch tensors = wrap_batch(batch);
        double bytes = 0;
        for (const torch::Tensor& tensor : tensors) bytes += static_cast<double>(tensor.nbytes());
        copied_ns_ = std::max(now_ns(), copied_ns_) + as_ns(simulated_copy(bytes, pinned_, rates_));
        if (!pinned_) sleep_until(copied_ns_);  // a copy from ordinary memory blocks the host
        auto done = std::make_shared<std::int64_t>(copied_ns_);
        return {std::move(tensors), done, std::move(batch)};
    }
    void await_upload(const Upload& upload) override {
        inputs_ns_ = std::max(inputs_ns_, *std::static_pointer_cast<std::int64_t>(upload.done));
    }
    // Its batches stay in the host's memory.
    bool let_catch_up() override { return false; }

    std::unique_ptr<Reading> start_reading(const torch::Tensor& values) override {
        return std::make_unique<SimulatedReading>(values.detach().clone(), free_ns_);
    }
    void synchronise() override { sleep_until(free_ns_); }
    std::optional<torch::Tensor> random_state() override { return std::nullopt; }
    void set_random_state(const torch::Tensor&) override {
        throw Bug(__FILE__, __LINE__, "a simulated device uses the host's generator");
    }

    void mark_begin(std::int64_t step) override { step_ = step; }
    void mark_end(std::int64_t) override {}
    std::optional<std::int64_t> step_ns(std::int64_t step) override {
        auto found = steps_.find(step);
        if (found == steps_.end() || found->second.end_ns > now_ns()) return std::nullopt;
        std::int64_t busy = found->second.busy_ns;
        steps_.erase(steps_.begin(), std::next(found));
        return busy;
    }

    [[nodiscard]] DeviceMemory memory() const override {
        return {.used_bytes = memory_bytes_,
                .peak_bytes = peak_bytes_,
                .reserved_bytes = memory_bytes_};
    }
    void reset_peak() override { peak_bytes_ = memory_bytes_; }
    void release_cached() override {}

    void run_apart(const std::function<void()>& work) override { work(); }
    std::unique_ptr<CapturedStep> capture(const std::function<void()>&) override {
        throw Bug(__FILE__, __LINE__, "a simulated step is not captured");
    }

    [[nodiscard]] bool is_counted() const override { return counted_; }
    void set_cost(StepCost cost, const SimSettings& settings) override {
        cost_ = std::move(cost);
        settings_ = settings;
        counted_ = true;
    }
    void launch(std::int64_t samples) override {
        SimStep step = simulate_step(cost_, gpu_, settings_, static_cast<double>(samples), rates_);
        auto bytes = static_cast<std::uint64_t>(step.memory_bytes);
        TORCH_CHECK_WITH(OutOfMemoryError, bytes <= gpu_.memory_bytes, "simulated ", gpu_.name,
                         " out of memory: ", bytes_text(bytes), " of ",
                         bytes_text(gpu_.memory_bytes));
        memory_bytes_ = bytes;
        peak_bytes_ = std::max(peak_bytes_, bytes);
        activity_->set_memory(bytes);

        std::int64_t begin = now_ns();
        std::int64_t launched = begin + as_ns(step.host_seconds);
        std::int64_t start = std::max({begin, free_ns_, inputs_ns_});
        std::int64_t busy = as_ns(step.device_seconds);
        // The device cannot finish before the last kernel was launched.
        free_ns_ = std::max(start + busy, launched);
        activity_->add(start, free_ns_, busy);
        Queued& queued = steps_[step_];
        queued.end_ns = free_ns_;
        queued.busy_ns += busy;
        spin_until(launched);
        ends_.push_back(free_ns_);
        if (ends_.size() > static_cast<std::size_t>(kStepsAhead)) {
            sleep_until(ends_.front());
            ends_.pop_front();
        }
    }

  private:
    struct Queued {
        std::int64_t end_ns = 0, busy_ns = 0;
    };
    GpuFacts gpu_;
    MeasuredRates rates_;
    bool pinned_;
    std::shared_ptr<DeviceActivity> activity_;
    StepCost cost_;
    SimSettings settings_;
    bool counted_ = false;
    std::int64_t step_ = 0;
    std::int64_t free_ns_ = 0;    // when the device has done all queued work
    std::int64_t copied_ns_ = 0;  // when the copy engine has
    std::int64_t inputs_ns_ = 0;  // when the next step's batches are on the device
    std::deque<std::int64_t> ends_;
    std::map<std::int64_t, Queued> steps_;
    std::uint64_t memory_bytes_ = 0, peak_bytes_ = 0;
};

}  // namespace

std::unique_ptr<DeviceBackend> make_sim_backend(const std::string& gpu,
                                                const DeviceOptions& options) {
    auto match = match_gpu(gpu);
    if (!match) {
        Problem problem{.found = fmt::format("no GPU {} to simulate", in_quotes(gpu)),
                        .expected = "a GPU of the table (saturate optimize --gpu names them)"};
        std::vector<std::string> near = near_gpu_names(gpu);
        if (!near.empty()) problem.fix = fmt::format("--device \"sim:{}\"", near[0]);
        throw UserError(problem);
    }
    return std::make_unique<SimBackend>(match->facts, options);
}

}  // namespace saturate
