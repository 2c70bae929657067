// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/file.h"
#include "base/host.h"
#include "base/text.h"
#include "probe/cgroup.h"
#include "probe/machine.h"

namespace saturate {

namespace {

// The features that decide how fast the CPU trains and decodes: x86, then Arm.
constexpr std::array kFeatures = {
    "avx",         "avx2",        "fma",      "f16c",     "avx512f",  "avx512bw", "avx512_vnni",
    "avx512_bf16", "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16", "asimd",    "asimdhp",
    "asimddp",     "i8mm",        "bf16",     "sve",      "sve2",     "svebf16"};

constexpr std::int64_t kMostCpus = 1 << 20;  // more CPUs in a list are garbage

// Parses the kernel's CPU list, "0-3,8,10-11". Returns an empty set for anything else.
std::set<int> parse_cpu_list(std::string_view text) {
    std::set<int> cpus;
    for (std::string_view part : split(trim(text), ',')) {
        std::size_t dash = part.find('-');
        auto first = parse_integer(part.substr(0, dash));
        auto last = dash == std::string_view::npos ? first : parse_integer(part.substr(dash + 1));
        if (!first || !last || *first < 0 || *last < *first || *last >= kMostCpus) return {};
        for (std::int64_t cpu = *first; cpu <= *last; ++cpu) cpus.insert(static_cast<int>(cpu));
    }
    return cpus;
}

// The value after "key   : value" or "key:\tvalue", or "" if there is no such line.
std::string_view field(std::string_view text, std::string_view key) {
    for (std::string_view line : split(text, '\n')) {
        std::size_t colon = line.find(':');
        if (colon == std::string_view::npos || trim(line.substr(0, colon)) != key) continue;
        return trim(line.substr(colon + 1));
    }
    return {};
}

int count_processors(std::string_view cpuinfo) {
    int count = 0;
    for (std::string_view line : split(cpuinfo, '\n')) {
        if (trim(line.substr(0, line.find(':'))) == "processor") ++count;
    }
    return count;
}

std::string model_of(std::string_view cpuinfo) {
    for (std::string_view key : {"model name", "cpu model", "Model", "Hardware"}) {
        if (std::string_view model = field(cpuinfo, key); !model.empty()) return std::string(model);
    }
    std::string_view maker = field(cpuinfo, "CPU implementer"), part = field(cpuinfo, "CPU part");
    if (maker.empty()) return "";
    return fmt::format("Arm, implementer {} part {}", maker, part);
}

// The CPU time that `folder` grants, in cores, or nothing if it sets no limit.
std::optional<double> quota_in(const std::filesystem::path& folder, int version) {
    std::string quota_text, period_text;
    if (version == 2) {
        std::string both = read_if_there(folder / "cpu.max");  // "200000 100000" or "max 100000"
        std::vector<std::string_view> parts = split(trim(both), ' ');
        if (parts.size() != 2) return std::nullopt;
        quota_text = parts[0];
        period_text = parts[1];
    } else {
        quota_text = trim(read_if_there(folder / "cpu.cfs_quota_us"));  // -1: none
        period_text = trim(read_if_there(folder / "cpu.cfs_period_us"));
    }
    auto quota = parse_integer(quota_text), period = parse_integer(period_text);
    if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
    return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<double> probe_quota(const ProbeRoots& roots) {
    std::optional<double> least;
    for (const CgroupPath& path : cgroup_paths(roots, "cpu")) {
        for (const std::filesystem::path& folder : path.folders) {
            auto quota = quota_in(folder, path.version);
            if (quota && (!least || *quota < *least)) least = quota;
        }
    }
    return least;
}

}  // namespace

bool CpuFacts::has(std::string_view feature) const {
    return std::ranges::find(features, feature) != features.end();
}

CpuFacts probe_cpu(const ProbeRoots& roots) {
    CpuFacts cpu;
    std::string cpuinfo = read_start_if_there(roots.proc / "cpuinfo", 1 << 16);
    cpu.model = model_of(cpuinfo);

    std::set<int> online = parse_cpu_list(read_if_there(roots.sys / "devices/system/cpu/online"));
    cpu.cores_online = static_cast<int>(online.size());
    if (cpu.cores_online == 0)
        cpu.cores_online = count_processors(read_start_if_there(roots.proc / "cpuinfo", 1 << 24));
    if (cpu.cores_online == 0) cpu.cores_online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
    cpu.cores_online = std::max(cpu.cores_online, 1);

    // The list in /proc/self/status has any length, but also names CPUs that may be plugged in
    // later.
    std::string status = read_if_there(roots.proc / "self/status");
    std::set<int> allowed = parse_cpu_list(field(status, "Cpus_allowed_list"));
    if (!online.empty()) std::erase_if(allowed, [&](int id) { return !online.contains(id); });
    cpu.cores_affinity = static_cast<int>(allowed.size());
    if (cpu.cores_affinity == 0) cpu.cores_affinity = affinity_cores();
    if (cpu.cores_affinity == 0) cpu.cores_affinity = cpu.cores_online;

    cpu.cores_quota = probe_quota(roots);
    double usable = std::min(cpu.cores_online, cpu.cores_affinity);
    if (cpu.cores_quota) usable = std::min(usable, *cpu.cores_quota);
    cpu.cores_usable = std::max(1, static_cast<int>(usable + 0.01));  // 3.995 is 4

    std::string_view flags = field(cpuinfo, "flags");
    if (flags.empty()) flags = field(cpuinfo, "Features");
    cpu.features_known = !flags.empty();
    std::vector<std::string_view> listed = split(flags, ' ');
    for (std::string_view feature : kFeatures) {
        if (std::ranges::find(listed, feature) != listed.end()) cpu.features.emplace_back(feature);
    }
    return cpu;
}

}  // namespace saturate
