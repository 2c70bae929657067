// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "probe/cgroup.h"
#include "probe/machine.h"

namespace saturate {

namespace {

using Bytes = std::optional<std::uint64_t>;

Bytes parse_bytes(std::string_view text) {
    auto value = parse_integer(trim(text));
    if (!value || *value < 0) return std::nullopt;
    return static_cast<std::uint64_t>(*value);
}

// The value of a line like "MemTotal:  24682416 kB", in bytes.
Bytes meminfo(std::string_view text, std::string_view key) {
    for (std::string_view line : split(text, '\n')) {
        if (!line.starts_with(key) || line.substr(key.size(), 1) != ":") continue;
        std::string_view value = trim(line.substr(key.size() + 1));
        if (value.ends_with("kB")) value.remove_suffix(2);
        Bytes kib = parse_bytes(value);
        if (!kib || *kib > UINT64_MAX / 1024) return std::nullopt;
        return *kib * 1024;
    }
    return std::nullopt;
}

// The value of a line like "inactive_file 4096" in memory.stat.
Bytes stat_value(std::string_view text, std::string_view key) {
    for (std::string_view line : split(text, '\n')) {
        if (line.starts_with(key) && line.substr(key.size(), 1) == " ")
            return parse_bytes(line.substr(key.size() + 1));
    }
    return std::nullopt;
}

struct Limit {
    std::uint64_t bytes = 0;
    Bytes used_bytes;  // without memory that the kernel could reclaim
};

std::optional<Limit> limit_in(const std::filesystem::path& folder, int version) {
    bool is_v2 = version == 2;
    std::string stat = read_if_there(folder / "memory.stat");
    Bytes bytes = parse_bytes(
        read_if_there(folder / (is_v2 ? "memory.max" : "memory.limit_in_bytes")));  // "max": none
    // The limit of groups above the part of the tree that a container sees.
    Bytes above = is_v2 ? std::nullopt : stat_value(stat, "hierarchical_memory_limit");
    if (above && (!bytes || *above < *bytes)) bytes = above;
    if (!bytes || *bytes == 0) return std::nullopt;
    Limit limit{.bytes = *bytes};
    Bytes used =
        parse_bytes(read_if_there(folder / (is_v2 ? "memory.current" : "memory.usage_in_bytes")));
    Bytes cached = stat_value(stat, is_v2 ? "inactive_file" : "total_inactive_file");
    if (used) limit.used_bytes = *used - std::min(*used, cached.value_or(0));
    return limit;
}

std::optional<Limit> least_limit(const ProbeRoots& roots) {
    std::optional<Limit> least;
    for (const CgroupPath& path : cgroup_paths(roots, "memory")) {
        for (const std::filesystem::path& folder : path.folders) {
            auto limit = limit_in(folder, path.version);
            if (limit && (!least || limit->bytes < least->bytes)) least = limit;
        }
    }
    return least;
}

}  // namespace

std::uint64_t MemoryFacts::usable_bytes() const { return limit_bytes.value_or(total_bytes); }

MemoryFacts probe_memory(const ProbeRoots& roots) {
    MemoryFacts memory;
    std::string text = read_if_there(roots.proc / "meminfo");
    Bytes total = meminfo(text, "MemTotal");
    if (!total) {
        total = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 0l)) *
                static_cast<std::uint64_t>(std::max(::sysconf(_SC_PAGESIZE), 0l));
    }
    memory.total_bytes = *total;
    memory.available_bytes = meminfo(text, "MemAvailable");
    auto limit = least_limit(roots);
    // Version 1 writes "no limit" as a number larger than any memory.
    if (!limit || limit->bytes >= memory.total_bytes) return memory;
    memory.limit_bytes = limit->bytes;
    if (limit->used_bytes) {
        std::uint64_t left = limit->bytes - std::min(limit->bytes, *limit->used_bytes);
        memory.available_bytes = std::min(memory.available_bytes.value_or(left), left);
    }
    return memory;
}

}  // namespace saturate
