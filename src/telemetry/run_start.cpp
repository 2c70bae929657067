// SPDX-License-Identifier: Apache-2.0
#include "telemetry/run_start.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/host.h"
#include "probe/git.h"

namespace saturate {

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
