// SPDX-License-Identifier: Apache-2.0
// What the stand-in for NVML costs by itself: loads, starts and stops the library that is named, or
// does nothing without an argument. bench/monitor takes the difference off every tool.
#include <dlfcn.h>

int main(int argc, char** argv) {
    if (argc < 2) return 0;
    void* library = dlopen(argv[1], RTLD_NOW);
    if (!library) return 1;
    using Call = int (*)();
    auto start = reinterpret_cast<Call>(dlsym(library, "nvmlInit_v2"));
    auto stop = reinterpret_cast<Call>(dlsym(library, "nvmlShutdown"));
    return start && stop && start() == 0 && stop() == 0 ? 0 : 1;
}
