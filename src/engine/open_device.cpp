// SPDX-License-Identifier: Apache-2.0
#include "engine/open_device.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "engine/device_backend.h"
#include "engine/sim_backend.h"

namespace saturate {

namespace {

constexpr const char* kAskDoctor =
    "saturate doctor shows what is missing; --device cpu trains without a GPU";

// The driver's own library. Without it CUDA's other libraries, which take a second
// to load, are useless.
bool load_driver() {
    if (::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL)) return true;
    // WSL 2, as for NVML (cuda/nvml_library.cpp). Once loaded, CUDA finds it by its name.
    return ::dlopen("/usr/lib/wsl/lib/libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr;
}

}  // namespace

std::string why_no_cuda_driver(const std::filesystem::path& proc) {
    std::error_code error;
    if (!std::filesystem::exists(proc / "driver/nvidia/version", error))
        return "no NVIDIA driver on this machine";
    return "libcuda.so.1 was not found, but the kernel has the NVIDIA driver";
}

const CudaPlugin* load_cuda_plugin(std::string& why) {
    static const bool kHasDriver = load_driver();
    if (!kHasDriver) {
        why = why_no_cuda_driver("/proc");
        return nullptr;
    }
    std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    std::filesystem::path path = here / "libsaturate_cuda.so";
    if (!std::filesystem::exists(path)) {
        why = "this build has no CUDA part";
        return nullptr;
    }
    // Never closed: CUDA does not survive being unloaded. Loaded before anything asks LibTorch about
    // CUDA (as seeding does): asked without this library, it answers "not there" ever after.
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        const char* said = ::dlerror();
        why = fmt::format("the CUDA part cannot be loaded: {}", said ? said : "no reason given");
        return nullptr;
    }
    using Plugin = const CudaPlugin* (*)();
    auto plugin = reinterpret_cast<Plugin>(::dlsym(library, "saturate_cuda_plugin"));
    SATURATE_CHECK(plugin, "libsaturate_cuda.so exports its plugin");
    return plugin();
}

std::string amd_gpu(const std::filesystem::path& sys) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(sys / "bus/pci/devices", error)) {
        auto read = [&](const char* name) {
            std::string text = read_if_there(entry.path() / name);
            return std::string(trim(text));
        };
        std::string kind = read("class");
        // PCI classes: a display controller, or an accelerator without a display.
        bool computes = kind.starts_with("0x03") || kind.starts_with("0x12");
        if (!computes || read("vendor") != "0x1002") continue;
        std::string name = read("product_name");
        return name.empty() ? "AMD GPU " + read("device") : name;
    }
    return "";
}

const CudaPlugin& need_cuda_plugin() {
    std::string why;
    if (const CudaPlugin* plugin = load_cuda_plugin(why)) return *plugin;
    if (std::string other = amd_gpu(); !other.empty()) {
        throw MachineError(
            {.found = fmt::format("{}: training on AMD GPUs (ROCm) is not supported yet", other),
             .expected = "an NVIDIA GPU, or --device cpu",
             .fix = "saturate run -- python train.py watches and diagnoses a PyTorch job on this "
                    "GPU"});
    }
    if (why == why_no_cuda_driver("/proc")) {
        bool in_container = why.starts_with("libcuda.so.1");
        throw MachineError(
            {.found = why,
             .expected = "an NVIDIA driver and a GPU that this process can use",
             .fix = in_container
                        ? "a container needs NVIDIA_DRIVER_CAPABILITIES=compute,utility; --device "
                          "cpu trains without a GPU"
                        : kAskDoctor});
    }
    bool is_built = why.starts_with("the CUDA part");
    throw MachineError(
        {.found = why,
         .expected = is_built ? "the libraries of the CUDA build of LibTorch, and a driver"
                              : "a build on a machine with an NVIDIA driver, where ./saturate "
                                "fetches the rest",
         .fix = is_built ? kAskDoctor
                         : "./saturate selftest builds it; or tools/bootstrap torch, then "
                           "tools/build release"});
}

namespace {

[[noreturn]] void throw_no_gpu(int index, int count) {
    throw MachineError(
        {.found = count == 0 ? std::string("no GPU that CUDA can use")
                             : fmt::format("cuda:{} of {} GPUs", index, count),
         .expected = count == 0
                         ? std::string("an NVIDIA driver and a GPU that this process can use")
                         : fmt::format("cuda:0 to cuda:{}", count - 1),
         .fix = kAskDoctor});
}

// Keeps the first line: CUDA's errors continue with advice for CUDA developers.
std::string reason_of(const c10::Error& error) {
    return std::string(split(error.what_without_backtrace(), '\n')[0]);
}

}  // namespace

