// SPDX-License-Identifier: Apache-2.0
#include "telemetry/run_start.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/host.h"
#include "probe/git.h"
#include "probe/machine.h"

namespace saturate {

Json recorded_machine(const std::vector<GpuIdentity>& gpus) {
    Json list = Json::array();
    for (const GpuIdentity& gpu : gpus) {
        list.add(Json::object({{"gpu", gpu.index},
                               {"name", gpu.name},
                               {"uuid", gpu.uuid},
                               {"memory_total_bytes", gpu.memory_total_bytes},
                               {"mig", gpu.mig}}));
    }
    CpuFacts cpu = probe_cpu();
    return Json::object({{"gpus", list},
                         {"cpu", cpu.model},
                         {"cores_usable", cpu.cores_usable},
                         {"memory_bytes", probe_memory().usable_bytes()}});
}

RunInfo started_run(std::string kind, std::vector<std::string> command, std::string_view version) {
    RunInfo info{.kind = std::move(kind), .command = std::move(command)};
    info.host = host_name();
    info.pid = ::getpid();
    info.started_ns = now_ns();
    info.started_wall_ns = wall_ns();
    info.git_revision = git_revision(".");
    info.version = version;
    return info;
}

}  // namespace saturate
