// SPDX-License-Identifier: Apache-2.0
// serve: shows the runs of a folder as pages that update while jobs run. It only reads records, so
// clients cannot disturb the job that writes them.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <map>

#include "arguments.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/host.h"
#include "commands.h"
#include "exit_code.h"
#include "process/run_folder.h"
#include "process/signals.h"
#include "report/http.h"
#include "report/http_guard.h"
#include "report/run_site.h"
#include "show.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

constexpr std::uint16_t kPort = 8765;
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr double kCpuShare = 0.015;  // of one core, the limit for reading and replying
constexpr std::int64_t kLongestPause = 300 * kSecond;
constexpr std::int64_t kBeat = 15 * kSecond;
constexpr std::int64_t kLinger = 2 * kSecond;  // lets pages fetch the last state
constexpr HttpLimits kLimits{
    .connections = 256, .connections_per_client = 256, .idle_seconds = 10, .threads = 2};

std::int64_t cpu_ns() {
    timespec used{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return std::int64_t{used.tv_sec} * kSecond + used.tv_nsec;
}

// A process; serve ends when it ends.
class Companion {
  public:
    explicit Companion(std::optional<long> pid) : pid_(pid) {
        if (!pid_) return;
        process_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, *pid_, 0)));
        if (!process_.is_open() && errno == ESRCH)
            throw UserError({.found = fmt::format("no process {}", *pid_),
                             .expected = "the pid of a running process"});
        // The job is more important than the page.
        ::setpriority(PRIO_PROCESS, 0, 10);
    }

    [[nodiscard]] int fd() const { return process_.get(); }
    // On a kernel without pidfd, is_gone() must be polled.
    [[nodiscard]] bool must_be_asked() const { return pid_ && !process_.is_open(); }
    [[nodiscard]] bool is_gone() const {
        return pid_ && ::kill(static_cast<pid_t>(*pid_), 0) != 0 && errno == ESRCH;
    }

  private:
    std::optional<long> pid_;
    Descriptor process_;
};

RunShelf shelf_of(const Arguments& arguments) {
    bool is_live = arguments.has("--live");
    if (arguments.operands.size() > 1 || (arguments.operands.empty() && !is_live)) {
        throw UserError(
            {.found = arguments.operands.empty()
                          ? "nothing to serve"
                          : fmt::format("{} folders", arguments.operands.size()),
             .expected = "one folder: a run record, or a folder that holds some; or --live",
             .fix = "saturate serve runs"});
    }
    // The default folder of train and run.
    if (arguments.operands.empty()) return RunShelf(".", {std::string(kRunsFolder)});
    fs::path folder = arguments.operands[0];
    if (!is_live && !fs::is_directory(folder)) {
        throw UserError({.where = {folder.string()},
                         .found = fs::exists(folder) ? "not a folder" : "no such folder",
                         .expected = "a run record, or a folder that holds some"});
    }
    return RunShelf(folder);
}

// Listens on the requested port; if none is given, on 8765 or else on any free port.
std::unique_ptr<HttpServer> listen(const Arguments& arguments, const HttpAddress& address,
                                   const HttpHandler& handler, const HttpRefusal& refusal) {
    bool is_given = arguments.has("--listen");
    try {
        return std::make_unique<HttpServer>(address, "--listen", handler, kLimits, refusal);
    } catch (const UserError&) {
        if (is_given) throw;
        return std::make_unique<HttpServer>(HttpAddress{.host = address.host, .port = 0},
                                            "--listen", handler, kLimits, refusal);
    }
}

std::string url_of(const HttpAddress& bound, const std::string& token) {
    HttpAddress shown = bound;
    if (bound.host == "0.0.0.0" || bound.host == "::") {
        if (std::string name = host_name(); !name.empty()) shown.host = std::move(name);
    }
    return fmt::format("http://{}/{}{}", shown.text(), token.empty() ? "" : "?token=", token);
}

void tell(RunSite& site, HttpServer& server, std::map<std::string, std::string>& told) {
    site.tick();
    std::vector<std::string> channels = server.channels();
    std::erase_if(told, [&](const auto& entry) {
        return std::ranges::find(channels, entry.first) == channels.end();
    });
    for (const std::string& channel : channels) {
        std::string version = site.version(channel);
        if (std::exchange(told[channel], version) != version) server.push(channel, version);
    }
}

void follow(RunSite& site, HttpServer& server, const Companion& companion) {
    Signals interrupts(Signals::Role::stop);
    std::map<std::string, std::string> told;  // version by channel
    std::int64_t cpu = cpu_ns(), next = now_ns() + kSecond, next_beat = now_ns() + kBeat;
    while (interrupts.stop_signal() == 0) {
        std::int64_t wake = std::min(next, next_beat);
        if (companion.must_be_asked()) wake = std::min(wake, now_ns() + kSecond);
        auto woke = interrupts.wait_until(wake, companion.fd());
        if (woke == Signals::Woke::input || companion.is_gone()) {
            tell(site, server, told);
            if (server.listeners() > 0) interrupts.wait_until(now_ns() + kLinger);
            return;
        }
        std::int64_t now = now_ns();
        if (now >= next_beat) {
            server.beat();
            next_beat = now + kBeat;
        }
        if (now < next) continue;
        tell(site, server, told);
        // The CPU time used since the last round sets the pause.
        std::int64_t used = cpu_ns() - std::exchange(cpu, cpu_ns());
        auto pause = static_cast<std::int64_t>(static_cast<double>(used) / kCpuShare);
        next = now_ns() + std::clamp(pause, kSecond, kLongestPause);
    }
}

}  // namespace

int cmd_serve(const Arguments& arguments) {
    HttpAddress address =
        HttpAddress::parse(arguments.text("--listen").value_or(""), "--listen", kPort);
    RunSite site(shelf_of(arguments),
                 {.language = shown_language(), .follows_newest = arguments.has("--live")});
    Companion companion(arguments.whole("--pid", 1, 1L << 22));
    bool needs_token = !address.is_loopback() || arguments.has("--token");
    HttpGuard guard = HttpGuard::for_address(address, needs_token ? fresh_token() : "");
    auto server = listen(
        arguments, address, [&](const HttpRequest& request) { return site.answer(request); },
        [&](const HttpRequest& request) { return guard.refusal(request); });
    fmt::print("{}\n", url_of(server->address(), guard.token()));
    std::fflush(stdout);
    follow(site, *server, companion);
    return kDone;
}

}  // namespace saturate
