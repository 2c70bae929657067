// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/text.h"
#include "probe/gpu_table.h"
#include "report/doctor.h"

namespace saturate {

namespace {

using List = std::vector<Missing>;

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kGiB = 1024 * kMiB;

// A batch of 64 images of 3 x 224 x 224 floats, which PyTorch's loader workers put into /dev/shm.
constexpr std::uint64_t kBatchBytes = 64ull * 3 * 224 * 224 * 4;
constexpr std::uint64_t kBatchesPerWorker = 2;  // PyTorch's prefetch_factor
constexpr double kImageMb = 0.11;               // a typical JPEG file, as in ImageNet
constexpr std::uint64_t kFewFiles = 4096;
// Smaller measurements, of some ten milliseconds on a busy disk, say nothing about the disk.
constexpr std::uint64_t kToldOf = 8 * kMiB;
constexpr double kSlowMbPerSecond = 200;
constexpr std::uint64_t kLittleSpace = 5 * kGiB;
constexpr std::int64_t kCudaMajor = 13;  // of the LibTorch in tools/pypi.txt

std::string_view plural(std::uint64_t count) { return count == 1 ? "" : "s"; }

void about_one_gpu(const GpuIdentity& gpu, List& list) {
    std::string which = fmt::format("GPU {}", gpu.index);
    if (gpu.fault) {
        list.push_back({fmt::format("{}: {}", which, *gpu.fault),
                        "no job can use it until it is reset; the others are not affected"});
        return;
    }
    if (gpu.mig == true) {
        list.push_back({fmt::format("{} is split into instances (MIG)", which),
                        "it reports no utilisation; only run and train can tell how busy it is"});
    }
    auto match = match_gpu(gpu);
    if (!match) {
        list.push_back({fmt::format("{} ({}) is not in the GPU table", which, in_quotes(gpu.name)),
                        "its peak rates, MFU and best precision are unknown"});
    } else if (match->kind == GpuMatchKind::capability) {
        list.push_back({fmt::format("{} ({}) is not in the GPU table", which, in_quotes(gpu.name)),
                        fmt::format("its peak rates are guessed from {}; its precision is certain",
                                    match->facts.name)});
    }
}

void about_gpus(const DoctorFacts& facts, List& list) {
    const GpuSurvey& survey = facts.machine.gpus;
    if (!survey.driver) {
        list.push_back(
            {fmt::format("no NVML ({})", survey.absent_because),
             "the GPU's utilisation cannot be read; only run and train can tell how busy it is"});
    }
    if (!survey.driver || survey.driver->gpus.empty()) {
        list.push_back(
            {"no GPU",
             "training runs on the CPU; optimize --gpu NAME can still plan for a GPU elsewhere"});
        return;
    }
    for (const GpuIdentity& gpu : survey.driver->gpus) about_one_gpu(gpu, list);
}

std::int64_t major_of(std::string_view version) {
    return parse_integer(version.substr(0, version.find('.'))).value_or(0);
}

// Reports what CUDA 13 no longer supports: drivers for CUDA 12 (minor versions are compatible,
// major versions are not) and GPUs before Turing.
void about_age(const GpuDriver& driver, std::int64_t cuda_major, List& list) {
    constexpr std::string_view kWorks =
        "train runs on the CPU; run, fix, monitor, diagnose and optimize work as usual, also with "
        "a PyTorch for an older CUDA";
    if (driver.cuda_version && major_of(*driver.cuda_version) < cuda_major) {
        list.push_back({fmt::format("a driver for CUDA {} (this one supports {})", cuda_major,
                                    *driver.cuda_version),
                        fmt::format("until it is updated {}", kWorks)});
        return;
    }
    for (const GpuIdentity& gpu : driver.gpus) {
        if (cuda_major < 13 || !gpu.capability || gpu.fault) continue;
        if (*gpu.capability >= Capability{7, 5}) continue;
        list.push_back({fmt::format("GPU {} has capability {}.{}, and CUDA {} needs 7.5", gpu.index,
                                    gpu.capability->major, gpu.capability->minor, cuda_major),
                        std::string(kWorks)});
    }
}

void about_software(const DoctorFacts& facts, List& list) {
    const TorchFacts& torch = facts.torch;
    const std::optional<GpuDriver>& driver = facts.machine.gpus.driver;
    bool has_gpu = driver && !driver->gpus.empty();
    std::string_view fetch =
        facts.is_wheel ? "pip install --force-reinstall torch" : "tools/bootstrap torch";
    if (torch.folder.empty()) {
        list.push_back({"no LibTorch in this build",
                        "train, selftest and tune --config do not run; in a checkout, ./saturate "
                        "fetches it when you call one of them; with the wheel, also install "
                        "saturate-gpu-engine"});
    } else if (!torch.found) {
        list.push_back(
            {fmt::format("LibTorch is gone from {}", torch.folder.string()),
             fmt::format("train, tune and selftest do not start until {} has run", fetch)});
    } else if (has_gpu && !torch.gpu_ready) {
        list.push_back(
            {"LibTorch without its CUDA libraries",
             fmt::format("there is a GPU, but train would run on the CPU; {} fetches them",
                         fetch)});
    } else if (has_gpu && !facts.has_cuda_part) {
        list.push_back({"no CUDA part (libsaturate_cuda.so)",
                        "there is a GPU, but train would run on the CPU; tools/build release "
                        "saturate_cuda builds it"});
    }
    // Without LibTorch, check for the version that would be installed.
    if (has_gpu)
        about_age(*driver, torch.cuda_version ? major_of(*torch.cuda_version) : kCudaMajor, list);
    if (has_gpu && !facts.toolkit) {
        list.push_back({"no CUDA toolkit (nvcc)",
                        "you cannot compile your own kernels; nothing else needs it"});
    }
}

void about_cpu(const CpuFacts& cpu, List& list) {
    if (cpu.cores_usable < cpu.cores_online) {
        std::string by = cpu.cores_quota && *cpu.cores_quota < cpu.cores_affinity
                             ? fmt::format("cgroup quota of {:g}", *cpu.cores_quota)
                             : "affinity";
        list.push_back(
            {fmt::format("{} of {} cores ({})", cpu.cores_online - cpu.cores_usable,
                         cpu.cores_online, by),
             fmt::format(
                 "of {} cores, {} may be used: more workers than {} only wait for each other",
                 cpu.cores_online, cpu.cores_usable, cpu.cores_usable)});
    }
    if (!cpu.features_known) return;
    bool is_arm = cpu.has("asimd");
    bool has_bf16 = cpu.has("avx512_bf16") || cpu.has("amx_bf16") || cpu.has("bf16");
    if (!has_bf16) {
        list.push_back({is_arm ? "no bf16 in the CPU" : "no avx512_bf16, no amx_bf16",
                        "bf16 on this CPU is emulated, 4-10 times slower: use fp32 there"});
    }
    if (!is_arm && !cpu.has("avx2"))
        list.push_back({"no avx2", "LibTorch and image decoding fall back to their slowest code"});
}

void about_memory(const MemoryFacts& memory, List& list) {
    if (!memory.limit_bytes) return;
    list.push_back({fmt::format("{} of memory (cgroup limit)",
                                bytes_text(memory.total_bytes - *memory.limit_bytes)),
                    fmt::format("the machine has {}, but the job is killed at {}: caches and "
                                "workers must fit into that",
                                bytes_text(memory.total_bytes), bytes_text(*memory.limit_bytes))});
}

void about_limits(const Machine& machine, List& list) {
    auto workers = static_cast<std::uint64_t>(machine.cpu.cores_usable);
    std::uint64_t needed = workers * kBatchesPerWorker * kBatchBytes;
    if (!machine.shm_bytes) {
        list.push_back(
            {"no /dev/shm", "PyTorch loader workers cannot hand over batches: num_workers 0 only"});
    } else if (*machine.shm_bytes < needed) {
        std::uint64_t batches = *machine.shm_bytes / kBatchBytes;
        list.push_back(
            {fmt::format("/dev/shm is only {}", bytes_text(*machine.shm_bytes)),
             fmt::format(
                 "PyTorch loader workers run out (bus error) at {} batch{} of 64 float images "
                 "of 224x224; {} worker{} of {} need {}: docker run --shm-size=1g",
                 batches, batches == 1 ? "" : "es", workers, plural(workers), kBatchesPerWorker,
                 bytes_text(needed))});
    }
    if (machine.open_files_limit && *machine.open_files_limit < kFewFiles) {
        list.push_back({fmt::format("only {} open files", *machine.open_files_limit),
                        "many workers or shards end in \"Too many open files\": ulimit -n 65536"});
    }
}

void about_storage(const StorageFacts& storage, List& list) {
    if (storage.free_bytes && *storage.free_bytes < kLittleSpace) {
        list.push_back({fmt::format("space: {} free", bytes_text(*storage.free_bytes)),
                        "checkpoints and records may fill the disk"});
    }
    if (!storage.read_mb_per_second) {
        list.push_back(
            {fmt::format("read speed of {} ({})", storage.folder.string(), storage.unknown_because),
             "the disk may be too slow for the GPU: doctor --data DIR measures it"});
    } else if (!storage.from_page_cache && storage.read_bytes >= kToldOf &&
               *storage.read_mb_per_second < kSlowMbPerSecond) {
        list.push_back({fmt::format("storage reads only {:.0f} MB/s", *storage.read_mb_per_second),
                        fmt::format("one reader gets {:.0f} images/s of 110 kB at most: copy the "
                                    "data to a local disk, or cache it",
                                    *storage.read_mb_per_second / kImageMb)});
    }
}

}  // namespace

std::vector<Missing> missing_parts(const DoctorFacts& facts) {
    List list;
    about_gpus(facts, list);
    about_software(facts, list);
    about_cpu(facts.machine.cpu, list);
    about_memory(facts.machine.memory, list);
    about_limits(facts.machine, list);
    about_storage(facts.machine.storage, list);
    return list;
}

}  // namespace saturate
