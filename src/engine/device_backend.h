// SPDX-License-Identifier: Apache-2.0
// What the trainer asks of the device it runs on, without a type of CUDA. The CPU's is in
// cpu_backend.cpp; a GPU's comes out of libsaturate_cuda.so, loaded at run time, so that one
// program serves machines with and without a driver. Training thread only.
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
    int threads = 0;                      // that compute on the CPU; 0: as LibTorch chooses
    std::int64_t memory_limit_bytes = 0;  // of tensors on the CPU; 0: none
};

// What a device can tell and do. What it cannot is left out of the record, never guessed.
struct DeviceProof {
    bool exact_busy = false;  // step_ns() counts work alone; else it is the span, holes included
    bool exposed_communication = false;  // waiting for other ranks is told apart from computing
    bool capture = false;                // a step can be recorded and replayed
};

struct DeviceMemory {
    std::uint64_t used_bytes = 0;
    std::uint64_t peak_bytes = 0;
    std::uint64_t reserved_bytes = 0;
};

// A device holds the host's memory of at most so many batches whose copies are under way.
inline constexpr std::size_t kCopiesHeld = 2;

// A batch on its way to the device.
struct Upload {
    TensorBatch tensors;
    std::shared_ptr<void> done;  // the device's own mark of the copy; null: there at once
    Batch batch;                 // keeps the host's memory until the copy is done
};

// A few numbers on their way to the host.
class Reading {
  public:
    virtual ~Reading() = default;
    // On the host. Waits only if the device is not there yet: callers ask late.
    [[nodiscard]] virtual torch::Tensor values() = 0;
};

// A step recorded once and replayed; it reads and writes the same memory each time.
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
    // Where the driver's counters find it: "0000:65:00.0"; empty: none.
    [[nodiscard]] virtual std::string pci_bus_id() const { return ""; }
    [[nodiscard]] virtual DeviceProof proves() const = 0;
    // An error that stays: every call fails from now on, and nothing can be read any more.
    [[nodiscard]] virtual bool is_lost() noexcept = 0;

    // Not null where nothing is computed and time is modelled (sim_backend.h).
    [[nodiscard]] virtual SimulatedStep* simulated() = 0;
    // The device's own counters, where no driver has them; null: ask the driver.
    [[nodiscard]] virtual std::unique_ptr<DeviceReader> counters() = 0;

    // Batches that are copied ahead of the one at work; 0: copying costs nothing here.
    [[nodiscard]] virtual int uploads_ahead() const = 0;
    [[nodiscard]] virtual std::shared_ptr<SlabMemory> slab_memory() = 0;  // null: ordinary
    // Starts the copy of a batch and returns at once, unless kCopiesHeld others are still under
    // way. Throws c10::OutOfMemoryError.
    [[nodiscard]] virtual Upload start_upload(Batch batch) = 0;
    // What is computed from now on sees the batch. Never blocks the host.
    virtual void await_upload(const Upload& upload) = 0;

    [[nodiscard]] virtual std::unique_ptr<Reading> start_reading(const torch::Tensor& values) = 0;
    virtual void synchronise() = 0;
    // Of the device's own generator; nothing where the host's is used.
    [[nodiscard]] virtual std::optional<torch::Tensor> random_state() = 0;
    virtual void set_random_state(const torch::Tensor& state) = 0;

    // The device's own time of a step, for steps numbered by the caller.
    virtual void mark_begin(std::int64_t step) = 0;
    virtual void mark_end(std::int64_t step) = 0;
    // Once the device has passed the step's end; asks, never waits. Absent: not yet, or the device
    // does not tell. Busy time, or the span between the marks: see proves().
    [[nodiscard]] virtual std::optional<std::int64_t> step_ns(std::int64_t step) = 0;

    [[nodiscard]] virtual DeviceMemory memory() const = 0;
    virtual void reset_peak() = 0;
    virtual void release_cached() = 0;

    // Runs `work` where it may be captured later: a step is warmed up there. What comes after it
    // sees its results, also when it threw.
    virtual void run_apart(const std::function<void()>& work) = 0;
    // Runs `work`, which only reads, at once: also while all that was asked for before is stuck
    // behind ranks that do not come. The caller knows that nothing else writes there.
    virtual void run_beside(const std::function<void()>& work) { work(); }
    // Records `work` without running it. Throws when it does something that cannot be recorded.
    [[nodiscard]] virtual std::unique_ptr<CapturedStep> capture(
        const std::function<void()>& work) = 0;
};

// Memory that ran out, by whatever name: libraries below LibTorch have their own errors for it.
[[nodiscard]] bool is_out_of_memory(const std::exception& error);
// Runs `work`; what is_out_of_memory() comes out as c10::OutOfMemoryError.
void with_memory_errors(const std::function<void()>& work);
// Runs `work`, which prepares a run; what LibTorch throws comes out as MachineError.
void with_machine_errors(const char* what_for, const std::function<void()>& work);

// TF32 in matrix products and convolutions of a GPU, for the whole process.
void use_tf32(bool on);

[[nodiscard]] std::unique_ptr<DeviceBackend> make_cpu_backend(const DeviceOptions& options,
                                                              bool has_bf16);
// The tensors of a batch over its own memory, without a copy; they keep the slab.
[[nodiscard]] TensorBatch wrap_batch(const Batch& batch);

// What libsaturate_cuda.so hands over: extern "C" saturate_cuda_plugin().
struct CudaPlugin {
    int (*device_count)();  // 0 without a driver
    std::unique_ptr<DeviceBackend> (*open)(int index, const DeviceOptions& options);
    // NCCL among the ranks that share this store.
    std::unique_ptr<DeviceCollectives> (*collectives)(c10d::Store& store, int rank, int count);
    // What everything else stands on: copies, a kernel, a graph, sums over NCCL.
    std::vector<SelftestItem> (*selftest)();
    std::string (*versions)();  // "CUDA 13.0, NCCL 2.28.9"
};
// Sums and broadcasts of tensors on the GPU go over NCCL from now on.
void use_device_collectives(ProcessGroup& group);
// From beside the program; null when there is no driver or this build has no CUDA part: `why` says.
[[nodiscard]] const CudaPlugin* load_cuda_plugin(std::string& why);
[[nodiscard]] const CudaPlugin& need_cuda_plugin();  // throws MachineError where there is none

struct OpenedDevice {
    std::unique_ptr<DeviceBackend> backend;
    std::string note;  // why it is not a GPU, for `auto`; may be empty
};
// The name of an AMD GPU of this machine, which only watching knows; empty: none.
[[nodiscard]] std::string amd_gpu(const std::filesystem::path& sys = "/sys");
// The GPU of a process: its rank on this host, or the only one that it may see (Slurm and MPI often
// show each task its own). Throws MachineError when there is none for it.
[[nodiscard]] int gpu_of_rank(int local_rank, int visible);
// `index`: the GPU; absent: that of the rank. Throws MachineError with the reason why it cannot be
// used.
[[nodiscard]] std::unique_ptr<DeviceBackend> open_gpu(const CudaPlugin& plugin,
                                                      std::optional<int> index, int local_rank,
                                                      const DeviceOptions& options);
// `wish` is auto, cpu, cuda, cuda:1 or sim:GPU; auto and cuda mean gpu_of_rank(). Throws UserError
// for another word, MachineError for a GPU that is not there.
[[nodiscard]] OpenedDevice open_device(const std::string& wish, const DeviceOptions& options,
                                       bool cpu_has_bf16, int local_rank = 0);

}  // namespace saturate
