// SPDX-License-Identifier: Apache-2.0
#include "process/process_tree.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "telemetry/proc.h"

namespace saturate {

ProcessTree::ProcessTree() {
    for (const Process& process : all()) {
        if (process.parent == ::getpid()) not_ours_.insert(process.pid);
    }
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

ProcessTree::~ProcessTree() { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }

// All descendants except earlier children, parents first.
std::vector<ProcessTree::Process> ProcessTree::all() const {
    Proc proc;
    std::vector<Process> rest;
    for (std::int64_t pid : proc.processes()) {
        auto stat = proc.stat(pid);
        if (stat && !not_ours_.contains(static_cast<pid_t>(pid)))
            rest.push_back({static_cast<pid_t>(pid), static_cast<pid_t>(stat->parent),
                            stat->state == 'Z' || stat->state == 'X'});
    }
    std::vector<Process> out;
    std::set<pid_t> level = {::getpid()};
    while (!level.empty()) {
        std::set<pid_t> next;
        for (const Process& process : rest) {
            if (!level.contains(process.parent)) continue;
            next.insert(process.pid);
            out.push_back(process);
        }
        level = std::move(next);
    }
    return out;
}

std::vector<pid_t> ProcessTree::living() const {
    std::vector<pid_t> out;
    for (const Process& process : all()) {
        if (!process.is_zombie) out.push_back(process.pid);
    }
    return out;
}

void ProcessTree::reap_orphans(pid_t child) const {
    for (const Process& process : all()) {
        if (process.is_zombie && process.parent == ::getpid() && process.pid != child)
            ::waitpid(process.pid, nullptr, WNOHANG);
    }
}

void ProcessTree::ask_to_end() {
    for (const Process& process : all()) {
        if (process.is_zombie || process.parent != ::getpid()) continue;
        if (!asked_.insert(process.pid).second) continue;
        ::kill(process.pid, SIGTERM);
        ::kill(process.pid, SIGCONT);
    }
}

void ProcessTree::kill() const {
    for (pid_t pid : living()) ::kill(pid, SIGKILL);
}

}  // namespace saturate
