// SPDX-License-Identifier: Apache-2.0
#include "engine/compile_build.h"

#include <ATen/Parallel.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <torch/headeronly/version.h>

#include <cstdlib>
#include <string_view>

#include "base/cache_folder.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"

extern char** environ;

namespace saturate {

namespace fs = std::filesystem;

std::string_view embedded_compile_graph();  // python/compile_graph.py

namespace {

// Part of the cache key: graphs are compiled for the instructions of this CPU.
std::string cpu_of_this_machine() {
    std::string out;
    std::string text = read_start_if_there("/proc/cpuinfo", 1 << 14);
    for (std::string_view line : split(text, '\n')) {
        if (line.starts_with("model name") || line.starts_with("flags") ||
            line.starts_with("Features") || line.starts_with("CPU part"))
            out += line;
        if (line.empty()) break;  // all cores have the same model
    }
    return out;
}

// Runs the command with its output in `log`. Returns its exit status, or -1 if it cannot be
// started. Does not use process/child.h: the engine does not include that folder, and here it is
// enough to wait.
int run_logged(const std::vector<std::string>& command, const fs::path& log) {
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t pid = -1;
    int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return -1;
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

std::string last_line(const fs::path& log) {
    std::string text = read_if_there(log);
    std::string_view rest = trim(text);
    return first_line(std::string(rest.substr(rest.rfind('\n') + 1)));
}

}  // namespace

CompileSettings compile_settings() {
    fs::path cache = user_cache_folder();
    CompileSettings out{.cache = cache / "graphs", .python = {}};
    if (const char* python = std::getenv("SATURATE_PYTHON"); python && *python) {
        out.python = {python};
    } else {
        fs::path ours = cache / ("python-torch" TORCH_VERSION) / "bin" / "python";
        if (fs::exists(ours)) out.python.push_back(ours);
        out.python.emplace_back("python3");
    }
    return out;
}

GraphFiles graph_files(const TracedLoss& traced, const CompileSettings& settings) {
    std::uint64_t key = fnv1a(traced.module);
    for (const std::string& part :
         {traced.inputs, std::string(TORCH_VERSION), cpu_of_this_machine(),
          std::string(embedded_compile_graph()), std::to_string(settings.max_autotune)}) {
        key = fnv1a(part, key);
    }
    fs::path stem = settings.cache / fmt::format("{:016x}", key);
    auto with = [&](const char* extension) { return fs::path(stem) += extension; };
    return {.package = with(".pt2"), .verdict = with(".slower"), .log = with(".log")};
}

std::string build_graph(const TracedLoss& traced, const GraphFiles& files,
                        const CompileSettings& settings) {
    std::error_code error;
    fs::create_directories(settings.cache, error);
    if (error) return fmt::format("cannot create {}: {}", settings.cache.string(), error.message());
    auto with = [&](const char* extension) {
        return fs::path(files.package).replace_extension(extension);
    };
    fs::path script = with(".py"), loss = with(".pt"), request = with(".json");
    Json inputs = Json::parse(traced.inputs, "inputs");
    try {
        write_file_whole(script, embedded_compile_graph());
        write_file_whole(loss, traced.module);
        write_file_whole(request, Json::object({{"loss", loss.string()},
                                                {"package", files.package.string()},
                                                {"inputs", inputs},
                                                {"parameters", traced.parameters},
                                                {"torch", TORCH_VERSION},
                                                {"threads", at::get_num_threads()},
                                                {"max_autotune", settings.max_autotune}})
                                      .line());
    } catch (const std::exception& failure) {
        return first_line(failure.what());
    }
    std::string problem = "no Python found";
    for (const std::string& python : settings.python) {
        int status = run_logged({python, "-B", script.string(), request.string()}, files.log);
        if (status == 0 && fs::exists(files.package)) {
            problem.clear();
            break;
        }
        if (status == 127 || status == -1) {
            problem = fmt::format("no {}", python);
        } else {
            problem = fmt::format("{}: {} (all of it: {})", python, last_line(files.log),
                                  files.log.string());
        }
    }
    for (const fs::path& path : {script, loss, request}) fs::remove(path, error);
    return problem;
}

}  // namespace saturate
