// SPDX-License-Identifier: Apache-2.0
#include "base/cache_folder.h"

#include <cstdlib>

namespace saturate {

std::filesystem::path user_cache_folder() {
    namespace fs = std::filesystem;
    auto variable = [](const char* name) {
        const char* value = std::getenv(name);
        return fs::path(value ? value : "");
    };
    if (fs::path own = variable("SATURATE_CACHE"); !own.empty()) return own;
    if (fs::path xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return xdg / "saturate";
    if (fs::path home = variable("HOME"); !home.empty()) return home / ".cache/saturate";
    return fs::temp_directory_path() / "saturate";
}

}  // namespace saturate
