// SPDX-License-Identifier: Apache-2.0
#include "project/captured.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.h"

extern char** environ;

namespace saturate {

namespace {

constexpr std::size_t kErrorKept = 1 << 16;

class Pipe {
  public:
    Pipe() {
        if (::pipe2(ends_.data(), O_CLOEXEC) != 0)
            throw MachineError({.found = "cannot create a pipe", .expected = "free file handles"});
    }
    ~Pipe() { close_read(), close_write(); }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    [[nodiscard]] int read_end() const { return ends_[0]; }
    [[nodiscard]] int write_end() const { return ends_[1]; }
    void close_read() { shut(ends_[0]); }
    void close_write() { shut(ends_[1]); }

  private:
    static void shut(int& fd) {
        if (fd >= 0) ::close(fd);
        fd = -1;
    }
    std::array<int, 2> ends_{-1, -1};
};

void limit(pid_t pid, __rlimit_resource what, std::uint64_t value) {
    rlimit both{value, value};
    ::prlimit(pid, what, &both, nullptr);
}

// Reads once. Returns false at the end of the stream.
bool take(int fd, std::string& out) {
    std::array<char, 65536> buffer{};
    ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got > 0) out.append(buffer.data(), static_cast<std::size_t>(got));
    return got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN));
}

// Does not use process/child.h, because that folder builds on this one. A helper that reads,
// answers and ends needs no terminal and no keeper of its tree.
pid_t start(const std::vector<std::string>& command, const Pipe& in, const Pipe& out,
            const Pipe& err, int& error) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_adddup2(&actions, in.read_end(), 0);
    ::posix_spawn_file_actions_adddup2(&actions, out.write_end(), 1);
    ::posix_spawn_file_actions_adddup2(&actions, err.write_end(), 2);
    // The helper does not inherit our blocked and ignored signals.
    sigset_t none, defaults;
    ::sigemptyset(&none);
    ::sigemptyset(&defaults);
    ::sigaddset(&defaults, SIGPIPE);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &defaults);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    pid_t pid = -1;
    error = ::posix_spawnp(&pid, words[0], &actions, &attributes, words.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
    return pid;
}

// Keeps a write to an ended process from ending ours with SIGPIPE.
class NoBrokenPipe {
  public:
    NoBrokenPipe() {
        struct sigaction ignore {};
        ignore.sa_handler = SIG_IGN;
        ::sigaction(SIGPIPE, &ignore, &old_);
    }
    ~NoBrokenPipe() { ::sigaction(SIGPIPE, &old_, nullptr); }
    NoBrokenPipe(const NoBrokenPipe&) = delete;
    NoBrokenPipe& operator=(const NoBrokenPipe&) = delete;

  private:
    struct sigaction old_ {};
};

}  // namespace

Captured run_captured(const std::vector<std::string>& command, const std::string& input,
                      const CapturedLimits& limits) {
    using Clock = std::chrono::steady_clock;
    NoBrokenPipe no_broken_pipe;
    Pipe in, out, err;
    int error = 0;
    pid_t pid = start(command, in, out, err, error);
    if (error != 0) return {.end = Captured::End::not_started, .status = error};
    limit(pid, RLIMIT_AS, limits.memory_bytes);
    limit(pid, RLIMIT_CORE, 0);
    in.close_read(), out.close_write(), err.close_write();
    ::fcntl(in.write_end(), F_SETFL, O_NONBLOCK);

    Captured done;
    Clock::time_point deadline = Clock::now() + limits.time;
    std::size_t written = 0;
    if (input.empty()) in.close_write();
    bool has_out = true, has_err = true;
    while (has_out || has_err) {
        auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        if (left.count() <= 0) {
            done.end = Captured::End::out_of_time;
            break;
        }
        std::array<pollfd, 3> fds{pollfd{has_out ? out.read_end() : -1, POLLIN, 0},
                                  pollfd{has_err ? err.read_end() : -1, POLLIN, 0},
                                  pollfd{in.write_end(), POLLOUT, 0}};
        if (::poll(fds.data(), fds.size(), static_cast<int>(left.count())) < 0 && errno != EINTR)
            break;
        if (fds[0].revents) has_out = take(out.read_end(), done.out);
        if (fds[1].revents) has_err = take(err.read_end(), done.err);
        if (done.err.size() > 2 * kErrorKept) done.err.erase(0, done.err.size() - kErrorKept);
        if (done.out.size() > limits.output_bytes) {
            done.end = Captured::End::too_much_output;
            break;
        }
        if (fds[2].revents) {
            ssize_t put = ::write(in.write_end(), input.data() + written, input.size() - written);
            if (put > 0) written += static_cast<std::size_t>(put);
            if (written == input.size() || (put < 0 && errno != EAGAIN && errno != EINTR))
                in.close_write();
        }
    }
    if (done.end != Captured::End::exited) ::kill(pid, SIGKILL);
    int raw = 0;
    while (::waitpid(pid, &raw, 0) < 0 && errno == EINTR) {
    }
    done.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
    return done;
}

}  // namespace saturate
