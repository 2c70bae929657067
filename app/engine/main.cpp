// SPDX-License-Identifier: Apache-2.0
// The program that links LibTorch. `saturate` executes it for the verbs that need LibTorch.
#include <link.h>

#include <filesystem>
#include <string>

#include "commands.h"
#include "dispatch.h"
#include "engine/selftest.h"
#include "probe/software.h"

namespace saturate {
namespace {

// Returns the folder of the LibTorch that this process has loaded.
std::filesystem::path loaded_torch() {
    std::filesystem::path found;
    ::dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* data) {
            std::filesystem::path path = object->dlpi_name;
            if (path.filename() != "libtorch_cpu.so") return 0;
            *static_cast<std::filesystem::path*>(data) =
                path.parent_path().parent_path().lexically_normal();
            return 1;
        },
        &found);
    return found;
}

// Checks the version of LibTorch before anything uses a tensor: an engine from a wheel loads the
// torch of the Python environment, which may be another one.
template <int (*run)(const Arguments&)>
int with_our_torch(const Arguments& arguments) {
    std::string built_with = torch_version();  // "2.15.0"
    refuse_other_torch(loaded_torch(), built_with.substr(0, built_with.rfind('.')));
    return run(arguments);
}

}  // namespace
}  // namespace saturate

int main(int argc, char** argv) {
    using namespace saturate;
    constexpr Handler kHandlers[] = {
        {"selftest", with_our_torch<cmd_selftest>},
        {"train", with_our_torch<cmd_train>},
    };
    return dispatch(argc, argv, Program::engine, kHandlers);
}
