// SPDX-License-Identifier: Apache-2.0
#include "telemetry/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>

#include "base/descriptor.h"
#include "base/text.h"

namespace saturate {

namespace {

std::uint64_t unsigned_of(std::string_view text) {
    auto value = parse_integer(text);
    return value && *value > 0 ? static_cast<std::uint64_t>(*value) : 0;
}

// Returns the value of the line "Name:   value".
std::optional<std::string_view> line_value(std::string_view text, std::string_view name) {
    for (std::string_view line : split(text, '\n')) {
        if (line.starts_with(name)) return trim(line.substr(name.size()));
    }
    return std::nullopt;
}

bool is_hex(std::string_view text) {
    return std::ranges::all_of(
        text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

// stat is "pid (name) state ppid ...". The name may hold spaces and brackets, so count the fields
// from its end.
std::optional<ProcStat> parse_stat(std::string_view text) {
    std::size_t open = text.find('('), close = text.rfind(')');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
        return std::nullopt;
    }
    auto pid = parse_integer(trim(text.substr(0, open)));
    std::vector<std::string_view> rest = split(trim(text.substr(close + 1)), ' ');
    constexpr std::size_t kFields = 22;  // up to the resident pages
    if (!pid || rest.size() < kFields || rest[0].empty()) return std::nullopt;
    auto field = [&](std::size_t number) {
        return unsigned_of(rest[number - 3]);
    };  // numbered as in proc(5)
    ProcStat stat{.pid = *pid,
                  .parent = static_cast<std::int64_t>(field(4)),
                  .name = std::string(text.substr(open + 1, close - open - 1)),
                  .state = rest[0][0]};
    stat.cpu_ticks = field(14) + field(15);
    stat.threads = static_cast<int>(field(20));
    stat.start_ticks = field(22);
    stat.resident_pages = field(24);
    if (rest.size() > 39) stat.io_wait_ticks = field(42);
    return stat;
}

std::optional<std::string> container_of_cgroup(std::string_view text) {
    constexpr std::size_t kIdLength = 64;
    for (std::string_view line : split(text, '\n')) {
        for (std::string_view part : split(line, '/')) {
            if (part.ends_with(".scope")) part.remove_suffix(6);
            if (part.size() < kIdLength) continue;
            std::string_view id = part.substr(part.size() - kIdLength);
            if (!is_hex(id)) continue;
            std::string_view runtime = part.substr(0, part.size() - kIdLength);
            while (runtime.ends_with('-')) runtime.remove_suffix(1);
            if (runtime.empty())
                runtime = line.find("docker") != std::string_view::npos ? "docker" : "container";
            return fmt::format("{} {}", runtime, id.substr(0, 12));
        }
    }
    return std::nullopt;
}

std::optional<std::string> slurm_job_of_cgroup(std::string_view text) {
    if (text.find("slurm") == std::string_view::npos) return std::nullopt;
    for (std::string_view line : split(text, '\n')) {
        for (std::string_view part : split(line, '/')) {
            if (part.starts_with("job_") && parse_integer(part.substr(4)))
                return std::string(part.substr(4));
        }
    }
    return std::nullopt;
}

std::string Proc::read(const std::string& name) const {
    Descriptor file(::open((root_ / name).c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.is_open()) return "";
    std::string out;
    char buffer[8192];
    constexpr std::size_t kMost = 4u << 20;
    ssize_t got = 0;
    while (out.size() < kMost && (got = ::read(file.get(), buffer, sizeof buffer)) > 0) {
        out.append(buffer, static_cast<std::size_t>(got));
    }
    return out;
}

std::vector<std::int64_t> Proc::numbers_in(const std::filesystem::path& folder) const {
    std::vector<std::int64_t> numbers;
    DIR* opened = ::opendir(folder.c_str());
    if (!opened) return numbers;
    while (const dirent* entry = ::readdir(opened)) {
        if (auto number = parse_integer(entry->d_name)) numbers.push_back(*number);
    }
    ::closedir(opened);
    std::ranges::sort(numbers);
    return numbers;
}

std::vector<std::int64_t> Proc::processes() const { return numbers_in(root_); }

std::vector<std::int64_t> Proc::threads(std::int64_t pid) const {
    return numbers_in(root_ / std::to_string(pid) / "task");
}

std::optional<ProcStat> Proc::stat(std::int64_t pid) const {
    return parse_stat(read(fmt::format("{}/stat", pid)));
}

std::optional<ProcStat> Proc::thread_stat(std::int64_t pid, std::int64_t tid) const {
    return parse_stat(read(fmt::format("{}/task/{}/stat", pid, tid)));
}

// schedstat holds the time on a core, the time waiting for one, and the number of time slices.
std::optional<std::uint64_t> Proc::thread_wait_ns(std::int64_t pid, std::int64_t tid) const {
    std::string text = read(fmt::format("{}/task/{}/schedstat", pid, tid));
    std::vector<std::string_view> parts = split(trim(text), ' ');
    if (parts.size() < 2) return std::nullopt;
    return unsigned_of(parts[1]);
}

std::optional<ProcIo> Proc::io(std::int64_t pid) const {
    std::string text = read(fmt::format("{}/io", pid));
    auto calls = line_value(text, "rchar:"), disk = line_value(text, "read_bytes:");
    if (!calls || !disk) return std::nullopt;
    return ProcIo{unsigned_of(*calls), unsigned_of(*disk)};
}

std::string Proc::command(std::int64_t pid) const {
    std::string text = read(fmt::format("{}/cmdline", pid));
    while (!text.empty() && text.back() == '\0') text.pop_back();
    std::ranges::replace(text, '\0', ' ');
    return text;
}

std::optional<std::string> Proc::user(std::int64_t pid) const {
    std::string status = read(fmt::format("{}/status", pid));
    auto line = line_value(status, "Uid:");
    if (!line) return std::nullopt;
    auto uid = parse_integer(split(*line, '\t')[0]);
    if (!uid) return std::nullopt;
    passwd entry{};
    passwd* found = nullptr;
    char buffer[4096];
    if (::getpwuid_r(static_cast<uid_t>(*uid), &entry, buffer, sizeof buffer, &found) == 0 &&
        found) {
        return std::string(found->pw_name);
    }
    return std::to_string(*uid);
}

std::optional<std::string> Proc::slurm_job(std::int64_t pid) const {
    std::string environment = read(fmt::format("{}/environ", pid));
    for (std::string_view entry : split(environment, '\0')) {
        constexpr std::string_view kName = "SLURM_JOB_ID=";
        if (entry.starts_with(kName) && entry.size() > kName.size())
            return std::string(entry.substr(kName.size()));
    }
    return slurm_job_of_cgroup(read(fmt::format("{}/cgroup", pid)));
}

std::optional<std::string> Proc::container(std::int64_t pid) const {
    return container_of_cgroup(read(fmt::format("{}/cgroup", pid)));
}

bool Proc::sees_host_pids() const {
    std::error_code error;
    // The kernel's initial pid namespace has this fixed number.
    return std::filesystem::read_symlink(root_ / "self/ns/pid", error) == "pid:[4026531836]";
}

}  // namespace saturate
