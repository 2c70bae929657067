// SPDX-License-Identifier: Apache-2.0
#include "process/child_keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/clock.h"
#include "process/process_tree.h"

namespace saturate::keeper {

namespace {

constexpr std::int64_t kPatienceNs = 3'000'000'000;  // between SIGTERM and SIGKILL after our end
constexpr int kTurnMs = 20;

class Life {
  public:
    Life(int socket, bool ends_with_command)
        : socket_(socket), ends_with_command_(ends_with_command) {}

    [[noreturn]] void live(const std::function<void(int)>& start) {
        ::prctl(PR_SET_NAME, "saturate-keep");
        ::prctl(PR_SET_PDEATHSIG, 0);
        sigset_t all;
        ::sigfillset(&all);
        ::sigprocmask(SIG_SETMASK, &all, nullptr);
        begin(start);
        sigset_t child;
        ::sigemptyset(&child);
        ::sigaddset(&child, SIGCHLD);
        // Sets the default action: an ignored SIGCHLD cannot be waited for.
        ::signal(SIGCHLD, SIG_DFL);
        int ended = ::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
        while (true) {
            reap();
            if (is_over_) end();
            turn(ended);
        }
    }

  private:
    void begin(const std::function<void(int)>& start) {
        int report[2];  // closed by exec; else it brings the errno
        if (::pipe2(report, O_CLOEXEC) != 0) tell_and_end({News::not_started, errno});
        command_ = ::fork();
        if (command_ == 0) start(report[1]);
        int error = command_ < 0 ? errno : 0;
        ::close(report[1]);
        if (error == 0 && ::read(report[0], &error, sizeof error) != sizeof error) error = 0;
        ::close(report[0]);
        if (error != 0) {
            ::waitpid(command_, nullptr, 0);
            tell_and_end({News::not_started, error});
        }
        tell({News::started, command_});
    }

    void tell(const News& news) const { (void)::send(socket_, &news, sizeof news, MSG_NOSIGNAL); }
    [[noreturn]] void tell_and_end(const News& news) const {
        tell(news);
        ::_exit(127);
    }

    // Reaps ended processes. It is over when nobody is left, or when the command ended and the rest
    // does not matter.
    void reap() {
        int raw = 0;
        pid_t pid = 0;
        while ((pid = ::waitpid(-1, &raw, WNOHANG)) > 0) {
            if (pid == command_) {
                command_ = -1;
                raw_ = raw;
            }
        }
        bool is_empty = pid < 0 && errno == ECHILD;
        if (command_ < 0 && ends_with_command_ && !is_empty) signal_all(SIGKILL);
        is_over_ = is_empty || (command_ < 0 && !ends_with_command_ && !waits_for_all_);
    }

    [[noreturn]] void end() const {
        tell({News::ended, raw_});
        ::_exit(127);
    }

    void signal_all(int number) const {
        for (pid_t pid : tree_.living()) ::kill(pid, number);
    }

    void turn(int ended) {
        pollfd fds[2] = {{ended, POLLIN, 0}, {socket_, POLLIN, 0}};
        // A process that is being ended may start others: look again soon.
        bool is_ending = is_alone_ || (command_ < 0 && ends_with_command_);
        ::poll(fds, is_alone_ ? 1 : 2, is_ending ? kTurnMs : -1);
        signalfd_siginfo info;
        while (::read(ended, &info, sizeof info) > 0) {
        }
        if (!is_alone_) take_orders();
        if (is_alone_ && now_ns() > alone_since_ns_ + kPatienceNs) signal_all(SIGKILL);
    }

    void take_orders() {
        Order order{};
        ssize_t got = 0;
        while ((got = ::recv(socket_, &order, sizeof order, MSG_DONTWAIT)) == sizeof order) {
            if (order.what == Order::to_command) {
                if (command_ > 0) ::kill(command_, order.signal);
            } else {
                waits_for_all_ = true;
                signal_all(order.signal);
            }
        }
        bool is_gone = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
        if (!is_gone) return;
        is_alone_ = waits_for_all_ = true;
        alone_since_ns_ = now_ns();
        signal_all(SIGTERM);
        signal_all(SIGCONT);
    }

    ProcessTree tree_;  // adopts orphans from here on
    int socket_;
    bool ends_with_command_;
    bool is_over_ = false;
    bool is_alone_ = false;       // our maker is gone
    bool waits_for_all_ = false;  // the end of the command is not enough
    std::int64_t alone_since_ns_ = 0;
    pid_t command_ = -1;
    int raw_ = 0;
};

}  // namespace

void live(int socket, bool ends_with_command, const std::function<void(int)>& start) {
    Life(socket, ends_with_command).live(start);
}

}  // namespace saturate::keeper
