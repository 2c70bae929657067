// SPDX-License-Identifier: Apache-2.0
#include "process/run_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "process/child.h"
#include "process/process_tree.h"
#include "process/shim_folder.h"
#include "process/signals.h"
#include "process/trace_window.h"
#include "process/watch.h"
#include "telemetry/python_job.h"
#include "telemetry/record_json.h"
#include "telemetry/record_writer.h"
#include "telemetry/sampler.h"

namespace saturate {

namespace {

constexpr std::int64_t kPollNs = 200'000'000;
constexpr std::int64_t kFactsNs =
    1'500'000'000;  // for the shim to write its facts before we end the process
constexpr std::int64_t kTermPatienceNs = 10'000'000'000;  // between SIGTERM and SIGKILL
constexpr std::int64_t kKilledNs = 5'000'000'000;         // what is left then hangs in the kernel
constexpr std::int64_t kEndingNs = 50'000'000;  // polling interval while we end the command

class RunJob {
  public:
    explicit RunJob(const RunJobSettings& settings);
    RunJobResult run();

  private:
    void start();
    void loop();
    void tick(bool is_last);
    void poll(bool is_last);
    void limit();
    void end_tree();
    [[nodiscard]] bool is_over();
    // The record is ours, the command is not: a failed write is noted and the command goes on.
    template <typename Write>
    void keep(Write write);
    Recorder* recorder_for(const PythonProcess& process);
    void write_head(const PythonProcess& process, const std::filesystem::path& folder);
    RunJobResult finish();

    RunJobSettings settings_;
    Signals relay_{Signals::Role::relay};
    std::int64_t start_ns_ = now_ns();
    Devices devices_;
    ShimFolder shim_;
    TraceWindow trace_;
    RunInfo info_;
    RecordWriter writer_;
    NullRecorder nowhere_;
    ProcessTree tree_;
    std::optional<Child> child_;
    std::optional<HostSampler> host_;
    std::optional<Sampler> sampler_;
    Summarizer summarizer_{Thresholds{}};
    PythonJob job_;

