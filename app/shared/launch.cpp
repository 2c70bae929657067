// SPDX-License-Identifier: Apache-2.0
#include "launch.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/free_port.h"
#include "base/text.h"
#include "exit_code.h"
#include "process/child.h"
#include "process/rank_environment.h"
#include "process/run_folder.h"
#include "process/signals.h"
#include "show.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSecond = 1'000'000'000;
// After a rank dies, the others have kGraceNs to notice, write a checkpoint and exit. Then they are
// asked to end, and after kAskNs they are killed.
constexpr std::int64_t kGraceNs = 20 * kSecond, kAskNs = 5 * kSecond;

// Holds the output of a rank in memory until it knows its run's folder; the rank then moves the
// output to its log.
class EarlyLog {
  public:
    EarlyLog() : fd_(::memfd_create("log", MFD_CLOEXEC)) {
        SATURATE_CHECK(fd_ >= 0, "a process can open one file more");
    }
    ~EarlyLog() { ::close(fd_); }
    EarlyLog(const EarlyLog&) = delete;
    EarlyLog& operator=(const EarlyLog&) = delete;
    [[nodiscard]] int fd() const { return fd_; }
    [[nodiscard]] std::string text() const {
        std::string out(1 << 16, '\0');
        ssize_t got = ::pread(fd_, out.data(), out.size(), 0);
        out.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        return out;
    }

  private:
    int fd_;
};

struct Rank {
    std::unique_ptr<EarlyLog> log;  // null for rank 0
    std::unique_ptr<Child> child;
};

class Launcher {
  public:
    Launcher(const Arguments& arguments, int count) : arguments_(arguments), count_(count) {
        program_ = fs::read_symlink("/proc/self/exe");
        // Choose the folder here: otherwise each rank would choose one, and a restart would not
        // find it.
        output_ = arguments.text("--output").value_or("");
        if (output_.empty() && !arguments.has("--resume"))
            output_ =
                new_run_folder(fs::path(arguments.text("--config").value_or("run")).stem().string())
                    .string();
    }

    int run(long restarts) {
        for (long attempt = 0;; ++attempt) {
            int status = run_once(attempt);
            bool may_help = status != kDone && status != kUser && status != kInterrupted;
            if (!may_help || attempt >= restarts || interrupts_.stop_signal() != 0) return status;
            show(stderr, "restart {} of {}, from the last checkpoint\n", attempt + 1, restarts);
        }
    }

  private:
    [[nodiscard]] std::vector<std::string> command(long attempt) const {
        std::vector<std::string> out{program_, "train"};
        const std::vector<std::string>& words = arguments_.words;
        for (std::size_t i = 0; i < words.size(); ++i) {
            std::string name = words[i].substr(0, words[i].find('='));
            bool is_apart = name.size() == words[i].size();  // --name value, not --name=value
            bool drops = name == "--nproc" || name == "--max-restarts" || name == "--output" ||
                         name == "-o" || (name == "--resume" && attempt > 0);
            if (!drops) {
                out.push_back(words[i]);
                continue;
            }
            // --resume may have no value.
            bool follows = is_apart && i + 1 < words.size() &&
                           (name != "--resume" || !words[i + 1].starts_with("-"));
            if (follows) ++i;
        }
        if (!output_.empty()) out.insert(out.end(), {"--output", output_});
        if (attempt > 0) out.insert(out.end(), {"--resume", resume_from()});
        return out;
    }

    // Returns the value of --resume for a restart: the run itself, because its newest checkpoint is
    // later than the one from which it started.
    [[nodiscard]] std::string resume_from() const {
        std::string given = arguments_.text("--resume").value_or("auto");
        if (!output_.empty() || given.empty() || given == "auto") return "auto";
        if (fs::exists(fs::path(given) / "state.json"))
            return fs::weakly_canonical(given).parent_path().parent_path();
        return given;
    }

