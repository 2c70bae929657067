// SPDX-License-Identifier: Apache-2.0
// The interface between the trainer and the device it runs on, free of CUDA types. cpu_backend.cpp
// implements it for the CPU. The GPU implementation comes from libsaturate_cuda.so, loaded at run
// time, so that one program serves machines with and without a driver. Training thread only.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/device.h"
#include "base/selftest.h"
#include "engine/job.h"
#include "engine/process_group.h"
#include "pipeline/loader.h"

namespace saturate {

struct DeviceOptions {
    bool tf32 = true;
    bool cudnn_benchmark = true;
    bool deterministic = false;
    bool pin_memory = true;
    int threads = 0;                      // CPU compute threads; 0: LibTorch chooses
    std::int64_t memory_limit_bytes = 0;  // limit for CPU tensors; 0: none
};

// What a device can measure and do. The record leaves out what it cannot
// measure; nothing is guessed.
struct DeviceProof {
    bool exact_busy = false;             // step_ns() is busy time; if false, it includes idle gaps
    bool exposed_communication = false;  // waiting for other ranks is measured apart
    bool capture = false;                // a step can be recorded and replayed
};

struct DeviceMemory {
    std::uint64_t used_bytes = 0;
    std::uint64_t peak_bytes = 0;
    std::uint64_t reserved_bytes = 0;
};

// How many batches in flight to the device may keep their host memory.
inline constexpr std::size_t kCopiesHeld = 2;

// A batch on its way to the device.
struct Upload {
    TensorBatch tensors;
    std::shared_ptr<void> done;  // the device's marker for the copy; null: nothing to wait for
    Batch batch;                 // keeps the host's memory until the copy is done
};

// A few numbers being copied to the host.
class Reading {
  public:
    virtual ~Reading() = default;
    // Returns the numbers in host memory. Waits only if the device has not written them yet;
    // callers ask late enough that it usually has.
    [[nodiscard]] virtual torch::Tensor values() = 0;
};

// A step recorded once and replayed. Each replay reads and writes the same memory.
class CapturedStep {
  public:
    virtual ~CapturedStep() = default;
    virtual void replay() = 0;
};

class SimulatedStep;

class DeviceBackend {
  public:
    virtual ~DeviceBackend() = default;
    [[nodiscard]] virtual torch::Device device() const = 0;
    [[nodiscard]] virtual std::string name() const = 0;  // "cpu", "cuda:0 (NVIDIA H100)"
    [[nodiscard]] virtual bool has_bf16() const = 0;     // in hardware
    // The address under which the driver's counters list the device, "0000:65:00.0"; empty: none.
    [[nodiscard]] virtual std::string pci_bus_id() const { return ""; }
    [[nodiscard]] virtual DeviceProof proves() const = 0;
    // True after an error that does not go away: every later call fails and no memory can be read.
    [[nodiscard]] virtual bool is_lost() noexcept = 0;

    // Null for a real device. Otherwise the device computes nothing and models
    // time (sim_backend.h).
    [[nodiscard]] virtual SimulatedStep* simulated() = 0;
    // The device's own counters, for a device without a driver; null: ask the driver.
    [[nodiscard]] virtual std::unique_ptr<DeviceReader> counters() = 0;

    // How many batches are copied ahead of the current one; 0: copying costs nothing here.
    [[nodiscard]] virtual int uploads_ahead() const = 0;
    [[nodiscard]] virtual std::shared_ptr<SlabMemory> slab_memory() = 0;  // null: ordinary memory
    // Starts the copy of a batch and returns at once, unless kCopiesHeld others are still under
    // way. Throws c10::OutOfMemoryError.
    [[nodiscard]] virtual Upload start_upload(Batch batch) = 0;
    // Makes later device work wait for the batch. Never blocks the host.
    virtual void await_upload(const Upload& upload) = 0;
    // The host launches steps faster than the device runs them, and each batch keeps its memory on
    // the device until its step has run. Waits while these batches take too much memory, but never
    // for the last two: the device always has work. True if it waited.
    virtual bool let_catch_up() = 0;

    [[nodiscard]] virtual std::unique_ptr<Reading> start_reading(const torch::Tensor& values) = 0;
    virtual void synchronise() = 0;
    // State of the device's own random generator; nothing if it uses the host's generator.
    [[nodiscard]] virtual std::optional<torch::Tensor> random_state() = 0;
    virtual void set_random_state(const torch::Tensor& state) = 0;

