// SPDX-License-Identifier: Apache-2.0
// loader-process: started by saturate_gpu.Loader. Not in the table of verbs, because it needs a
// Python process at the other end of the socket.
#include <fmt/format.h>
#include <sys/socket.h>

#include <csignal>
#include <cstdint>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "commands.h"
#include "exit_code.h"
#include "pipeline/serve_batches.h"

namespace saturate {

int cmd_loader_process(const char* socket) {
    int type = 0;
    socklen_t length = sizeof type;
    std::optional<std::int64_t> number = parse_integer(socket);
    if (!number || ::getsockopt(static_cast<int>(*number), SOL_SOCKET, SO_TYPE, &type, &length)) {
        fmt::print(stderr, "error: loader-process is started by Python's saturate_gpu.Loader\n");
        return kUser;
    }
    // Ctrl-C, and the signals that schedulers send to every process of a job before they end it,
    // are for the training script: it may still save its state and need batches until then. This
    // process ends when the script closes the socket.
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE})
        std::signal(signal, SIG_IGN);
    serve_batches(static_cast<int>(*number));
    return kDone;
}

}  // namespace saturate
