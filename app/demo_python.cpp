// SPDX-License-Identifier: Apache-2.0
#include "demo_python.h"

#include <fmt/format.h>

#include <cstdlib>
#include <span>
#include <vector>

#include "base/cache_folder.h"
#include "base/embedded.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "process/child.h"
#include "project/captured.h"
#include "show.h"

namespace saturate {

std::span<const EmbeddedFile> embedded_pictures();  // examples/pictures

namespace {

namespace fs = std::filesystem;

constexpr const char* kLevel = "safe";  // compiling would take longer than all the rest
constexpr const char* kBudget = "5m";   // takes three minutes on an idle machine

bool has_torch(const std::string& python) {
    Captured asked = run_captured(
        {python, "-c",
         "import importlib.util, sys; sys.exit(not importlib.util.find_spec('torch'))"},
        "", {.memory_bytes = 64ULL << 30});
    return asked.end == Captured::End::exited && asked.status == 0;
}

}  // namespace

std::optional<std::string> python_with_torch() {
    std::vector<std::string> candidates;
    if (const char* named = std::getenv("SATURATE_PYTHON"); named && *named)
        candidates.emplace_back(named);
    candidates.insert(candidates.end(), {"python3", "python"});
    std::error_code error;
    for (fs::directory_iterator it(user_cache_folder(), error), end; !error && it != end;
         it.increment(error)) {
        if (it->path().filename().string().starts_with("python-torch"))
            candidates.push_back((it->path() / "bin/python").string());
    }
    for (const std::string& python : candidates)
        if (has_torch(python)) return python;
    return std::nullopt;
}

int demo_python(const std::string& python, const fs::path& folder, bool json) {
    fs::path project = folder / "pictures";
    fs::create_directories(project);
    for (const EmbeddedFile& file : embedded_pictures())
        write_file_whole(project / file.name, file.text);
    show(stderr, "a small project with common mistakes: {}\n", project.string());
    show(stderr, "making its pictures ...\n");
    // Make the pictures now, so that trials do not.
    Child making({"env", "-C", project.string(), python, "-B", "-c",
                  "from data import make_pictures; make_pictures('pictures')"},
                 {.output_to_stderr = true});
    if (int status = making.wait(); status != 0) {
        throw MachineError({.found = fmt::format("{} could not make the pictures", python),
                            .expected = "a Python with torch that runs",
                            .fix = "SATURATE_PYTHON=/path/to/python saturate demo"});
    }
    std::vector<std::string> words = {"env",
                                      "-C",
                                      project.string(),
                                      fs::read_symlink("/proc/self/exe").string(),
                                      "fix",
                                      "--level",
                                      kLevel,
                                      "--budget",
                                      kBudget,
                                      "-o",
                                      (fs::absolute(folder) / "fix").string()};
    if (json) words.emplace_back("--json");
    words.insert(words.end(), {"--", python, "train.py"});
    show(stderr, "cd {} && saturate fix --level {} --budget {} -- {} train.py\n", project.string(),
         kLevel, kBudget, python);
    Child fixing(words, {});
    return fixing.wait();
}

}  // namespace saturate
