// SPDX-License-Identifier: Apache-2.0
#include "base/host.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

namespace saturate {

std::string host_name() {
    char name[256] = {};
    return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

int affinity_cores() {
    constexpr std::size_t kMostCpus = 1 << 20;
    // The kernel refuses a set smaller than its own.
    for (std::size_t cpus = 1024; cpus <= kMostCpus; cpus *= 2) {
        auto free_set = [](cpu_set_t* set) { CPU_FREE(set); };
        std::unique_ptr<cpu_set_t, decltype(free_set)> set(CPU_ALLOC(cpus), free_set);
        std::size_t size = CPU_ALLOC_SIZE(cpus);
        if (set && ::sched_getaffinity(0, size, set.get()) == 0)
            return CPU_COUNT_S(size, set.get());
    }
    return 0;
}

std::string own_program() {
    constexpr const char* kSelf = "/proc/self/exe";
    std::error_code error;
    std::filesystem::path file = std::filesystem::read_symlink(kSelf, error);
    if (!error && std::filesystem::exists(file, error)) return file;
    // Stays open in children, who start it by the same number.
    static int program = ::open(kSelf, O_RDONLY);
    return program < 0 ? kSelf : "/proc/self/fd/" + std::to_string(program);
}

}  // namespace saturate