    void start(int rank, int port, long attempt) {
        Rank one;
        ChildSettings how;
        auto number = [](int value) { return std::to_string(value); };
        how.environment = {{"RANK", number(rank)},       {"WORLD_SIZE", number(count_)},
                           {"LOCAL_RANK", number(rank)}, {"LOCAL_WORLD_SIZE", number(count_)},
                           {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", number(port)},
                           {"SATURATE_LAUNCHER", "1"}};
        how.own_group = true;  // we get Ctrl-C and pass it on to each rank once
        how.ends_with_us = true;
        if (rank > 0) {
            one.log = std::make_unique<EarlyLog>();
            how.output_fd = how.error_fd = one.log->fd();
        }
        one.child = std::make_unique<Child>(command(attempt), how);
        ranks_.push_back(std::move(one));
    }

    int run_once(long attempt) {
        ranks_.clear();
        int port = free_port();
        for (int rank = 0; rank < count_; ++rank) start(rank, port, attempt);
        std::optional<int> failed;  // the first rank that failed
        std::int64_t failed_ns = 0;
        bool forwarded = false, asked = false;
        while (true) {
            int running = 0;
            for (int rank = 0; rank < count_; ++rank) {
                std::optional<int> status = ranks_[rank].child->status();
                if (!status) ++running;
                if (!status || *status == kDone || *status == kInterrupted || failed) continue;
                failed = rank;
                failed_ns = now_ns();
                tell_death(rank);
            }
            if (running == 0) break;
            if (interrupts_.stop_signal() != 0 && !forwarded) {
                forwarded = true;
                signal_all(interrupts_.stop_signal());
            }
            std::int64_t waited = failed ? now_ns() - failed_ns : 0;
            if (failed && waited > kGraceNs && !asked) {
                asked = true;
                signal_all(SIGTERM);
            }
            if (failed && waited > kGraceNs + kAskNs) signal_all(SIGKILL);
            (void)interrupts_.wait_until(now_ns() + kSecond);
        }
        return status_of(failed);
    }

    void signal_all(int number) {
        for (Rank& rank : ranks_) rank.child->signal(number);
    }

    void tell_death(int rank) {
        Child& child = *ranks_[rank].child;
        std::string how = child.ended_by_signal() != 0
                              ? fmt::format("was killed by signal {}", child.ended_by_signal())
                              : fmt::format("exited with status {}", *child.status());
        // Rank 0 reports its error on the terminal itself; for a user error all ranks say the same.
        bool says_itself = rank == 0 || *child.status() == kUser;
        if (!says_itself || child.ended_by_signal() != 0)
            show(stderr, "rank {} {} (process {})\n", rank, how, child.pid());
    }

    int status_of(const std::optional<int>& failed) {
        int first = *ranks_[0].child->status();
        if (!failed) return first;
        if (first == kDone || ranks_[0].child->ended_by_signal() != 0)
            for (const Rank& rank : ranks_)
                if (rank.log) show(stderr, "{}", rank.log->text());
        int status = *ranks_[*failed].child->status();
        return status > 128 ? kJobFailed : status;  // ended by a signal: the job failed
    }

    const Arguments& arguments_;
    int count_;
    std::string program_, output_;
    Signals interrupts_{Signals::Role::stop};
    std::vector<Rank> ranks_;
};

}  // namespace

int launch_ranks(const Arguments& arguments) {
    constexpr long kMost = 1024;
    auto count = static_cast<int>(*arguments.whole("--nproc", 1, kMost));
    long restarts = *arguments.whole("--max-restarts", 0, 1'000'000);
    if (arguments.has("--grid")) {
        throw UserError(
            Problem{.found = "--nproc with --grid",
                    .expected = "one run on several processes, or several runs on one"});
    }
    if (auto place = rank_place(own_environment())) {
        throw UserError({.found = fmt::format("--nproc inside a job of {} ranks ({})", place->count,
                                              place->launcher),
                         .expected = "one launcher: this one, or the one that set RANK",
                         .fix = "leave --nproc out"});
    }
    return Launcher(arguments, count).run(restarts);
}

}  // namespace saturate
