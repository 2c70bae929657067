// SPDX-License-Identifier: Apache-2.0
// Findings from the step times, counters and events of a run record, without a trace. F01, F07,
// F10, F15, F16, F23, F29, F30, F31. For the data of the Python shim see findings_python.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/figures.h"
#include "base/text.h"
#include "diagnosis/core_use.h"
#include "diagnosis/cure.h"
#include "diagnosis/diagnosis.h"
#include "telemetry/statistics.h"

namespace saturate {
namespace {

struct RecordedWaits {
    double total_ns = 0, input_ns = 0, sync_ns = 0, communication_ns = 0, busy_ns = 0;
    std::int64_t input_steps = 0, sync_steps = 0, communication_steps = 0, busy_steps = 0;
    std::int64_t steps = 0;
    bool by_driver = false;  // busy_ns comes from the driver's counter, not from the steps
    // The collectives, if the trainer counts them itself.
    double under_way_ns = 0, bytes = 0, collectives = 0;
    std::int64_t under_way_steps = 0, bytes_steps = 0, collectives_steps = 0;
};

// Returns how busy the GPU of `train` was in the steady part by the driver's counter, because its
// steps do not record that. nullopt unless the record has readings of exactly one GPU.
std::optional<double> busy_by_driver(const RunRecord& record, const Account& account) {
    if (record.info.kind != "train" || record.info.simulated) return std::nullopt;
    constexpr std::int64_t kLeast = 5;
    // A reading covers up to one second before it.
    double warm_up = account.timed.seconds - account.steady.seconds + 1;
    double from = static_cast<double>(account.first_ns) + 1e9 * warm_up;
    Running busy;
    for (const DeviceSample& sample : record.devices) {
        if (sample.gpu != record.devices.front().gpu) return std::nullopt;
        bool is_steady =
            static_cast<double>(sample.time_ns) >= from && sample.time_ns <= account.last_ns;
        if (is_steady) busy.add(sample.utilization_percent, 1);
    }
    return busy.n() < kLeast ? std::nullopt : busy.mean();
}

// Sums up the steady part, like every other figure of the run.
RecordedWaits sum_waits(const RunRecord& record, const Account& account) {
    const StepSums& steady = account.steady;
    RecordedWaits waits{.total_ns = 1e9 * steady.seconds, .steps = steady.steps};
    auto add = [&](StepPart part, double& sum, std::int64_t& count, double unit = 1e9) {
        sum = unit * steady.sum(part);
        count = steady.told(part);
    };
    add(StepPart::input_wait, waits.input_ns, waits.input_steps);
    add(StepPart::synchronisation, waits.sync_ns, waits.sync_steps);
    add(StepPart::communication, waits.communication_ns, waits.communication_steps);
    add(StepPart::device_busy, waits.busy_ns, waits.busy_steps);
    add(StepPart::communication_total, waits.under_way_ns, waits.under_way_steps);
    add(StepPart::communication_bytes, waits.bytes, waits.bytes_steps, 1);
    add(StepPart::collectives, waits.collectives, waits.collectives_steps, 1);
    if (waits.busy_steps == 0) {
        if (auto percent = busy_by_driver(record, account)) {
            waits.busy_ns = *percent / 100 * waits.total_ns;
            waits.busy_steps = waits.steps;
            waits.by_driver = true;
        }
    }
    // If the device keeps working while the host waits, only its idle time is lost.
    if (waits.steps > 0 && waits.busy_steps == waits.steps)
        waits.input_ns = std::min(waits.input_ns, std::max(0.0, waits.total_ns - waits.busy_ns));
    return waits;
}

// Without a trace there is no replay: estimates the gain as a part of the upper bound.
Gain subtraction(double share_percent) {
    double bound = 1.0 / std::max(0.02, 1.0 - share_percent / 100.0);
    return {1.0 + 0.5 * (bound - 1.0), 1.0 + 0.85 * (bound - 1.0), bound};
}

Finding wait_finding(std::string id, double ns, const RecordedWaits& waits, std::int64_t count,
                     std::string_view what) {
    Finding finding{.id = std::move(id)};
    finding.share_percent = 100.0 * ns / waits.total_ns;
    finding.ms_per_step = ns / 1e6 / static_cast<double>(waits.steps);
    finding.count = count;
    finding.evidence =
        fmt::format("{} takes {:.1f} % of the step time ({:.1f} ms per step over {} steps)", what,
                    finding.share_percent, finding.ms_per_step, waits.steps);
    finding.gain = subtraction(finding.share_percent);
    finding.sources = {"run record"};
    return finding;
}

Finding exposed_communication(const RunRecord& record, const RecordedWaits& waits) {
    Finding finding = wait_finding("F15", waits.communication_ns, waits, waits.communication_steps,
                                   "exposed communication");
    if (waits.under_way_ns > 0) {
        double hidden = std::max(0.0, 1.0 - waits.communication_ns / waits.under_way_ns);
        finding.evidence += fmt::format(
            "; gradients are being sent {:.1f} % of it, {:.0f} % of that during the backward pass",
            100.0 * waits.under_way_ns / waits.total_ns, 100.0 * hidden);
    }
    // `train` already overlaps communication, so only sending less per sample helps.
    if (record.info.kind == "train")
        finding.fix =
            "send less per sample: a larger batch_size or gradient_accumulation_steps, "
            "gradient_compression: bf16; else a faster network";
    return finding;
}

// With more collectives per step than this, and smaller ones, latency is their main cost.
constexpr double kManyCollectives = 50, kSmallBytes = 256 << 10;

void small_collectives(const RunRecord& record, const RecordedWaits& waits,
                       std::vector<Finding>& out) {
    if (waits.collectives <= 0 || waits.bytes_steps == 0) return;
    double each = waits.collectives / static_cast<double>(waits.collectives_steps);
    double bytes = waits.bytes / waits.collectives;
    if (each <= kManyCollectives || bytes >= kSmallBytes) return;
    Finding finding = wait_finding("F16", waits.communication_ns, waits,
                                   static_cast<std::int64_t>(waits.collectives),
                                   "waiting for them after the backward pass");
    finding.evidence = fmt::format("{:.0f} collectives per step, of {} each; {}", each,
                                   bytes_text(static_cast<std::uint64_t>(bytes)), finding.evidence);
    if (record.info.kind == "train") {
        finding.fix = "bucket_size: 4 (MiB of gradients sent at once)";
        finding.settings = cures("F16", record_facts(record));
    }
    bool is_exposed = std::ranges::find(out, "F15", &Finding::id) != out.end();
    if (is_exposed) finding.part_of = "F15";
    out.push_back(finding);
}

// If the device idles while the host waits for nothing, the device waits for the host. Launching
// takes the same time in every step. Much longer single steps mean that something else held up the
// host, such as other work on the machine, and no setting of the job fixes that.
struct HostTime {
    double launching_ns = 0, held_up_ns = 0;
};

// This needs the busy time of the device, from every step or from the driver's counter.
HostTime host_time(const Account& account, const RecordedWaits& waits) {
    if (waits.steps == 0 || waits.busy_steps < waits.steps) return {};
    double idle =
        waits.total_ns - waits.busy_ns - waits.input_ns - waits.sync_ns - waits.communication_ns;
    if (!account.step_p50_ms) return {.launching_ns = idle};
    double usual = *account.step_p50_ms * 1e6 * static_cast<double>(waits.steps);
    double launching = std::max(0.0, std::min(idle, usual - waits.busy_ns));
    return {.launching_ns = launching, .held_up_ns = std::max(0.0, idle - launching)};
}

// What holds the host up for no longer than the device takes for two steps costs nothing once
// launching is fast: the host is then that far ahead.
double short_stops(const RunRecord& record, const Account& account, const RecordedWaits& waits) {
    if (!account.step_p50_ms || record.steps.empty()) return 0;
    double usual = *account.step_p50_ms * 1e6, sum = 0;
    double ahead = 2 * waits.busy_ns / static_cast<double>(waits.steps);
    for (const StepRecord& step : record.steps)
        sum += std::clamp(static_cast<double>(step.duration_ns) - usual, 0.0, ahead);
    return sum * static_cast<double>(waits.steps) / static_cast<double>(record.steps.size());
}

void launch_bound(const RunRecord& record, const Account& account, const RecordedWaits& waits,
                  std::vector<Finding>& out) {
    double idle = host_time(account, waits).launching_ns;
    if (idle <= 0 || idle < 0.2 * waits.total_ns) return;
    Finding finding =
        wait_finding("F10", idle, waits, waits.busy_steps,
                     waits.by_driver ? "idle time of the device by the driver's counter, "
                                       "although the host waits for nothing"
                                     : "idle time of the device, although the host waits for "
                                       "nothing");
    finding.confidence = Confidence::medium;
    finding.surer = "a trace shows the operators";
    finding.assumes = "batches stay as they are: larger ones may gain more";
    bool ours = record.info.kind == "train";
    // `train` launches a captured step as one graph: nothing of the launching is left.
    if (ours && record.info.world_size == 1) finding.gain.likely = finding.gain.high;
    double most = idle + short_stops(record, account, waits);
    finding.gain.high = subtraction(100 * most / waits.total_ns).high;
    if (ours) finding.fix = "a larger batch_size; compile: true";
    out.push_back(finding);
}

void from_steps(const RunRecord& record, const Account& account, std::vector<Finding>& out) {
    RecordedWaits waits = sum_waits(record, account);
    if (waits.total_ns <= 0) return;
    if (waits.input_ns >= 0.05 * waits.total_ns) {
        Finding finding = wait_finding("F01", waits.input_ns, waits, waits.input_steps,
                                       "waiting for the next batch");
        finding.confidence = finding.share_percent >= 20 ? Confidence::high : Confidence::medium;
        out.push_back(finding);
    }
    // Waiting for a busy device costs nothing. It costs time only if the device is known to idle.
    bool idles = waits.busy_steps > 0 && waits.busy_ns < 0.8 * waits.total_ns;
    if (idles && waits.sync_ns >= 0.05 * waits.total_ns) {
        Finding finding = wait_finding("F07", waits.sync_ns, waits, waits.sync_steps,
                                       "the host waiting for the device");
        finding.confidence = Confidence::low;
        finding.surer = "a trace shows the calls that wait";
        out.push_back(finding);
    }
    if (waits.communication_ns >= 0.10 * waits.total_ns)
        out.push_back(exposed_communication(record, waits));
    small_collectives(record, waits, out);
    launch_bound(record, account, waits, out);
}

// Returns "1 evaluation", "3 evaluations", or "" for 0.
std::string counted(std::int64_t count, std::string_view what) {
    if (count == 0) return "";
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void from_events(const Account& account, std::vector<Finding>& out) {
    double pause = 1e9 * account.pause_seconds(), total = 1e9 * account.timed.seconds;
    std::int64_t evaluations = account.evaluations.count, checkpoints = account.checkpoints.count;
    std::int64_t count = evaluations + checkpoints;
    if (count == 0 || total <= 0 || pause < 0.03 * (total + pause)) return;
    Finding finding{
        .id = "F23", .count = count, .confidence = Confidence::high, .sources = {"run record"}};
    finding.share_percent = 100.0 * pause / (total + pause);
    finding.ms_per_step = pause / 1e6 / static_cast<double>(account.steps);
    finding.evidence = fmt::format(
        "{}{}{} {} {}, {:.1f} % of the run", counted(evaluations, "evaluation"),
        evaluations > 0 && checkpoints > 0 ? " and " : "", counted(checkpoints, "checkpoint"),
        count == 1 ? "takes" : "take", seconds_text(pause / 1e9), finding.share_percent);
    // The fix leaves a fifth of the pause time; removing all of it is the upper bound.
    double share = finding.share_percent / 100.0;
    finding.gain = {1 / (1 - 0.5 * share), 1 / (1 - 0.8 * share), 1 / std::max(0.02, 1 - share)};
    out.push_back(finding);
}

// Reports the reason for which a GPU was throttled longest; the counters only grow.
void throttled(const RunRecord& record, std::vector<Finding>& out) {
    struct Span {
        const DeviceSample* first = nullptr;
        const DeviceSample* last = nullptr;
    };
    std::vector<std::pair<int, Span>> gpus;
    for (const DeviceSample& sample : record.devices) {
        auto found = std::ranges::find(gpus, sample.gpu, &std::pair<int, Span>::first);
        if (found == gpus.end())
            found = gpus.insert(gpus.end(), {sample.gpu, Span{&sample, &sample}});
        found->second.last = &sample;
    }
    for (const auto& entry : gpus) {
        const Span& span = entry.second;  // by name: clang's lambdas cannot hold a binding
        double length = static_cast<double>(span.last->time_ns - span.first->time_ns);
        if (length <= 0) continue;
        auto grown = [&](auto member) {
            const auto& a = span.first->throttle.*member;
            const auto& b = span.last->throttle.*member;
            return a && b && *b > *a ? static_cast<double>(*b - *a) : 0.0;
        };
        double power = grown(&ThrottleTimes::power_cap_ns);
        double heat =
            grown(&ThrottleTimes::software_thermal_ns) + grown(&ThrottleTimes::hardware_thermal_ns);
        double brake = grown(&ThrottleTimes::power_brake_ns);
        double most = std::max({power, heat, brake});
        if (most <= 0.02 * length) continue;
        Finding finding{
            .id = "F29", .count = 1, .confidence = Confidence::medium, .sources = {"run record"}};
        finding.share_percent = 100.0 * most / length;
        finding.evidence = fmt::format("GPU {} was throttled {:.0f} % of the run by {}",
                                       entry.first, finding.share_percent,
                                       most == power  ? "its power limit"
                                       : most == heat ? "heat"
                                                      : "the power brake");
        // The counters do not say how far the clocks fell.
        finding.assumes = "a throttled GPU is 10 % slower (estimate)";
        double likely = 1.0 + 0.1 * finding.share_percent / 100.0;
        finding.gain = {1.0, likely, 1.0 + 0.25 * finding.share_percent / 100.0};
        out.push_back(finding);
        return;
    }
}

// True if other programs use more than a fifth of the cores; they may be the reason for queueing.
bool is_shared(const HostSample& sample) {
    if (!sample.cpu_percent || !sample.tree->cpu_percent) return false;
    double all = *sample.cpu_percent * *sample.cores;
    return all - *sample.tree->cpu_percent > 20.0 * *sample.cores;
}

void workers(const RunRecord& record, std::vector<Finding>& out) {
    std::int64_t crowded = 0, seen = 0;
    int most_workers = 0, cores = 0;
    for (const HostSample& sample : record.hosts) {
        if (!sample.tree || !sample.cores) continue;
        ++seen;
        cores = *sample.cores;
        most_workers = std::max(most_workers, sample.tree->loader_workers);
        bool queue = sample.running && *sample.running > *sample.cores && !is_shared(sample);
        if (sample.tree->loader_workers > *sample.cores && queue) ++crowded;
    }
    if (seen < 3 || crowded * 2 < seen) return;
    Finding finding{.id = "F30",
                    .count = most_workers,
                    .confidence = Confidence::medium,
                    .sources = {"run record"}};
    finding.evidence = fmt::format(
        "{} loader workers on {} cores, with tasks waiting for a core in {} of {} readings",
        most_workers, cores, crowded, seen);
    Facts facts = record_facts(record);
    facts.cores = cores;
    facts.now["num_workers"] = std::to_string(most_workers);
    finding.settings = cures("F30", facts);
    for (const SettingChange& setting : finding.settings) {
        if (setting.key == "num_workers")
            finding.fix = fmt::format("num_workers={}, one thread each", setting.value);
    }
    finding.gain = {1.0, 1.04, 1.15};
    finding.assumes = "tasks that wait for a core cost 4 % (estimate)";
    out.push_back(finding);
}

void memory(const RunRecord& record, std::vector<Finding>& out) {
    if (!record.summary || !record.summary->memory_peak_bytes) return;
    std::optional<std::uint64_t> total;
    for (const Json& gpu : record.info.machine["gpus"].items()) {
        if (auto bytes = gpu["memory_total_bytes"].integer())
            total = static_cast<std::uint64_t>(*bytes);
    }
    if (!total || *record.summary->memory_peak_bytes * 10 >= *total * 6) return;
    Finding finding{.id = "F31",
                    .count = 1,
                    .confidence = Confidence::low,
                    .optional = true,
                    .sources = {"run record"}};
    finding.evidence = fmt::format("the run used {:.0f} % of the GPU's memory at most",
                                   100.0 * static_cast<double>(*record.summary->memory_peak_bytes) /
                                       static_cast<double>(*total));
    finding.surer = "time a few steps with twice the batch: only that shows whether it is faster";
    finding.gain = {1.0, 1.0, 1.0};
    out.push_back(finding);
}

// Notes other work on this machine if the job's tasks had to wait for a core meanwhile. Returns
// whether it did.
bool note_other_work(const RunRecord& record, Diagnosis& out) {
    constexpr double kMuch = 0.2;  // of the cores, and of one core
    CoreUse use = core_use(record);
    double ranks = std::max(1.0, record.python["world_size"].number().value_or(1));
    double others = use.others - use.own * (ranks - 1);
    if (use.n == 0 || others < kMuch * use.machine || use.queued < kMuch) return false;
    out.health.push_back({"note",
                          fmt::format("other work uses {:.1f} of the {:.0f} cores of this machine, "
                                      "and this job's tasks wait for a core",
                                      others, use.machine),
                          "measure again when nothing else runs"});
    return true;
}

void note_held_up(const RunRecord& record, const Account& account, const RecordedWaits& waits,
                  Diagnosis& out) {
    bool has_other_work = note_other_work(record, out);
    double ns = host_time(account, waits).held_up_ns;
    if (ns <= 0 || ns < 0.1 * waits.total_ns) return;
    double percent = 100.0 * ns / waits.total_ns;
    out.idle.emplace_back(Cause::host, percent);
    std::ranges::stable_sort(out.idle, std::greater<>(), &std::pair<Cause, double>::second);
    if (has_other_work) return;
    out.health.push_back(
        {"note",
         fmt::format("{:.0f} % of the step time is in single steps that take much longer than the "
                     "usual {:.2f} ms, and the record does not show why: often other work on this "
                     "machine",
                     percent, *account.step_p50_ms),
         "measure again when nothing else runs"});
}

}  // namespace

std::vector<Finding> run_findings(const RunRecord& record) {
    std::vector<Finding> out;
    Account account = account_of(record);
    from_steps(record, account, out);
    from_events(account, out);
    throttled(record, out);
    workers(record, out);
    memory(record, out);
    python_findings(record, out);
    trend_findings(record, out);
    if (!record.info.settings_text.empty()) {
        try {
            settings_in_force(
                record, Document::parse(record.info.settings_text, record.info.settings_source),
                out);
        } catch (const UserError&) {
            // An unreadable configuration says nothing about the run.
        }
    }
    drop_what_is_in_force(record, out);
    return out;
}

Diagnosis diagnose_run(const RunRecord& record, const std::string& folder) {
    Diagnosis out;
    out.inputs = {folder};
    out.device = record.info.device;
    out.findings = merged(run_findings(record));
    Account account = account_of(record);
    RecordedWaits waits = sum_waits(record, account);
    out.steps = account.steps;
    out.window_ms = waits.total_ns / 1e6;
    if (waits.steps > 0) out.step_ms = waits.total_ns / 1e6 / static_cast<double>(waits.steps);
    if (record.summary && record.summary->busy_percent)
        out.busy_percent = record.summary->busy_percent;
    else if (waits.busy_steps > 0 && waits.total_ns > 0)
        out.busy_percent = 100.0 * waits.busy_ns / waits.total_ns;
    if (out.busy_percent) {
        // The device's time over the host's time can be a little more than 100 %.
        out.busy_percent = std::min(100.0, *out.busy_percent);
        out.split.compute = *out.busy_percent;
        out.split.idle = 100.0 - *out.busy_percent;
    } else {
        out.split.unknown = 100.0;
    }
    if (waits.total_ns > 0 && waits.input_ns > 0)
        out.idle.emplace_back(Cause::input, 100.0 * waits.input_ns / waits.total_ns);
    note_held_up(record, account, waits, out);
    for (const Finding& finding : out.findings) {
        if (finding.optional || finding.gain.likely <= out.total.likely) continue;
        out.total = finding.gain;  // gains cannot be joined without a replay: take the largest
    }
    for (const std::string& note : record.notes) out.health.push_back({"record", note, ""});
    if (record.info.simulated)
        out.health.push_back({"note", "the device of this run was simulated", ""});
    std::vector<Finding> shown = out.shown(5, false);
    // A job without a GPU has no busy time; otherwise say that nothing recorded it.
    if (!out.busy_percent && !out.device.empty() && out.device != "cpu")
        out.health.push_back({"note", "how busy the device was is not recorded", ""});
    std::string told = cause_and_fix(out, "step time");
    // Mention growing memory (F34) before any advice on speed.
    for (const Finding& finding : out.findings) {
        if (finding.id == "F34")
            told = "; " + finding.evidence.substr(0, finding.evidence.find(';')) + told;
    }
    if (shown.empty())
        told += told.empty() ? "; the record shows no cause above 3 %"
                             : "; no change is expected to gain 3 %";
    if (told.empty() && !out.busy_percent) told = "; nothing below takes much of the step time";
    out.verdict = out.busy_percent
                      ? fmt::format("the device is busy {:.1f} %{}", *out.busy_percent, told)
                      : told.substr(2);
    return out;
}

}  // namespace saturate
