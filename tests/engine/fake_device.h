// SPDX-License-Identifier: Apache-2.0
// A fake device for tests of GPU behaviour: copies that are complete only when awaited, times that
// arrive late, steps that are captured and replayed without their host code, and failures on
// demand. It computes on the CPU and logs all requests.
//
// Capturing runs the work once and records every operation with its tensors, then restores the
// tensors that it wrote, as if nothing had run. A replay repeats the operations on these tensors.
// As on a GPU, a replay uses the host's numbers of the capture, and reading back a value fails.
#pragma once

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <atomic>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/cpu_allocator.h"
#include "engine/device_backend.h"
#include "engine/lent_memory.h"

namespace saturate {

inline constexpr c10::DispatchKey kCaptureKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

struct TakenDown {
    c10::OperatorHandle call;
    torch::jit::Stack arguments, results;
};

struct Tape {
    std::vector<TakenDown> calls;
    std::map<const void*, std::pair<torch::Tensor, torch::Tensor>> written;  // tensor, old value
    std::set<const void*> own;  // memory allocated during the capture
};

inline Tape*& tape_now() {
    thread_local Tape* now = nullptr;
    return now;
}

template <typename Use>
void for_tensors(const c10::IValue& value, Use use) {
    if (value.isTensor()) {
        if (value.toTensor().defined()) use(value.toTensor());
    } else if (value.isTensorList()) {
        for (const torch::Tensor& tensor : value.toTensorVector()) use(tensor);
    } else if (value.isOptionalTensorList()) {
        for (const auto& tensor : value.toOptionalTensorVector()) {
            if (tensor && tensor->defined()) use(*tensor);
        }
    }
}

inline const void* memory_of(const torch::Tensor& tensor) {
    return tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

// The dispatcher calls this first for every operation of a capture.
inline void take_down(const c10::OperatorHandle& call, c10::DispatchKeySet keys,
                      torch::jit::Stack* stack) {
    Tape* tape = tape_now();
    std::string name = call.schema().name();
    for (const char* refused : {"aten::_local_scalar_dense", "aten::item", "aten::nonzero",
                                "aten::is_nonzero", "aten::masked_select"}) {
        TORCH_CHECK(name != refused, "operation not permitted when stream is capturing: ", name);
    }
    // For operators that consist of others or cast their inputs first, record the inner operators,
    // because a backward pass may keep the intermediate tensors.
    bool is_made_of_others =
        call.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
        !call.hasKernelForDispatchKey(c10::DispatchKey::CPU);
    bool is_cast = keys.has(c10::DispatchKey::AutocastCPU) &&
                   call.hasKernelForDispatchKey(c10::DispatchKey::AutocastCPU);
    if (is_made_of_others || is_cast) {
        call.redispatchBoxed(
            keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kCaptureKey), stack);
        return;
    }
    std::size_t count = call.schema().arguments().size();
    torch::jit::Stack arguments(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
    c10::impl::ExcludeDispatchKeyGuard plainly(kCaptureKey);
    for (std::size_t i = 0; i < count; ++i) {
        const auto* alias = call.schema().arguments()[i].alias_info();
        if (!alias || !alias->isWrite()) continue;
        for_tensors(arguments[i], [&](const torch::Tensor& tensor) {
            torch::NoGradGuard no_gradients;
            const void* memory = memory_of(tensor);
            if (!tape->own.count(memory) && !tape->written.count(tensor.const_data_ptr()))
                tape->written.emplace(tensor.const_data_ptr(),
                                      std::pair(tensor.detach(), tensor.detach().clone()));
        });
    }
    std::set<const void*> given;
    for (const c10::IValue& argument : arguments)
        for_tensors(argument,
                    [&](const torch::Tensor& tensor) { given.insert(memory_of(tensor)); });
    call.callBoxed(stack);
    torch::jit::Stack results(
        stack->end() - static_cast<std::ptrdiff_t>(call.schema().returns().size()), stack->end());
    for (const c10::IValue& result : results) {
        for_tensors(result, [&](const torch::Tensor& tensor) {
            if (!given.count(memory_of(tensor))) tape->own.insert(memory_of(tensor));
        });
    }
    tape->calls.push_back({call, std::move(arguments), std::move(results)});
}

class FakeCaptured final : public CapturedStep {
  public:
    FakeCaptured(std::unique_ptr<Tape> tape, std::int64_t& fails)
        : tape_(std::move(tape)), fails_(fails) {}
    void replay() override {
        torch::NoGradGuard no_gradients;
        TORCH_CHECK(fails_-- != 0, "CUDA error: out of memory");
        for (const TakenDown& one : tape_->calls) {
            torch::jit::Stack stack = one.arguments;
            one.call.callBoxed(&stack);
            for (std::size_t i = 0; i < one.results.size(); ++i) {
                std::vector<torch::Tensor> fresh;
                for_tensors(stack[i],
                            [&](const torch::Tensor& tensor) { fresh.push_back(tensor); });
                std::size_t at = 0;
                for_tensors(one.results[i], [&](const torch::Tensor& kept) {
                    torch::Tensor target = kept.detach();
                    if (memory_of(target) != memory_of(fresh.at(at))) target.copy_(fresh[at]);
                    ++at;
                });
            }
        }
    }

  private:
    std::unique_ptr<Tape> tape_;
    std::int64_t& fails_;
};

class FakeDevice final : public DeviceBackend {
  public:
    FakeDevice() { use_caching_cpu_allocator(); }

    // All requests in order: "upload 3", "await 3", "begin 0", "end 0", "capture", ...
    std::vector<std::string> asked;
    DeviceProof proof{.capture = true};
    bool copies_wrong = false;            // copies never arrive
    std::int64_t times_late = 2;          // delay of a step's time, in steps
    std::set<std::int64_t> no_room_for;   // numbers of the uploads that fail for lack of memory
    bool has_failed = false;              // every call fails from now on
    mutable std::int64_t asked_lost = 0;  // calls after the failure
    std::int64_t replay_fails = -1;       // replays before one runs out of memory; -1: none
    std::int64_t captures = 0;
    std::int64_t caught_up = 0;           // times that the host was asked to wait ...
    bool is_behind = false;               // ... and whether it had to
    std::atomic<std::int64_t> slabs = 0;  // taken from slab_memory(), also by the loaders' threads
    // The state of a generator of its own, which nothing draws from; absent: the host's is used.
    std::optional<torch::Tensor> random;
    std::size_t copies_most = 0;  // most copies in flight; they take as long as allowed

    [[nodiscard]] torch::Device device() const override { return torch::kCPU; }
    [[nodiscard]] std::string name() const override { return "fake:0 (a test's)"; }
    [[nodiscard]] bool has_bf16() const override { return false; }
    [[nodiscard]] DeviceProof proves() const override { return proof; }
    [[nodiscard]] bool is_lost() noexcept override { return has_failed; }
    [[nodiscard]] SimulatedStep* simulated() override { return nullptr; }
    [[nodiscard]] std::unique_ptr<DeviceReader> counters() override { return nullptr; }

    [[nodiscard]] int uploads_ahead() const override { return 1; }
    std::shared_ptr<SlabMemory> slab_memory() override {
        return std::make_shared<CountedMemory>(slabs);
    }
    Upload start_upload(Batch batch) override {
        while (copying_.size() >= kCopiesHeld) copying_.pop_front();
        note("upload", uploads_);
        bool refused = no_room_for.erase(uploads_) > 0;
        TORCH_CHECK_WITH(OutOfMemoryError, !refused,
                         "the fake device has no memory for this batch");
        ++uploads_;
        // As on a GPU, memory is released when the steps requested so far have ended.
        lent_.settle([this]() -> LentMemory::Mark {
            return {[this, until = begun_] {
                        check();
                        return ended_ >= until;
                    },
                    nullptr};
        });
        TensorBatch there;
        for (const torch::Tensor& tensor : wrap_batch(batch))
            there.push_back(lent_.lend(torch::full_like(tensor, 1e6)));  // not copied yet
        copying_.push_back(batch);
        copies_most = std::max(copies_most, copying_.size());
        auto number = std::make_shared<std::int64_t>(uploads_ - 1);
        return {std::move(there), number, std::move(batch)};
    }
    void await_upload(const Upload& upload) override {
        note("await", *std::static_pointer_cast<std::int64_t>(upload.done));
        if (copies_wrong) return;
        TensorBatch from = wrap_batch(upload.batch);
        for (std::size_t i = 0; i < from.size(); ++i) {
            torch::Tensor target = upload.tensors[i];
            target.copy_(from[i]);
        }
    }

    bool let_catch_up() override {
        check();
        ++caught_up;
        return is_behind;
    }

    std::unique_ptr<Reading> start_reading(const torch::Tensor& values) override {
        note("read");
        return std::make_unique<Read>(*this, values.detach().clone());
    }
    void synchronise() override { note("synchronise"); }
    std::optional<torch::Tensor> random_state() override {
        check();
        return random ? std::optional(random->clone()) : std::nullopt;
    }
    void set_random_state(const torch::Tensor& state) override {
        note("random");
        random = state.clone();
    }

    void mark_begin(std::int64_t step) override {
        note("begin", step);
        begun_ = step;
    }
    void mark_end(std::int64_t step) override {
        note("end", step);
        ended_ = step;
    }
    std::optional<std::int64_t> step_ns(std::int64_t step) override {
        check();
        if (step + times_late > ended_) return std::nullopt;
        return 1000 + step;
    }

    [[nodiscard]] DeviceMemory memory() const override {
        check();
        return {.peak_bytes = 1};
    }
    void reset_peak() override { check(); }
    void release_cached() override { note("release"); }

    void run_apart(const std::function<void()>& work) override {
        note("apart");
        struct Rejoin {
            ~Rejoin() { device.asked.emplace_back("rejoin"); }
            FakeDevice& device;
        } rejoin{*this};
        work();
    }
    void run_beside(const std::function<void()>& work) override {
        note("beside");
        work();
    }
    std::unique_ptr<CapturedStep> capture(const std::function<void()>& work) override {
        note("capture");
        ++captures;
        auto tape = std::make_unique<Tape>();
        at::Generator generator = at::globalContext().defaultGenerator(torch::kCPU);
        torch::Tensor random = generator.get_state();
        struct Stop {
            ~Stop() { tape_now() = nullptr; }
        } stop;
        tape_now() = tape.get();
        auto put_back = [&] {
            torch::NoGradGuard no_gradients;
            for (auto& [memory, pair] : tape->written) pair.first.copy_(pair.second);
            generator.set_state(random);
        };
        try {
            c10::impl::IncludeDispatchKeyGuard taking_down(kCaptureKey);
            work();
        } catch (...) {
            put_back();
            throw;
        }
        put_back();
        tape->written.clear();
        return std::make_unique<FakeCaptured>(std::move(tape), replay_fails);
    }

  private:
    class CountedMemory final : public SlabMemory {
      public:
        explicit CountedMemory(std::atomic<std::int64_t>& count)
            : count_(count), memory_(ordinary_memory()) {}
        void* allocate(std::size_t bytes) override {
            ++count_;
            return memory_->allocate(bytes);
        }
        void release(void* memory, std::size_t bytes) noexcept override {
            memory_->release(memory, bytes);
        }

      private:
        std::atomic<std::int64_t>& count_;
        std::shared_ptr<SlabMemory> memory_;
    };

    class Read final : public Reading {
      public:
        Read(FakeDevice& device, torch::Tensor values)
            : device_(device), values_(std::move(values)) {}
        torch::Tensor values() override {
            device_.check();
            return values_;
        }

      private:
        FakeDevice& device_;
        torch::Tensor values_;
    };

    void check() const {
        if (has_failed) ++asked_lost;
        TORCH_CHECK(!has_failed, "CUDA error: device-side assert triggered");
    }
    void note(const std::string& what) {
        check();
        asked.push_back(what);
    }
    void note(const std::string& what, std::int64_t number) {
        note(what + " " + std::to_string(number));
    }

    std::int64_t uploads_ = 0, begun_ = -1, ended_ = -1;
    std::deque<Batch> copying_;  // keeps their memory
    LentMemory lent_;
};

}  // namespace saturate
