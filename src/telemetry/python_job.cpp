// SPDX-License-Identifier: Apache-2.0
#include "telemetry/python_job.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace saturate {

namespace {

using ring::kNoLoader;
constexpr std::uint64_t kLargestFacts = 16u << 20;
// Garbage collections in the first steps clean up after imports and building the model, which is
// not typical of the loop.
constexpr std::int64_t kStepsUntilSteady = 5;

StepRecord step_of(const RingRecord& record, std::int64_t number) {
    StepRecord step{.step = number, .start_ns = record.start_ns, .duration_ns = record.duration_ns};
    if (record.samples > 0) step.samples = record.samples;
    if (record.loader != kNoLoader) step.input_wait_ns = record.wait_ns;
    if (record.backwards > 0) step.backward_ns = record.backward_ns;
    if (record.optimizer_steps > 0) step.optimizer_ns = record.optimizer_ns;
    if (record.reads > 0) step.synchronisation_ns = record.read_ns;
    step.loss = loss_of(record);
    return step;
}

}  // namespace

Json PythonProcess::python_json() const {
    Json out = facts.is_object() ? facts : Json::object({{"schema", 1}, {"pid", pid}});
    Json fetches = Json::array();
    for (const FetchTotals& fetch : ring.fetches()) {
        fetches.add(Json::object({{"loader", fetch.loader},
                                  {"worker", fetch.worker},
                                  {"batches", fetch.batches},
                                  {"wall_ns", fetch.wall_ns},
                                  {"longest_ns", fetch.longest_ns},
                                  {"measured", fetch.measured},
                                  {"measured_wall_ns", fetch.measured_wall_ns},
                                  {"cpu_ns", fetch.cpu_ns},
                                  {"delay_ns", fetch.delay_ns}}));
    }
    out.set("fetches", fetches);
    totals.put_into(out);
    out.set("gc", Json::object({{"ns", gc_ns}, {"longest_in_step_ns", gc_longest_ns}}));
    out.set("lost_records", ring.lost());
    return out;
}

PythonJob::PythonJob(std::filesystem::path folder,
                     std::function<Recorder*(const PythonProcess&)> recorder_for)
    : folder_(std::move(folder)), recorder_for_(std::move(recorder_for)) {}

void PythonJob::find_rings() {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
        std::string name = entry.path().filename();
        if (!name.starts_with("ring.")) continue;
        auto pid = parse_integer(std::string_view(name).substr(5));
        bool is_known =
            std::ranges::any_of(processes_, [&](const auto& one) { return one->pid == pid; });
        if (!pid || is_known) continue;
        auto ring = StepRing::open(entry.path());
        if (!ring) continue;
        processes_.push_back(std::make_unique<PythonProcess>(std::move(*ring)));
        processes_.back()->pid = *pid;
    }
}

void PythonJob::poll(bool is_last) {
    find_rings();
    for (auto& process : processes_) {
        process->ring.read(is_last, [&](const RingRecord& record) { take(*process, record); });
        read_facts(*process);
        if (is_last) end_evaluation(*process);
    }
}

void PythonJob::take(PythonProcess& process, const RingRecord& record) {
    auto kind = static_cast<RingKind>(record.kind);
    process.totals.add(record);
    if (kind == RingKind::training && !process.recorder) begin(process, record);
    if (process.account.steps() >= kStepsUntilSteady) {
        process.gc_ns += record.gc_ns;
        process.gc_longest_ns = std::max(process.gc_longest_ns, record.gc_ns);
    }
    if (kind == RingKind::loader) {
        process.loader_start_ns = record.start_ns;
        process.loader_took_ns = record.duration_ns;
        process.loader_started = record.loader;
    }
    if (!process.recorder) return;
    if (kind == RingKind::evaluation) take_evaluation(process, record);
    if (kind == RingKind::training) take_step(process, record);
    if (kind == RingKind::checkpoint)
        process.recorder->event({.kind = EventKind::checkpoint,
                                 .time_ns = record.start_ns,
                                 .duration_ns = record.duration_ns,
                                 .step = process.account.steps(),
                                 .text = "torch.save"});
}