    struct Rank {
        std::filesystem::path folder;
        std::unique_ptr<RecordWriter> writer;
        const PythonProcess* process;
    };
    const PythonProcess* first_ = nullptr;  // the process whose steps go into `folder` itself
    std::vector<Rank> others_;
    std::vector<std::string> notes_;
    // When the limit was reached, when we began to end the command, and when we began to kill it.
    std::int64_t limited_ns_ = 0, terminated_ns_ = 0, killed_ns_ = 0;
    bool is_tree_ended_ = false;
};

RunJob::RunJob(const RunJobSettings& settings)
    : settings_(settings),
      devices_(open_gpus({.wake = true})),
      trace_(shim_.path(), settings.with_profile && shim_.missing_because().empty(),
             settings.profile_steps),
      info_(run_info("run", settings.command, devices_, start_ns_)),
      writer_(settings.folder, info_),
      job_(shim_.path(), [this](const PythonProcess& process) { return recorder_for(process); }) {
    if (!shim_.missing_because().empty())
        notes_.push_back("watched only from outside: " + shim_.missing_because());
}

template <typename Write>
void RunJob::keep(Write write) {
    std::string reason;
    try {
        write();
        return;
    } catch (const Failure& error) {
        const Problem& problem = error.problems().front();
        std::string place = problem.where.text();
        reason = place.empty() ? problem.found : fmt::format("{}: {}", place, problem.found);
    } catch (const std::filesystem::filesystem_error& error) {
        reason = error.what();
    }
    std::string note = "the record is incomplete: " + reason;
    if (std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(note);
}

void RunJob::start() {
    ShimWishes wishes{settings_.apply, trace_.is_served(), settings_.with_losses};
    child_.emplace(settings_.command, ChildSettings{.output_to_stderr = settings_.output_to_stderr,
                                                    .environment = shim_.environment(wishes),
                                                    .mask = &relay_.mask_before()});
    relay_.relay_to(child_->pid());
    host_.emplace(HostSettings{.watched_pid = child_->pid()});
    sampler_.emplace(SamplerSettings{.interval_seconds = settings_.interval_seconds},
                     devices_.reader.get(), &*host_, devices_.absent_because, writer_);
}

// The first rank's steps go next to the samples. Every other rank gets a record in a subfolder.
Recorder* RunJob::recorder_for(const PythonProcess& process) {
    bool has_rank = process.ring.rank() >= 0 && process.world_size > 1;
    if (!first_ && (!has_rank || process.rank == 0)) {
        first_ = &process;
        return &writer_;
    }
    std::string name = fmt::format("{}{}", has_rank ? "rank" : "process", process.rank);
    std::filesystem::path folder = settings_.folder / name;
    if (std::filesystem::exists(folder)) folder += fmt::format("-{}", process.pid);  // a restart
    RunInfo info = info_;
    info.pid = process.pid;
    info.rank = process.rank;
    info.world_size = process.world_size;
    std::unique_ptr<RecordWriter> writer;
    keep([&] { writer = std::make_unique<RecordWriter>(folder, info); });
    if (!writer) return &nowhere_;
    others_.push_back({folder, std::move(writer), &process});
    return others_.back().writer.get();
}

void RunJob::tick(bool is_last) {
    std::int64_t at = now_ns();
    const Snapshot& snapshot = sampler_->tick(at, wall_ns(), is_last);
    summarizer_.add(snapshot, sampler_->readings());
}

void RunJob::poll(bool is_last) {
    job_.poll(is_last);
    trace_.poll(job_.first(), writer_);
}

bool RunJob::is_over() { return child_->status() && (limited_ns_ == 0 || is_tree_ended_); }

// Asks the command to end first, then the processes that it left: the end of a shell does not reach
// its script. Kills what outlives our patience.
void RunJob::end_tree() {
    std::int64_t now = now_ns();
    tree_.reap_orphans(child_->pid());
    if (child_->status() && tree_.living().empty()) {
        is_tree_ended_ = true;
        return;
    }
    if (terminated_ns_ == 0) terminated_ns_ = now;
    if (now - terminated_ns_ < kTermPatienceNs) {
        tree_.ask_to_end();
        return;
    }
    if (killed_ns_ == 0) killed_ns_ = now;
    tree_.kill();
    if (now - killed_ns_ > kKilledNs) {
        notes_.emplace_back("some processes of the command do not end, even when killed");
        is_tree_ended_ = true;
    }
}

// Ends the command at its limit as `timeout` does, but first asks the shim for its facts.
void RunJob::limit() {
    std::int64_t now = now_ns();
    bool is_due = (settings_.seconds > 0 &&
                   static_cast<double>(now - start_ns_) / 1e9 >= settings_.seconds) ||
                  (settings_.steps > 0 && job_.steps() >= settings_.steps);
    if (limited_ns_ == 0 && is_due) {
        limited_ns_ = now;
        job_.ask_facts();
    }
    if (limited_ns_ == 0) return;
    PythonProcess* first = job_.first();
    bool is_told = !first || now - limited_ns_ > kFactsNs || first->facts_stamp != 0;
    bool is_time = now - limited_ns_ > 2 * kPollNs && is_told;
    if (is_time || terminated_ns_ != 0 || child_->status()) end_tree();
}

void RunJob::loop() {
    Deadlines deadlines(now_ns(), settings_.interval_seconds);
    tick(false);
    std::int64_t next_tick = deadlines.next(now_ns()), next_poll = now_ns() + kPollNs;
    while (!is_over()) {
        std::int64_t deadline = std::min(next_tick, next_poll);
        if (terminated_ns_ != 0) deadline = std::min(deadline, now_ns() + kEndingNs);
        if (settings_.seconds > 0 && limited_ns_ == 0)
            deadline =
                std::min(deadline, start_ns_ + static_cast<std::int64_t>(settings_.seconds * 1e9));
        relay_.wait_until(deadline, trace_.fd());
        trace_.answer(job_);
        if (is_over()) break;
        std::int64_t now = now_ns();
        if (now >= next_poll) {
            poll(false);
            next_poll = now + kPollNs;
        }
        if (now >= next_tick) {
            tick(false);
            next_tick = deadlines.next(now_ns());
            sampler_->note_late(deadlines.lost());
            tree_.reap_orphans(child_->pid());
        }
        limit();
    }
}

// Writes what only the process could tell: its device and its place in the job.
void RunJob::write_head(const PythonProcess& process, const std::filesystem::path& folder) {
    RunInfo info = info_;
    if (&process != first_) info.pid = process.pid;
    info.rank = process.rank;
    info.world_size = process.world_size;
    info.device = process.facts["device"].string().value_or("");
    if (auto name = process.facts["gpu"]["name"].string()) info.extra.set("gpu", *name);
    write_file_whole(folder / "run.json", info_json(info).pretty() + "\n");
    write_file_whole(folder / "python.json", process.python_json().pretty() + "\n");
}

RunJobResult RunJob::finish() {
    RunJobResult result{.status = child_->wait(), .signal = child_->ended_by_signal()};
    tick(true);
    poll(true);
    keep([&] { trace_.finish(job_.first(), settings_.folder, writer_, notes_); });
    result.is_limited = terminated_ns_ != 0;
    bool is_interrupted = relay_.stop_signal() != 0 || result.is_limited;
    std::string ended = is_interrupted ? "interrupted" : result.status != 0 ? "failed" : "done";
    result.summary = summarizer_.summary();
    result.run = run_summary(result.summary, ended, result.status);
    if (!first_) {  // a job whose first rank never stepped
        for (const Rank& rank : others_)
            notes_.push_back(fmt::format("only {} trained", rank.folder.string()));
    } else {
        Account account = first_->account.account();
        account.fill(result.run);
        result.steps = account.steady;
        keep([&] { write_head(*first_, settings_.folder); });
        result.python = first_->facts;
    }
    result.records.push_back(settings_.folder);
    for (Rank& rank : others_) {
        RunSummary summary{
            .duration_ns = result.run.duration_ns, .ended = ended, .exit_status = result.status};
        rank.process->account.fill(summary);
        keep([&] { write_head(*rank.process, rank.folder); });
        keep([&] { rank.writer->finish(summary); });
        result.records.push_back(rank.folder);
    }
    keep([&] { writer_.finish(result.run); });
    result.torch = job_.torch_version();
    result.notes = notes_;
    return result;
}

RunJobResult RunJob::run() {
    start();
    loop();
    return finish();
}

}  // namespace

RunJobResult run_job(const RunJobSettings& settings) { return RunJob(settings).run(); }

}  // namespace saturate
