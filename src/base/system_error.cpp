// SPDX-License-Identifier: Apache-2.0
#include "base/system_error.h"

#include <fmt/format.h>

#include <filesystem>

namespace saturate {

Problem system_problem(const std::system_error& error) {
    std::string why = error.code().message();
    if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
        return {.where = {file->path1().string()},
                .found = fmt::format("cannot be used: {}", why),
                .expected = is_users(error) ? "a path that exists and that you can use"
                                            : "free space on the disk"};
    }
    if (error.code() == std::errc::resource_unavailable_try_again) {
        return {.found = fmt::format("cannot start another thread or process: {}", why),
                .expected = "limits of this user and container that allow one more",
                .fix = "fewer workers, or a higher limit (ulimit -u, pids.max)"};
    }
    return {.found = fmt::format("the system refused: {}", why)};
}

bool is_users(const std::system_error& error) {
    bool is_path = dynamic_cast<const std::filesystem::filesystem_error*>(&error) != nullptr;
    return is_path && error.code() != std::errc::no_space_on_device &&
           error.code() != std::errc::io_error;
}

}  // namespace saturate