std::unique_ptr<DeviceBackend> open_gpu(const CudaPlugin& plugin, std::optional<int> index,
                                        int local_rank, const DeviceOptions& options) {
    int count = plugin.device_count();
    int chosen = index ? *index : gpu_of_rank(local_rank, count);
    if (chosen >= count) throw_no_gpu(chosen, count);
    try {
        return plugin.open(chosen, options);
    } catch (const c10::Error& error) {  // taken by another process, too old, broken
        throw MachineError(
            {.found = fmt::format("cuda:{} cannot be used: {}", chosen, reason_of(error)),
             .expected = "a GPU that this process can use",
             .fix = "nvidia-smi shows who uses it; --device cpu trains without a GPU"});
    }
}

int gpu_of_rank(int local_rank, int visible) {
    if (visible == 1) return 0;
    if (local_rank >= visible) throw_no_gpu(local_rank, visible);
    return local_rank;
}

bool is_out_of_memory(const std::exception& error) {
    if (dynamic_cast<const c10::OutOfMemoryError*>(&error)) return true;
    if (!dynamic_cast<const c10::Error*>(&error)) return false;
    std::string_view text = error.what();
    for (const char* sign :
         {"BLAS_STATUS_ALLOC_FAILED", "SOLVER_STATUS_ALLOC_FAILED", "CUFFT_ALLOC_FAILED",
          "CUDNN_STATUS_ALLOC_FAILED",
          // cuDNN 9: ..._HOST_... and ..._DEVICE_...
          "_ALLOCATION_FAILED",
          // cuDNN under LibTorch tries one algorithm after another and reports this when none had
          // enough memory.
          "unable to find an engine to execute this computation",
          // "CUDA error: ...", "HIP ...", and NCCL's "Cuda failure 2 '...'"
          "out of memory"}) {
        if (text.find(sign) != std::string_view::npos) return true;
    }
    return false;
}

void with_memory_errors(const std::function<void()>& work) {
    try {
        work();
    } catch (const c10::OutOfMemoryError&) {
        throw;
    } catch (const c10::Error& error) {
        TORCH_CHECK_WITH(OutOfMemoryError, !is_out_of_memory(error),
                         error.what_without_backtrace());
        throw;
    }
}

void with_machine_errors(const char* what_for, const std::function<void()>& work) {
    try {
        work();
    } catch (const c10::Error& error) {
        if (is_out_of_memory(error)) {
            throw MachineError(
                {.found = fmt::format("out of memory for {}: {}", what_for, reason_of(error)),
                 .expected = "memory for the model, its gradients and one sample",
                 .fix = "a smaller model, or a larger device"});
        }
        throw MachineError({.found = fmt::format("{} cannot be set up on this device: {}", what_for,
                                                 reason_of(error)),
                            .expected = "a device that this build of LibTorch can use",
                            .fix = kAskDoctor});
    }
}

void use_device_collectives(ProcessGroup& group) {
    std::string why;
    const CudaPlugin* plugin = load_cuda_plugin(why);
    SATURATE_CHECK(plugin, "a GPU was opened, so its library is there");
    group.use_device(plugin->collectives(group.store(), group.rank(), group.count()));
}

OpenedDevice open_device(const std::string& wish, const DeviceOptions& options, bool cpu_has_bf16,
                         int local_rank) {
    if (wish == "cpu") return {make_cpu_backend(options, cpu_has_bf16), ""};
    if (wish == "auto") {
        std::string why;
        const CudaPlugin* plugin = load_cuda_plugin(why);
        if (plugin && plugin->device_count() > 0)
            return {open_gpu(*plugin, {}, local_rank, options), ""};
        if (plugin) why = "no GPU that CUDA can use";
        if (std::string other = amd_gpu(); !other.empty())
            why = fmt::format("{} can be watched, but not trained on: training needs an NVIDIA GPU",
                              other);
        return {make_cpu_backend(options, cpu_has_bf16), why};
    }
    if (wish.starts_with("sim:")) return {make_sim_backend(wish.substr(4), options), ""};
    if (wish == "cuda") return {open_gpu(need_cuda_plugin(), {}, local_rank, options), ""};
    if (wish.starts_with("cuda:")) {
        auto number = parse_integer(std::string_view(wish).substr(5));
        if (number && *number >= 0 && *number < 1024)
            return {open_gpu(need_cuda_plugin(), static_cast<int>(*number), local_rank, options),
                    ""};
    }
    throw UserError({.found = fmt::format("--device is {}", in_quotes(wish)),
                     .expected = "auto, cpu, cuda, cuda:N or sim:GPU",
                     .fix = "--device auto"});
}

}  // namespace saturate
