// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "arguments.h"
#include "base/error.h"
#include "commands.h"
#include "dispatch.h"
#include "exit_code.h"
#include "process/gpus.h"
#include "report/doctor.h"
#include "show.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

// If a folder is given, doctor takes time to measure it; without, it answers at once.
constexpr ReadBudget kQuick{};
constexpr ReadBudget kNamed{.time = std::chrono::milliseconds(1000),
                            .bytes = 2ull << 30,
                            .entries = 20000,
                            .smallest_file = 1};

fs::path data_folder(const Arguments& arguments) {
    fs::path folder = arguments.text("--data").value_or(".");
    std::error_code error;
    if (arguments.has("--data") && !fs::is_directory(folder, error)) {
        throw UserError({.where = {folder.string()},
                         .found = fs::exists(folder, error) ? "is not a folder" : "does not exist",
                         .expected = "the folder that holds the training data"});
    }
    return folder;
}

std::optional<ToolkitFacts> find_toolkit() {
    std::vector<fs::path> folders;
    for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
        if (const char* value = std::getenv(name)) folders.emplace_back(value);
    }
    folders.emplace_back("/usr/local/cuda");
    return probe_toolkit(folders);
}

// Returns the folder in which an engine from a wheel finds torch, or "" if there is no such engine.
fs::path wheel_site() {
    std::error_code error;
    for (const fs::path& folder : engine_folders())
        if (folder.filename() == "saturate_gpu_engine" &&
            fs::exists(folder / "saturate-engine", error))
            return folder.parent_path();
    return {};
}

bool has_cuda_part() {
    std::error_code error;
    for (const fs::path& folder : engine_folders())
        if (fs::exists(folder / "libsaturate_cuda.so", error)) return true;
    return false;
}

}  // namespace

int cmd_doctor(const Arguments& arguments) {
    fs::path folder = data_folder(arguments);
    fs::path wheel = wheel_site();
    DoctorFacts facts{
        .machine = {.cpu = probe_cpu(),
                    .memory = probe_memory(),
                    .storage = probe_storage(folder, arguments.has("--data") ? kNamed : kQuick),
                    .shm_bytes = probe_shm(),
                    .open_files_limit = probe_open_files(),
                    .gpus = survey_gpus()},
        .torch = probe_torch(wheel.empty() ? fs::path(SATURATE_TORCH_SITE) : wheel),
        .toolkit = find_toolkit(),
        .has_cuda_part = has_cuda_part(),
        .is_wheel = !wheel.empty()};
    if (arguments.has("--json")) {
        fmt::print("{}\n", doctor_json(facts).pretty());
    } else {
        bool bold = wants_coloured_words(stdout);
        show(stdout, "{}", doctor_text(facts, bold));
    }
    return kDone;
}

}  // namespace saturate
