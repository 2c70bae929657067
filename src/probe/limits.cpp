// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "probe/machine.h"

namespace saturate {

std::optional<std::uint64_t> probe_shm(const ProbeRoots& roots) {
    struct statvfs status {};
    if (::statvfs((roots.dev / "shm").c_str(), &status) != 0) return std::nullopt;
    return static_cast<std::uint64_t>(status.f_blocks) * status.f_frsize;
}

std::optional<std::uint64_t> probe_open_files(const ProbeRoots& roots) {
    struct rlimit limit {};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
    std::uint64_t files = limit.rlim_cur;  // "unlimited" is the largest number
    auto most = parse_integer(trim(read_if_there(roots.proc / "sys/fs/nr_open")));
    if (most && *most > 0) files = std::min(files, static_cast<std::uint64_t>(*most));
    if (files == RLIM_INFINITY) return std::nullopt;
    return files;
}

}  // namespace saturate
