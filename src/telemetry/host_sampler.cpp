// SPDX-License-Identifier: Apache-2.0
#include "telemetry/host_sampler.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/text.h"

namespace saturate {

namespace {

std::optional<std::uint64_t> kilobytes(std::string_view text, std::string_view name) {
    std::size_t at = text.find(name);
    if (at == std::string_view::npos) return std::nullopt;
    std::string_view rest = text.substr(at + name.size());
    rest = trim(rest.substr(0, rest.find('\n')));
    auto value = parse_integer(rest.substr(0, rest.find(' ')));
    if (!value) return std::nullopt;
    return static_cast<std::uint64_t>(*value) * 1024;
}

std::uint64_t rise(std::uint64_t now, std::uint64_t before) {
    return now > before ? now - before : 0;
}

}  // namespace

HostSampler::HostSampler(const HostSettings& settings) : settings_(settings), proc_(settings.proc) {
    if (settings_.ticks_per_second == 0) settings_.ticks_per_second = ::sysconf(_SC_CLK_TCK);
    if (settings_.page_bytes == 0) settings_.page_bytes = ::sysconf(_SC_PAGESIZE);
}

double HostSampler::percent_of_core(std::uint64_t ticks, double seconds) const {
    return 100.0 * static_cast<double>(ticks) / static_cast<double>(settings_.ticks_per_second) /
           seconds;
}

HostSample HostSampler::sample(std::int64_t time_ns) {
    HostSample out{.time_ns = time_ns};
    double seconds = last_ns_ ? static_cast<double>(time_ns - *last_ns_) / 1e9 : 0;
    ++round_;
    sample_machine(out);
    sample_own(out, seconds);
    if (settings_.watched_pid) out.tree = sample_tree(seconds);
    last_ns_ = time_ns;
    return out;
}

void HostSampler::sample_machine(HostSample& out) {
    std::string stat = proc_.read("stat");
    std::vector<std::uint64_t> cpu;
    int cores = 0;
    for (std::string_view line : split(stat, '\n')) {
        if (line.starts_with("cpu ")) {
            for (std::string_view word : split(line.substr(4), ' ')) {
                if (auto value = parse_integer(word))
                    cpu.push_back(static_cast<std::uint64_t>(*value));
            }
        } else if (line.starts_with("cpu")) {
            ++cores;
        } else if (line.starts_with("procs_running ")) {
            if (auto value = parse_integer(line.substr(14))) out.running = static_cast<int>(*value);
        }
    }
    if (cores > 0) out.cores = cores;
    // user nice system idle iowait irq softirq steal; user includes guest time.
    constexpr std::size_t kColumns = 8;
    if (cpu.size() >= kColumns && last_cpu_.size() >= kColumns) {
        std::uint64_t total = 0;
        for (std::size_t i = 0; i < kColumns; ++i) total += rise(cpu[i], last_cpu_[i]);
        std::uint64_t idle = rise(cpu[3], last_cpu_[3]), waiting = rise(cpu[4], last_cpu_[4]);
        if (total > 0) {
            auto share = [&](std::uint64_t part) {
                return 100.0 * static_cast<double>(part) / static_cast<double>(total);
            };
            out.cpu_percent = share(total - std::min(total, idle + waiting));
            out.io_wait_percent = share(waiting);
        }
    }
    if (!cpu.empty()) last_cpu_ = cpu;
    std::string memory = proc_.read("meminfo");
    out.memory_total_bytes = kilobytes(memory, "MemTotal:");
    out.memory_available_bytes = kilobytes(memory, "MemAvailable:");
}

void HostSampler::sample_own(HostSample& out, double seconds) {
    timespec used{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    double cpu = static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
    if (seconds > 0) out.own_cpu_percent = 100 * (cpu - last_own_cpu_seconds_) / seconds;
    last_own_cpu_seconds_ = cpu;
    std::string statm = proc_.read("self/statm");
    std::vector<std::string_view> parts = split(trim(statm), ' ');
    if (parts.size() < 2) return;
    if (auto pages = parse_integer(parts[1])) {
        out.own_memory_bytes = static_cast<std::uint64_t>(*pages * settings_.page_bytes);
    }
}

std::vector<ProcStat> HostSampler::tree_members() const {
    std::vector<ProcStat> all;
    for (std::int64_t pid : proc_.processes()) {
        if (auto stat = proc_.stat(pid)) all.push_back(std::move(*stat));
    }
    std::vector<ProcStat> members;
    std::set<std::int64_t> pids;
    auto root = std::ranges::find(all, *settings_.watched_pid, &ProcStat::pid);
    if (root == all.end() || root->state == 'Z') return members;
    pids.insert(root->pid);
    members.push_back(*root);
    // Children may have smaller pids than their parents (pids wrap), so repeat until none is new.
    for (bool grew = true; grew;) {
        grew = false;
        for (const ProcStat& process : all) {
            if (!pids.contains(process.parent) || pids.contains(process.pid)) continue;
            pids.insert(process.pid);
            members.push_back(process);
            grew = true;
        }
    }
    return members;
}

// True for PyTorch's workers, which have a name, and for Python processes that Python started with
// multiprocessing or fork.
bool HostSampler::is_loader_worker(const ProcStat& process, const ProcStat& parent) const {
    if (process.name.starts_with("pt_data_worker")) return true;
    if (!process.name.starts_with("python") && !process.name.starts_with("pt_")) return false;
    std::string command = proc_.command(process.pid);
    if (command.find("resource_tracker") != std::string::npos) return false;
    if (command.find("multiprocessing.spawn") != std::string::npos ||
        command.find("multiprocessing.forkserver") != std::string::npos) {
        return true;
    }
    return parent.name.starts_with("python") && command == proc_.command(parent.pid);
}

TreeSample HostSampler::sample_tree(double seconds) {
    TreeSample tree{.root_pid = *settings_.watched_pid};
    std::vector<ProcStat> members = tree_members();
    if (members.empty()) {
        tree.ended = true;
        if (has_io_) tree.read_bytes = read_bytes_;
        if (has_io_) tree.read_call_bytes = read_call_bytes_;
        return tree;
    }
    tree.processes = static_cast<int>(members.size());
    std::uint64_t cpu = 0, io_wait = 0, pages = 0, worker_cpu = 0;
    bool is_first = !last_ns_ || processes_.empty();
    for (const ProcStat& process : members) {
        auto [place, is_new] = processes_.try_emplace(process.pid);
        Seen& seen = place->second;
        is_new = is_new || seen.start_ticks != process.start_ticks;  // the pid was reused
        auto io = proc_.io(process.pid);
        has_io_ = has_io_ || io.has_value();
        // A process started since the last sample counts in full, except at the first sample.
        if (is_new) seen = {.start_ticks = process.start_ticks};
        if (is_new && is_first) {
            seen.cpu_ticks = process.cpu_ticks;
            seen.io_wait_ticks = process.io_wait_ticks;
            if (io) seen.io = *io;
        }
        std::uint64_t used = rise(process.cpu_ticks, seen.cpu_ticks);
        cpu += used;
        io_wait += rise(process.io_wait_ticks, seen.io_wait_ticks);
        pages += process.resident_pages;
        tree.threads += process.threads;
        if (io) {
            read_bytes_ += rise(io->read_bytes, seen.io.read_bytes);
            read_call_bytes_ += rise(io->read_call_bytes, seen.io.read_call_bytes);
            seen.io = *io;
        }
        auto parent = std::ranges::find(members, process.parent, &ProcStat::pid);
        if (process.pid != tree.root_pid && parent != members.end() &&
            is_loader_worker(process, *parent)) {
            ++tree.loader_workers;
            worker_cpu += used;
        }
        seen.cpu_ticks = process.cpu_ticks;
        seen.io_wait_ticks = process.io_wait_ticks;
        seen.round = round_;
    }
    std::erase_if(processes_, [&](const auto& entry) { return entry.second.round != round_; });
    tree.memory_bytes = pages * static_cast<std::uint64_t>(settings_.page_bytes);
    if (has_io_) tree.read_bytes = read_bytes_;
    if (has_io_) tree.read_call_bytes = read_call_bytes_;
    if (seconds > 0 && !is_first) {
        tree.cpu_percent = percent_of_core(cpu, seconds);
        tree.io_wait_percent = percent_of_core(io_wait, seconds);
        if (tree.loader_workers > 0) {
            tree.worker_cpu_percent = percent_of_core(worker_cpu, seconds) / tree.loader_workers;
        }
    }
    sample_threads(tree, members, is_first ? 0 : seconds);
    tree.slurm_job = proc_.slurm_job(tree.root_pid);
    tree.container = proc_.container(tree.root_pid);
    return tree;
}

void HostSampler::sample_threads(TreeSample& tree, const std::vector<ProcStat>& members,
                                 double seconds) {
    // Each thread costs two small reads; with more threads, sampling would disturb the job.
    constexpr int kMostThreads = 1024;
    constexpr std::size_t kShown = 16;
    int budget = kMostThreads;
    std::uint64_t waited_ns = 0;
    for (const ProcStat& process : members) {
        for (std::int64_t tid : proc_.threads(process.pid)) {
            if (budget-- <= 0) break;
            auto stat = proc_.thread_stat(process.pid, tid);
            if (!stat) continue;
            auto waited = proc_.thread_wait_ns(process.pid, tid);
            auto [place, is_new] = threads_.try_emplace(tid);
            Seen& seen = place->second;
            if (is_new && seconds == 0)
                seen = {.cpu_ticks = stat->cpu_ticks, .wait_ns = waited.value_or(0)};
            ThreadSample thread{
                .pid = process.pid, .tid = tid, .name = stat->name, .state = stat->state};
            if (seconds > 0) {
                thread.cpu_percent =
                    percent_of_core(rise(stat->cpu_ticks, seen.cpu_ticks), seconds);
                waited_ns += rise(waited.value_or(0), seen.wait_ns);
            }
            if (tid == tree.root_pid) tree.main_thread_percent = thread.cpu_percent;
            tree.busiest.push_back(std::move(thread));
            seen.cpu_ticks = stat->cpu_ticks;
            seen.wait_ns = waited.value_or(seen.wait_ns);
            seen.round = round_;
        }
    }
    std::erase_if(threads_, [&](const auto& entry) { return entry.second.round != round_; });
    if (seconds > 0)
        tree.run_queue_percent = 100.0 * static_cast<double>(waited_ns) / 1e9 / seconds;
    std::ranges::stable_sort(tree.busiest, std::greater<>(), [](const ThreadSample& thread) {
        return thread.cpu_percent.value_or(0);
    });
    if (tree.busiest.size() > kShown) tree.busiest.resize(kShown);
}

std::vector<ProcessRow> HostSampler::rows(const std::vector<DeviceSample>& devices,
                                          std::int64_t time_ns) {
    std::vector<ProcessRow> out;
    bool ours = proc_.sees_host_pids();
    for (const DeviceSample& device : devices) {
        if (!device.processes) continue;
        for (const GpuProcess& process : *device.processes) {
            ProcessRow row{.gpu = device.gpu, .process = process};
            auto stat = ours ? proc_.stat(process.pid) : std::nullopt;
            if (stat) {
                ProcessRow& known = known_rows_[process.pid];
                if (!known.command) {
                    std::string command = proc_.command(process.pid);
                    known.command = command.empty() ? stat->name : command.substr(0, 300);
                    known.user = proc_.user(process.pid);
                    known.slurm_job = proc_.slurm_job(process.pid);
                    known.container = proc_.container(process.pid);
                }
                row.pid_here = process.pid;
                row.command = known.command;
                row.user = known.user;
                row.slurm_job = known.slurm_job;
                row.container = known.container;
                row.memory_bytes =
                    stat->resident_pages * static_cast<std::uint64_t>(settings_.page_bytes);
                auto [last, is_new] = row_cpu_.try_emplace(process.pid, time_ns, stat->cpu_ticks);
                double seconds = static_cast<double>(time_ns - last->second.first) / 1e9;
                if (!is_new && seconds > 0)
                    row.cpu_percent =
                        percent_of_core(rise(stat->cpu_ticks, last->second.second), seconds);
                known.cpu_percent = row.cpu_percent ? row.cpu_percent : known.cpu_percent;
                row.cpu_percent = known.cpu_percent;
                last->second = {time_ns, stat->cpu_ticks};
            }
            out.push_back(std::move(row));
        }
    }
    constexpr std::size_t kMostKnown = 4096;
    if (known_rows_.size() > kMostKnown) known_rows_.clear();
    if (row_cpu_.size() > kMostKnown) row_cpu_.clear();
    return out;
}

}  // namespace saturate
