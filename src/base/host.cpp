// SPDX-License-Identifier: Apache-2.0
#include "base/host.h"

#include <sched.h>
#include <unistd.h>

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

}  // namespace saturate
