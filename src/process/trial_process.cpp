// SPDX-License-Identifier: Apache-2.0
#include "process/trial_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log_text.h"
#include "base/text.h"
#include "process/child.h"
#include "process/silent_terminal.h"
#include "telemetry/step_tail.h"
#include "telemetry/trial_note.h"

namespace saturate {

namespace {

constexpr std::int64_t kTrialPollNs = 50'000'000;
constexpr double kLastSeconds = 5;      // for `run` to write its record
constexpr double kLeastMeasured = 0.8;  // seconds; a shorter measurement is chance ...
constexpr double kHopelessAfter = 0.4;  // ... but a rate that is far too low shows earlier
constexpr double kNoisy = 0.1;          // a larger spread needs more measuring
// With fewer steps the first one is not yet recognised as slow; it may have compiled for minutes.
constexpr std::int64_t kToldApart = 8;
constexpr std::int64_t kLeastSteps = 3;  // one is warm-up; counts if a step takes seconds
// Measures until the batches prepared ahead are used up and the wait for batches shows, but no
// longer than this many times the wanted time.
constexpr std::int64_t kReadyTwice = 2;
constexpr double kReadySeconds = 3;
constexpr std::size_t kMostOfLine = 400;     // longest part of a log line in a message
constexpr const char* kStopped = "stopped";  // by Ctrl-C of the search
// A run whose time is up has stopped making steps if it made none for this part of the time since
// its first step, for this many times its longest pause, and for this part of the longest silence.
constexpr double kSilentPart = 0.5, kSilentPauses = 10, kSilentLeast = 1.0 / 24;

double seconds_since(std::int64_t start_ns) {
    return static_cast<double>(now_ns() - start_ns) / 1e9;
}

void sleep_ns(std::int64_t ns) {
    timespec wait{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
    ::nanosleep(&wait, nullptr);
}

int open_log(const std::filesystem::path& log) {
    int out = ::open(log.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
    if (out >= 0) return out;
    throw MachineError({.where = {log.string()},
                        .found = fmt::format("cannot be written: {}", std::strerror(errno)),
                        .expected = "a folder with free space for the trials"});
}

// The process of a trial. It has its own group, so Ctrl-C reaches the search alone. Its whole tree
// ends with it and with the search, even by SIGKILL.
class TrialChild {
  public:
    explicit TrialChild(const TrialProcess& trial)
        : log_(open_log(trial.log)),
          child_(trial.command, {.no_input = true,
                                 .input_fd = terminal_.fd(),
                                 .output_fd = log_,
                                 .error_fd = log_,
                                 .own_group = true,
                                 .default_signals = true,  // SIGINT is ignored in a background job
                                 .tree = Tree::ended_with,
                                 .guard = trial.guard}) {}
    ~TrialChild() { ::close(log_); }
    TrialChild(const TrialChild&) = delete;
    TrialChild& operator=(const TrialChild&) = delete;

    std::optional<int> status() { return child_.status(); }

    // Asks, waits, then kills. A script that takes too long to end (it saves, it waits for its
    // workers) gets SIGTERM, and its record is still written.
    void end(int signal, double grace_seconds) {
        if (signal != SIGKILL) {
            child_.signal(signal);
            if (child_.wait_for(static_cast<std::int64_t>(grace_seconds * 1e9))) return;
            child_.signal(SIGTERM);
            if (child_.wait_for(static_cast<std::int64_t>(kLastSeconds * 1e9))) return;
        }
        child_.signal_tree(SIGKILL);
        child_.wait();
    }

  private:
    int log_;
    SilentTerminal terminal_;  // for a script that asks for its terminal's width
    Child child_;
};

// The steps to measure: all, or those after the first epoch if that fills a cache.
class MeasuredSteps {
  public:
    explicit MeasuredSteps(const TrialProcess& trial) : trial_(trial) {}

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

// Returns the rate without the first steps of new epochs, which include evaluation, checkpoint and
// the start of workers: in a short run it is chance whether one of them falls into it. Returns
// nullopt if none or many do, or if too few steps are left.
std::optional<Rate> rate_within_epochs(const TrialProcess& trial, const RunRecord& record,
                                       std::int64_t seen) {
    constexpr std::ptrdiff_t kMany = 3;
    std::vector<std::int64_t> begins;
    for (const EventRecord& event : record.events)
        if (event.kind == EventKind::epoch && event.step.value_or(0) > 0)
            begins.push_back(*event.step);
    if (begins.empty() || std::ssize(begins) >= kMany) return std::nullopt;
    std::vector<StepRecord> steps = record.steps;
    steps.resize(std::min(steps.size(), static_cast<std::size_t>(seen)));
    std::erase_if(steps, [&](const StepRecord& step) {
        return std::ranges::find(begins, step.step) != begins.end();
    });
    MeasuredSteps measured(trial);
    measured.add(steps);
    return measured.rate();
}

// True for Python's line of a raised exception: "RuntimeError: ...", "mlflow.MlflowException(...)".
// A launcher may put the name of the rank before it.
bool is_exception(std::string_view line) {
    if (line.starts_with('['))
        if (std::size_t end = line.find("]: "); end != std::string_view::npos)
            line = line.substr(end + 3);
    std::size_t end =
        line.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
    std::string_view name = line.substr(0, end), rest = line.substr(name.size());
    return (name.ends_with("Error") || name.ends_with("Exception")) &&
           (rest.empty() || rest[0] == ':' || rest[0] == '(');
}

// When steps were seen to arrive.
class Arrivals {
  public:
    void add(std::int64_t steps) {
        std::int64_t now = now_ns();
        // The first step may have compiled for minutes.
        if (steps_ > 1) longest_pause_ = std::max(longest_pause_, seconds_since(last_));
        if (steps_ == 0) first_ = now;
        last_ = now;
        steps_ += steps;
    }
    [[nodiscard]] double silence() const { return seconds_since(last_); }
    // True if no step came for `silent` seconds at the end, and that is no usual pause. Fewer steps
    // do not show what is usual.
    [[nodiscard]] bool have_stopped(double silent, double silence_seconds_max) const {
        return steps_ >= kLeastSteps && silent >= kSilentPart * seconds_since(first_) &&
               silent >= kSilentPauses * longest_pause_ &&
               silent >= kSilentLeast * silence_seconds_max;
    }

  private:
    std::int64_t first_ = 0, last_ = 0, steps_ = 0;
    double longest_pause_ = 0;
};

// Seconds after the last step in which the record shows an evaluation, a checkpoint or the start of
// a loader.
double busy_after_steps(const RunRecord& record) {
    if (record.steps.empty()) return 0;
    std::int64_t end = record.steps.back().start_ns + record.steps.back().duration_ns, last = end;
    for (const EventRecord& event : record.events)
        last = std::max(last, event.time_ns + event.duration_ns.value_or(0));
    return static_cast<double>(last - end) / 1e9;
}

// Why the watching ended.
enum class Ended { by_itself, enough, hang, stopped, time_up };

Ended watch(TrialChild& group, const TrialProcess& trial, MeasuredSteps& measured,
            Arrivals& arrivals) {
    StepTail tail(trial.run_folder);
    std::int64_t start = now_ns(), looked = 0;
    while (true) {
        std::vector<StepRecord> more = tail.next();
        if (!more.empty()) arrivals.add(std::ssize(more));
        measured.add(more);
        if (group.status()) return Ended::by_itself;
        if (trial.is_stopped && trial.is_stopped()) return Ended::stopped;
        if (measured.steps() == 0 ? seconds_since(start) > trial.start_seconds_max
                                  : arrivals.silence() > trial.silence_seconds_max)
            return Ended::hang;
        if (seconds_since(start) > trial.seconds_max) return Ended::time_up;
        if (trial.steps == 0 && measured.steps() >= std::max(kLeastSteps, trial.least_steps) &&
            seconds_since(looked) > 0.2) {
            looked = now_ns();
            auto rate = measured.rate();
            if (rate && (rate->dropped > 0 || measured.steps() >= kToldApart)) {
                double seconds = static_cast<double>(rate->steps) * rate->step_seconds;
                bool may_be_ahead = measured.steps() <= kReadyTwice * trial.ready_batches &&
                                    seconds < kReadySeconds * trial.seconds;
                bool is_noisy = rate->spread() > kNoisy;
                if (!may_be_ahead && seconds >= (is_noisy ? 2 : 1) * trial.seconds)
                    return Ended::enough;
                if (!may_be_ahead && seconds >= std::min(kLeastMeasured, trial.seconds) &&
                    is_known_well(*rate))
                    return Ended::enough;
                if (seconds >= kHopelessAfter && is_hopeless(*rate, trial.hopeless_below))
                    return Ended::enough;
            }
        }
        sleep_ns(kTrialPollNs);
    }
}

bool has_event(const RunRecord& record, EventKind kind) {
    return std::ranges::find(record.events, kind, &EventRecord::kind) != record.events.end();
}

// Returns "Segmentation fault (signal 11)" for a crashed process, whose log does not say so.
std::string crash_of(int status) {
    int signal = status - 128;
    bool is_crash = signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
                    signal == SIGABRT;
    return is_crash ? fmt::format("it crashed: {} (signal {})", ::strsignal(signal), signal) : "";
}

}  // namespace

std::string reason_in(std::string_view log, int status) {
    std::string last = crash_of(status), error, raised;
    bool has_crashed = !last.empty();
    for (std::string_view line : terminal_lines(log)) {
        std::string_view text = trim(line);
        if (text.empty() || text.starts_with("saturate:")) continue;  // printed by `run`
        if (!has_crashed) last = text;
        if (lower(std::string(text)).find("error") != std::string::npos) error = text;
        if (is_exception(text)) raised = text;
    }
    if (!raised.empty()) error = raised;
    return shortened(error.empty() ? last : error, kMostOfLine);
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

namespace {

TrialResult result_of_process(const TrialProcess& trial) {
    std::int64_t start = now_ns();
    TrialResult result;
    MeasuredSteps measured(trial);
    Arrivals arrivals;
    int status = 0;
    double silent = 0;
    Ended ended = Ended::by_itself;
    try {
        TrialChild group(trial);
        ended = watch(group, trial, measured, arrivals);
        silent = arrivals.silence();
        if (ended == Ended::enough) group.end(SIGINT, trial.grace_seconds);
        if (ended == Ended::stopped) group.end(SIGINT, 3);
        // A process that still compiles would not react to SIGINT.
        if ((ended == Ended::hang || ended == Ended::time_up) && measured.steps() == 0)
            group.end(SIGKILL, 0);
        if (ended == Ended::time_up) group.end(SIGINT, trial.grace_seconds);
        // Python's traceback of the interruption shows where it stands still.
        if (ended == Ended::hang)
            group.end(SIGINT, std::min(trial.grace_seconds, kLastSeconds));
        status = group.status().value_or(0);
    } catch (const ChildNotStarted& error) {
        return {.outcome = TrialOutcome::failed, .message = error.problems()[0].found};
    }
    if (is_run_record(trial.run_folder)) {
        result.record = read_run(trial.run_folder);
        if (ended == Ended::by_itself) {
            measured = MeasuredSteps(trial);
            measured.add(result.record.steps);
        }
        result.samples_per_epoch = result.record.info.extra["samples_per_epoch"].integer();
    }
    result.samples_per_second = measured.rate();
    if (auto rate = rate_within_epochs(trial, result.record, measured.steps()))
        result.samples_per_second = rate;
    if (result.record.summary) result.memory_peak_bytes = result.record.summary->memory_peak_bytes;
    std::string log = read_end_if_there(trial.log, 1 << 20);
    result.seconds = seconds_since(start);
    if (ended == Ended::time_up &&
        arrivals.have_stopped(silent - busy_after_steps(result.record), trial.silence_seconds_max))
        ended = Ended::hang;
    switch (ended) {
        case Ended::hang:
            result.outcome = TrialOutcome::hang;
            result.message =
                measured.steps() == 0
                    ? fmt::format("no training step within {:.0f} s", trial.start_seconds_max)
                    : fmt::format("it made {} step{}, and none in the last {:.0f} s",
                                  measured.steps(), measured.steps() == 1 ? "" : "s", silent);
            return result;
        case Ended::stopped:
            result.outcome = TrialOutcome::failed;
            result.message = kStopped;
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
    // A run that reduced its batch to go on did not use these settings.
    if (has_event(result.record, EventKind::out_of_memory))
        result.outcome = TrialOutcome::out_of_memory;
    if (result.outcome == TrialOutcome::ok && has_event(result.record, EventKind::nonfinite_loss))
        result.outcome = TrialOutcome::nonfinite;
    if (result.outcome == TrialOutcome::ok && !result.samples_per_second && trial.steps == 0) {
        result.outcome = TrialOutcome::failed;
        result.message =
            fmt::format("it ended after {} steps: too few to measure", measured.steps());
    } else if (result.outcome != TrialOutcome::ok) {
        result.message = reason_in(log, status);
        if (result.message.empty()) result.message = outcome_name(result.outcome);
    }
    return result;
}

}  // namespace

TrialResult run_trial_process(const TrialProcess& trial) {
    if (trial.name.empty()) return result_of_process(trial);
    write_trial_note(trial.run_folder, {.name = trial.name, .outcome = {}});
    TrialResult result = result_of_process(trial);
    std::string outcome(outcome_name(result.outcome));
    if (result.outcome == TrialOutcome::ok) outcome = "measured";
    if (result.message == kStopped) outcome = "interrupted";
    write_trial_note(trial.run_folder, {.name = trial.name, .outcome = outcome});
    return result;
}

}  // namespace saturate