    // Time of a step by the device's own clock. The caller numbers the steps.
    virtual void mark_begin(std::int64_t step) = 0;
    virtual void mark_end(std::int64_t step) = 0;
    // Time of a step that the device has finished. Never waits. Absent while the step still runs or
    // if the device cannot measure it. Busy time or the span between the marks: see proves().
    [[nodiscard]] virtual std::optional<std::int64_t> step_ns(std::int64_t step) = 0;

    [[nodiscard]] virtual DeviceMemory memory() const = 0;
    virtual void reset_peak() = 0;
    virtual void release_cached() = 0;

    // Runs `work` on the stream that capture() uses, to warm up a step. Later work sees the
    // results, even if `work` throws.
    virtual void run_apart(const std::function<void()>& work) = 0;
    // Runs `work` at once, even while all earlier work is stuck waiting for ranks that do not come.
    // `work` only reads; the caller guarantees that nothing else writes to that memory.
    virtual void run_beside(const std::function<void()>& work) { work(); }
    // Records `work` without running it. Throws if `work` does something that cannot be recorded.
    [[nodiscard]] virtual std::unique_ptr<CapturedStep> capture(
        const std::function<void()>& work) = 0;
};

// True for any out-of-memory error: the libraries below LibTorch have their own error types for it.
[[nodiscard]] bool is_out_of_memory(const std::exception& error);
// Runs `work` and rethrows every error that is_out_of_memory() accepts as c10::OutOfMemoryError.
void with_memory_errors(const std::function<void()>& work);
// Runs `work`, which prepares a run, and rethrows LibTorch's errors as MachineError.
void with_machine_errors(const char* what_for, const std::function<void()>& work);

// Allows TF32 in matrix products and convolutions on GPUs, for the whole process.
void use_tf32(bool on);

[[nodiscard]] std::unique_ptr<DeviceBackend> make_cpu_backend(const DeviceOptions& options,
                                                              bool has_bf16);
// Returns tensors that view the batch's memory without a copy and keep its slab alive.
[[nodiscard]] TensorBatch wrap_batch(const Batch& batch);

// The functions that libsaturate_cuda.so exports through extern "C" saturate_cuda_plugin().
struct CudaPlugin {
    int (*device_count)();  // 0 without a driver
    std::unique_ptr<DeviceBackend> (*open)(int index, const DeviceOptions& options);
    // NCCL for the ranks that share this store.
    std::unique_ptr<DeviceCollectives> (*collectives)(c10d::Store& store, int rank, int count);
    // Tests the basics: copies, a kernel, a graph, sums over NCCL.
    std::vector<SelftestItem> (*selftest)();
    std::string (*versions)();  // "CUDA 13.0, NCCL 2.28.9"
};
// From now on sums and broadcasts of GPU tensors use NCCL.
void use_device_collectives(ProcessGroup& group);
// Loads the plugin from the program's own folder. Returns null without a driver or CUDA part; `why`
// then has the reason.
[[nodiscard]] const CudaPlugin* load_cuda_plugin(std::string& why);
[[nodiscard]] const CudaPlugin& need_cuda_plugin();  // throws MachineError if there is none

struct OpenedDevice {
    std::unique_ptr<DeviceBackend> backend;
    std::string note;  // for `auto`: why the device is not a GPU; may be empty
};
// The name of an AMD GPU in this machine, or empty. AMD GPUs can only be monitored.
[[nodiscard]] std::string amd_gpu(const std::filesystem::path& sys = "/sys");
// Returns the GPU of a process: the one with its rank on this host, or the only visible one (Slurm
// and MPI often show each task only its own). Throws MachineError if there is none for it.
[[nodiscard]] int gpu_of_rank(int local_rank, int visible);
// Opens GPU `index`, or the GPU of the rank if absent. Throws MachineError with the reason if it
// cannot be used.
[[nodiscard]] std::unique_ptr<DeviceBackend> open_gpu(const CudaPlugin& plugin,
                                                      std::optional<int> index, int local_rank,
                                                      const DeviceOptions& options);
// `wish` is auto, cpu, cuda, cuda:1 or sim:GPU; auto and cuda choose by gpu_of_rank(). Throws
// UserError for any other word, MachineError for a GPU that is not there.
[[nodiscard]] OpenedDevice open_device(const std::string& wish, const DeviceOptions& options,
                                       bool cpu_has_bf16, int local_rank = 0);

}  // namespace saturate
