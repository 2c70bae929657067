// SPDX-License-Identifier: Apache-2.0
#include "probe/cgroup.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

struct Mount {
    int version = 2;
    std::string root;  // the group shown at the mount point
    fs::path point;
};

bool has_word(std::string_view list, std::string_view word) {
    std::vector<std::string_view> words = split(list, ',');
    return std::ranges::find(words, word) != words.end();
}

// The kernel's path below /sys, with the root that tests replace.
fs::path below_roots(const ProbeRoots& roots, std::string_view point) {
    constexpr std::string_view kSys = "/sys/";
    if (point.starts_with(kSys)) return roots.sys / point.substr(kSys.size());
    return point;
}

// Lines such as "31 23 0:28 /docker/ab /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct".
std::vector<Mount> mounts_of(const ProbeRoots& roots, std::string_view controller) {
    std::vector<Mount> mounts;
    std::string text = read_start_if_there(roots.proc / "self/mountinfo", 1 << 22);
    for (std::string_view line : split(text, '\n')) {
        std::size_t dash = line.find(" - ");
        if (dash == std::string_view::npos) continue;
        std::vector<std::string_view> place = split(line.substr(0, dash), ' ');
        std::vector<std::string_view> kind = split(line.substr(dash + 3), ' ');
        if (place.size() < 5 || kind.size() < 3) continue;
        int version = kind[0] == "cgroup2" ? 2 : kind[0] == "cgroup" ? 1 : 0;
        if (version == 0 || (version == 1 && !has_word(kind[2], controller))) continue;
        mounts.push_back({version, std::string(place[3]), below_roots(roots, place[4])});
    }
    if (!mounts.empty()) return mounts;
    // No table of mounts: try the usual places.
    fs::path usual = roots.sys / "fs/cgroup";
    std::error_code error;
    if (fs::exists(usual / controller, error)) mounts.push_back({1, "/", usual / controller});
    if (fs::exists(usual / "cgroup.controllers", error)) mounts.push_back({2, "/", usual});
    return mounts;
}

// The kernel's name for the group of this process, or "".
std::string group_of(const ProbeRoots& roots, int version, std::string_view controller) {
    std::string text = read_if_there(roots.proc / "self/cgroup");
    for (std::string_view line : split(text, '\n')) {
        std::size_t first = line.find(':');
        if (first == std::string_view::npos) continue;
        std::size_t second = line.find(':', first + 1);
        if (second == std::string_view::npos) continue;
        std::string_view controllers = line.substr(first + 1, second - first - 1);
        bool fits = version == 2 ? line.substr(0, first) == "0" && controllers.empty()
                                 : has_word(controllers, controller);
        if (fits) return std::string(line.substr(second + 1));
    }
    return "";
}

// The part of `group` below the root of the mount. Empty if the group lies outside: a container may
// see its own group as the root, but under the host's name.
std::string visible_part(std::string group, const std::string& root) {
    if (root != "/") {
        bool inside =
            group.starts_with(root) && (group.size() == root.size() || group[root.size()] == '/');
        if (!inside) return "";
        group.erase(0, root.size());
    }
    return group.starts_with("/..") ? "" : group;
}

}  // namespace

std::vector<CgroupPath> cgroup_paths(const ProbeRoots& roots, std::string_view controller) {
    std::vector<CgroupPath> paths;
    for (const Mount& mount : mounts_of(roots, controller)) {
        CgroupPath path{.version = mount.version};
        std::error_code error;
        fs::path below;
        std::string visible = visible_part(group_of(roots, mount.version, controller), mount.root);
        for (std::string_view part : split(visible, '/')) {
            if (part.empty()) continue;
            below /= part;
            if (!fs::is_directory(mount.point / below, error)) {
                path.folders.clear();
                break;
            }
            path.folders.insert(path.folders.begin(), mount.point / below);
        }
        if (fs::is_directory(mount.point, error)) path.folders.push_back(mount.point);
        if (!path.folders.empty()) paths.push_back(std::move(path));
    }
    return paths;
}

}  // namespace saturate
