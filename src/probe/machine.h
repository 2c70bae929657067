// SPDX-License-Identifier: Apache-2.0
// Facts about the machine that this process runs on. An unreadable fact is absent, never 0.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/device.h"

namespace saturate {

struct CpuFacts {
    std::string model;
    int cores_online = 1;
    int cores_affinity = 1;             // that the scheduler may use for this process
    std::optional<double> cores_quota;  // from cgroup v1 or v2
    int cores_usable = 1;               // the smallest of these, at least 1
    std::vector<std::string>
        features;                 // only relevant ones: avx2, avx512f, avx512_bf16, amx_bf16, ...
    bool features_known = false;  // false: the kernel listed none
    [[nodiscard]] bool has(std::string_view feature) const;
};

struct MemoryFacts {
    std::uint64_t total_bytes = 0;
    std::optional<std::uint64_t> limit_bytes;  // from cgroup; absent: none below the total
    std::optional<std::uint64_t> available_bytes;
    [[nodiscard]] std::uint64_t usable_bytes() const;  // the limit if there is one, else the total
};

struct StorageFacts {
    std::filesystem::path folder;
    std::optional<std::uint64_t> free_bytes;   // that this user may fill
    std::optional<double> read_mb_per_second;  // measured with one reader on files of the folder
    double slowest_mb_per_second = 0;          // over the parts of the measurement
    double fastest_mb_per_second = 0;
    int parts = 0;
    std::uint64_t read_bytes = 0;  // bytes read for the measurement
    bool from_page_cache = false;  // the page cache was measured, not the disk
    std::string unknown_because;   // why there is no read speed
};

struct Machine {
    CpuFacts cpu;
    MemoryFacts memory;
    StorageFacts storage;
    std::optional<std::uint64_t> shm_bytes;  // /dev/shm
    std::optional<std::uint64_t> open_files_limit;
    GpuSurvey gpus;
};

// The folders of the kernel's files. Tests pass their own.
struct ProbeRoots {
    std::filesystem::path proc = "/proc";
    std::filesystem::path sys = "/sys";
    std::filesystem::path dev = "/dev";
};

[[nodiscard]] CpuFacts probe_cpu(const ProbeRoots& roots = {});
[[nodiscard]] MemoryFacts probe_memory(const ProbeRoots& roots = {});

// Limits of a measurement of read speed. The first limit reached ends it.
struct ReadBudget {
    std::chrono::milliseconds time{10};
    std::uint64_t bytes = 1ull << 30;
    int entries = 2000;                        // directory entries to look at
    std::uint64_t smallest_file = 1ull << 20;  // smaller files are left out
};
// Never throws. A folder that is missing or has nothing to read has no read speed, but a reason.
[[nodiscard]] StorageFacts probe_storage(const std::filesystem::path& folder,
                                         const ReadBudget& budget);

// Size of /dev/shm, and the number of files that this process may have open.
[[nodiscard]] std::optional<std::uint64_t> probe_shm(const ProbeRoots& roots = {});
[[nodiscard]] std::optional<std::uint64_t> probe_open_files(const ProbeRoots& roots = {});

}  // namespace saturate