void PythonJob::begin(PythonProcess& process, const RingRecord& first_step) {
    int rank = process.ring.rank();
    process.rank = rank >= 0 ? rank : without_rank_++;
    process.world_size = std::max(1, process.ring.world_size());
    process.recorder = recorder_for_(process);
    process.first_step_ns = first_step.start_ns;
    process.evaluation_batches = 0;  // batches before the first step are no pause
}

void PythonJob::take_evaluation(PythonProcess& process, const RingRecord& record) {
    if (process.evaluation_batches++ == 0) {
        process.evaluation_took_ns = process.loader_took_ns;
        bool has_start = process.loader_took_ns > 0;
        process.evaluation = {.kind = EventKind::evaluation,
                              .time_ns = has_start ? process.loader_start_ns : record.start_ns,
                              .step = process.account.steps()};
    }
    process.evaluation.duration_ns =
        record.start_ns + record.duration_ns - process.evaluation.time_ns;
    process.evaluation_loader = record.loader;
    process.loader_took_ns = 0;
}

void PythonJob::take_step(PythonProcess& process, const RingRecord& record) {
    // accelerate fetches one batch ahead: a single batch of the training loader without backward is
    // no evaluation, and the loader started for this step.
    if (process.evaluation_batches == 1 && process.evaluation_loader == record.loader) {
        process.evaluation_batches = 0;
        if (process.loader_took_ns == 0) process.loader_took_ns = process.evaluation_took_ns;
    }
    end_evaluation(process);
    // If another loader started before this step ended, it belongs to an evaluation within the
    // epoch, as in Lightning.
    bool is_own = process.loader_started == record.loader;
    if (process.loader_took_ns > 0 && (is_own || process.loader_start_ns <= record.start_ns)) {
        process.recorder->event({.kind = EventKind::epoch,
                                 .time_ns = process.loader_start_ns,
                                 .duration_ns = process.loader_took_ns,
                                 .step = process.account.steps(),
                                 .text = fmt::format("loader {} starts", record.loader)});
        process.loader_took_ns = 0;
    }
    StepRecord step = step_of(record, process.account.steps());
    if (process.account.is_disturbed()) step.profiled = 1;
    process.last_step_ns = record.start_ns + record.duration_ns;
    process.account.add(step);
    process.recorder->step(step);
}

void PythonJob::end_evaluation(PythonProcess& process) {
    if (process.evaluation_batches == 0 || !process.recorder) return;
    process.evaluation.text = fmt::format("{} batches", process.evaluation_batches);
    process.evaluation_batches = 0;
    process.recorder->event(process.evaluation);
}

void PythonJob::read_facts(PythonProcess& process) {
    std::filesystem::path path = folder_ / fmt::format("facts.{}", process.pid);
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return;
    std::int64_t stamp = info.st_mtim.tv_sec * 1'000'000'000LL + info.st_mtim.tv_nsec;
    if (stamp == process.facts_stamp) return;
    process.facts_stamp = stamp;
    try {
        process.facts =
            Json::parse(read_file(path, kLargestFacts, "facts of the shim"), path.string());
    } catch (const UserError&) {
        return;  // replaced while we were reading: the next poll reads the new file
    }
    if (auto rank = process.facts["rank"].integer(); rank && *rank >= 0) {
        process.rank = static_cast<int>(*rank);
        process.world_size = static_cast<int>(process.facts["world_size"].integer().value_or(1));
    }
}

void PythonJob::ask_facts() {
    for (auto& process : processes_) process->ring.ask_facts();
}

PythonProcess* PythonJob::process(std::int64_t pid) {
    auto found = std::ranges::find_if(processes_, [&](const auto& one) { return one->pid == pid; });
    return found == processes_.end() ? nullptr : found->get();
}

PythonProcess* PythonJob::first() {
    PythonProcess* out = nullptr;
    for (auto& process : processes_) {
        if (process->trains() && (!out || process->rank < out->rank)) out = process.get();
    }
    return out;
}

std::string PythonJob::torch_version() const {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
        std::string name = entry.path().filename();
        if (!name.starts_with("torch.")) continue;
        constexpr std::size_t kLongestVersion = 100;
        return std::string(trim(read_start_if_there(entry.path(), kLongestVersion)));
    }
    return "";
}

std::int64_t PythonJob::steps() const {
    std::int64_t most = 0;
    for (const auto& process : processes_) most = std::max(most, process->account.steps());
    return most;
}

}  // namespace saturate
