// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "engine/selftest.h"

namespace saturate {

std::vector<SelftestCheck> selftest_cuda() {
    std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    std::filesystem::path path = here / "libsaturate_cuda.so";
    // Never closed: CUDA does not survive being unloaded.
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        throw MachineError({.found = fmt::format("this build has no CUDA part ({})", ::dlerror()),
                            .expected = "a build of the preset cuda, which needs the CUDA toolkit",
                            .fix = "cmake --preset cuda && cmake --build --preset cuda"});
    }
    using Selftest = std::string (*)(std::vector<SelftestCheck>&);
    auto run = reinterpret_cast<Selftest>(::dlsym(library, "saturate_cuda_selftest"));
    SATURATE_CHECK(run, "libsaturate_cuda.so exports its selftest");
    std::vector<SelftestCheck> checks;
    std::string failure = run(checks);
    if (!failure.empty()) {
        throw MachineError({.found = fmt::format("no usable GPU: {}", failure),
                            .expected = "an NVIDIA driver and a GPU that this process may use",
                            .fix = "saturate doctor tells what is there"});
    }
    return checks;
}

}  // namespace saturate
