// SPDX-License-Identifier: Apache-2.0
#include "process/trial_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "telemetry/step_tail.h"

namespace saturate {

namespace {

constexpr std::int64_t kPollNs = 50'000'000;
constexpr double kGraceSeconds = 15;     // for the last checkpoint and the summary
constexpr double kLeastMeasured = 0.8;   // seconds; a rate of less is chance ...
constexpr double kHopelessAfter = 0.4;   // ... but one that is far too low is known earlier
constexpr double kNoisy = 0.1;           // a spread beyond which more is measured
constexpr std::int64_t kLeastSteps = 3;  // one is warm-up; matters where a step takes seconds

double seconds_since(std::int64_t start_ns) {
    return static_cast<double>(now_ns() - start_ns) / 1e9;
}

void sleep_ns(std::int64_t ns) {
    timespec wait{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
    ::nanosleep(&wait, nullptr);
}

// A group of its own, so that Ctrl-C reaches the search alone and a kill takes the workers along.
class Group {
  public:
    Group(const std::vector<std::string>& command, const std::filesystem::path& log) {
        std::vector<char*> words;
        for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
        words.push_back(nullptr);
        int out = ::open(log.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
        if (out < 0) {
            throw MachineError({.where = {log.string()},
                                .found = fmt::format("cannot be written: {}", std::strerror(errno)),
                                .expected = "a folder with room for the trials"});
        }
        pid_ = ::fork();
        if (pid_ == 0) {
            ::setpgid(0, 0);
            // A script's background job ignores it, and so would the trial that is asked to end.
            ::signal(SIGINT, SIG_DFL);
            int in = ::open("/dev/null", O_RDONLY);
            ::dup2(in, 0);
            ::dup2(out, 1);
            ::dup2(out, 2);
            ::execvp(words[0], words.data());
            ::dprintf(2, "error: %s cannot be started: %s\n", words[0], std::strerror(errno));
            ::_exit(127);
        }
        ::close(out);
        if (pid_ < 0) {
            throw MachineError(
                {.found = "no process can be started", .expected = "room for one more process"});
        }
        ::setpgid(pid_, pid_);
    }
    ~Group() {
        if (!status()) end(SIGKILL, 0);
        ::kill(-pid_, SIGKILL);  // what it left behind
    }
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    std::optional<int> status() {
        int raw = 0;
        if (!status_ && ::waitpid(pid_, &raw, WNOHANG) == pid_)
            status_ = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
        return status_;
    }

    // Asks, waits, and kills what does not listen.
    void end(int signal, double grace_seconds) {
        if (status()) return;
        ::kill(signal == SIGKILL ? -pid_ : pid_, signal);
        std::int64_t start = now_ns();
        while (!status() && seconds_since(start) < grace_seconds) sleep_ns(kPollNs);
        if (status()) return;
        ::kill(-pid_, SIGKILL);
        int raw = 0;
        while (::waitpid(pid_, &raw, 0) < 0 && errno == EINTR) {
        }
        status_ = 128 + SIGKILL;
    }

  private:
    pid_t pid_ = -1;
    std::optional<int> status_;
};

// What is to be measured: all steps, or those after the first epoch where that fills a cache.
class Measured {
  public:
    explicit Measured(const TrialProcess& trial) : trial_(trial) {}

    void add(std::span<const StepRecord> steps) {
        for (const StepRecord& step : steps) {
            if (trial_.skip_first_epoch && !epoch_samples_) epoch_samples_ = samples_per_epoch();
            if (seen_ < epoch_samples_.value_or(0)) {
                seen_ += step.samples.value_or(0);
                ++skipped_;
            } else {
                account_.add(step);
            }
        }
    }
    [[nodiscard]] std::int64_t steps() const { return skipped_ + account_.steps(); }
    [[nodiscard]] std::optional<Rate> rate() const {
        std::optional<Rate> rate = rate_of(account_.account());
        if (rate) rate->dropped += skipped_;
        return rate;
    }

  private:
    [[nodiscard]] std::int64_t samples_per_epoch() const {
        std::string text = read_if_there(trial_.run_folder / "run.json");
        if (text.empty()) return 0;
        return Json::parse(text, "run.json")["extra"]["samples_per_epoch"].integer().value_or(0);
    }
    TrialProcess trial_;
    std::optional<std::int64_t> epoch_samples_;
    std::int64_t seen_ = 0, skipped_ = 0;
    RunAccount account_;
};

// Why the watching ended.
enum class Ended { by_itself, enough, hang, stopped, time_up };

Ended watch(Group& group, const TrialProcess& trial, Measured& measured) {
    StepTail tail(trial.run_folder);
    std::int64_t start = now_ns(), last_step = 0, looked = 0;
    while (true) {
        std::vector<StepRecord> more = tail.next();
        if (!more.empty()) last_step = now_ns();
        measured.add(more);
        if (group.status()) return Ended::by_itself;
        if (trial.is_stopped && trial.is_stopped()) return Ended::stopped;
        if (measured.steps() == 0 ? seconds_since(start) > trial.start_seconds_max
                                  : seconds_since(last_step) > trial.silence_seconds_max)
            return Ended::hang;
        if (seconds_since(start) > trial.seconds_max) return Ended::time_up;
        if (trial.steps == 0 && measured.steps() >= kLeastSteps && seconds_since(looked) > 0.2) {
            looked = now_ns();
            if (auto rate = measured.rate()) {
                double seconds = static_cast<double>(rate->steps) * rate->step_seconds;
                bool is_noisy = rate->spread() > kNoisy;
                if (seconds >= (is_noisy ? 2 : 1) * trial.seconds) return Ended::enough;
                if (seconds >= std::min(kLeastMeasured, trial.seconds) && is_known_well(*rate))
                    return Ended::enough;
                if (seconds >= kHopelessAfter && is_hopeless(*rate, trial.hopeless_below))
                    return Ended::enough;
            }
        }
        sleep_ns(kPollNs);
    }
}

bool has_event(const RunRecord& record, EventKind kind) {
    return std::ranges::find(record.events, kind, &EventRecord::kind) != record.events.end();
}

}  // namespace

std::string reason_in(std::string_view log) {
    std::string last, error;
    for (std::string_view line : split(log, '\n')) {
        std::string_view text = trim(line);
        if (text.empty()) continue;
        last = text;
        if (lower(std::string(text)).find("error") != std::string::npos) error = text;
    }
    return error.empty() ? last : error;
}

TrialOutcome outcome_of(int status, std::string_view log) {
    std::string text = lower(std::string(log));
    auto says = [&](std::string_view words) { return text.find(words) != std::string::npos; };
    if (status == 0 || status == 130) return TrialOutcome::ok;
    if (says("cuda out of memory") || says("outofmemoryerror") || says("out of memory"))
        return TrialOutcome::out_of_memory;
    if (status == 128 + SIGKILL || says("bad_alloc") || says("memoryerror") || says("bus error"))
        return TrialOutcome::out_of_host_memory;
    if (says("loss is nan") || says("loss is not finite") || says("no finite number"))
        return TrialOutcome::nonfinite;
    return TrialOutcome::failed;
}

TrialResult run_trial_process(const TrialProcess& trial) {
    std::int64_t start = now_ns();
    TrialResult result;
    Measured measured(trial);
    int status = 0;
    Ended ended;
    {
        Group group(trial.command, trial.log);
        ended = watch(group, trial, measured);
        if (ended == Ended::enough) group.end(SIGINT, kGraceSeconds);
        if (ended == Ended::stopped) group.end(SIGINT, 3);
        // One that still compiles would not listen.
        if (ended == Ended::hang || (ended == Ended::time_up && measured.steps() == 0))
            group.end(SIGKILL, 0);
        if (ended == Ended::time_up) group.end(SIGINT, kGraceSeconds);
        status = group.status().value_or(0);
    }
    if (is_run_record(trial.run_folder)) {
        result.record = read_run(trial.run_folder);
        if (ended == Ended::by_itself) {
            measured = Measured(trial);
            measured.add(result.record.steps);
        }
        result.samples_per_epoch = result.record.info.extra["samples_per_epoch"].integer();
    }
    result.samples_per_second = measured.rate();
    if (result.record.summary) result.memory_peak_bytes = result.record.summary->memory_peak_bytes;
    std::string log = read_start_if_there(trial.log, 1 << 20);
    result.seconds = seconds_since(start);
    switch (ended) {
        case Ended::hang:
            result.outcome = TrialOutcome::hang;
            result.message = measured.steps() == 0
                                 ? fmt::format("no step within {:.0f} s", trial.start_seconds_max)
                                 : fmt::format("no step for {:.0f} s", trial.silence_seconds_max);
            return result;
        case Ended::stopped:
            result.outcome = TrialOutcome::failed;
            result.message = "stopped";
            return result;
        case Ended::time_up:
            if (!result.samples_per_second) {
                result.outcome = TrialOutcome::too_slow;
                result.message =
                    fmt::format("{} step{} in the {:.0f} s it was given", measured.steps(),
                                measured.steps() == 1 ? "" : "s", trial.seconds_max);
                return result;
            }
            break;
        case Ended::enough:
            break;
        case Ended::by_itself:
            result.outcome = outcome_of(status, log);
            break;
    }
    // A run that shrank its batch to go on did not run these settings.
    if (has_event(result.record, EventKind::out_of_memory))
        result.outcome = TrialOutcome::out_of_memory;
    if (result.outcome == TrialOutcome::ok && has_event(result.record, EventKind::nonfinite_loss))
        result.outcome = TrialOutcome::nonfinite;
    if (result.outcome == TrialOutcome::ok && !result.samples_per_second && trial.steps == 0) {
        result.outcome = TrialOutcome::failed;
        result.message =
            fmt::format("it ended after {} steps: too few to measure", measured.steps());
    } else if (result.outcome != TrialOutcome::ok) {
        result.message = reason_in(log);
        if (result.message.empty()) result.message = outcome_name(result.outcome);
    }
    return result;
}

}  // namespace saturate
