// SPDX-License-Identifier: Apache-2.0
#include "process/run_folder.h"

#include <fmt/format.h>

#include <ctime>
#include <filesystem>

namespace saturate {

std::string run_folder(const std::string& config) {
    namespace fs = std::filesystem;
    std::time_t now = std::time(nullptr);
    std::tm local{};
    ::localtime_r(&now, &local);
    char stamp[32] = {};
    std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
    std::string stem = fs::path(config).stem();
    fs::path base = fs::path("runs") / fmt::format("{}-{}", stem, stamp);
    fs::path path = base;
    for (int n = 2; fs::exists(path); ++n) path = fmt::format("{}-{}", base.string(), n);
    return path;
}

}  // namespace saturate
