// SPDX-License-Identifier: Apache-2.0
#include "pipeline/image_scratch.h"

#include <sys/stat.h>

#include <functional>

#include "pipeline/random.h"

namespace saturate {

std::uint64_t mix_file(std::uint64_t hash, const std::string& path) {
    struct stat status {};
    (void)::stat(path.c_str(), &status);  // a vanished file counts as empty
    hash = mix(hash, std::hash<std::string>()(path));
    hash = mix(hash, static_cast<std::uint64_t>(status.st_size));
    hash = mix(hash, static_cast<std::uint64_t>(status.st_mtim.tv_sec));
    return mix(hash, static_cast<std::uint64_t>(status.st_mtim.tv_nsec));
}

}  // namespace saturate
