// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>

#include "diagnosis/context.h"

namespace saturate {
namespace {

// True if the gain is worth showing; findings with less than 1 % of the time are not.
bool gains_enough(const Finding& finding) {
    bool is_small = finding.share_percent > 0 && finding.share_percent < 1;
    return finding.gain.likely >= kShownFrom && !is_small;
}

Gain total_of(const Context& context, const std::vector<Finding>& findings) {
    // The fixes overlap: their gains are not added but replayed together.
    ReplayChange all, best;
    double likely = 1.0, high = 1.0;
    const Finding* only = nullptr;
    std::size_t count = 0;
    for (const Finding& finding : findings) {
        bool is_part = !finding.part_of.empty();  // another finding already counts its time
        if (is_part || finding.optional || !gains_enough(finding)) continue;
        only = &finding;
        ++count;
        likely = std::max(likely, finding.gain.likely);
        high = std::max(high, finding.gain.high);
        auto add = [&](const auto& changes, ReplayChange& sum) {
            for (const auto& [id, change] : changes) {
                if (id == finding.id) sum = sum.with(change);
            }
        };
        add(context.changes, all);
        add(context.most, best);
    }
    if (count == 0) return {};
    if (count == 1) return only->gain;
    auto gain = [&](const ReplayChange& change) {
        return std::min(context.replay.gain(change), context.most_gain(change));
    };
    likely = std::max(likely, gain(all));
    high = std::max({high, likely, gain(all.with(best))});
    return {1.0 + 0.6 * (likely - 1.0), likely, high};
}

void fill_time(const Timeline& line, Diagnosis& out) {
    out.window_ms = static_cast<double>(line.length_ns()) / 1e6;
    out.steps = line.has_steps ? static_cast<std::int64_t>(line.steps.size()) : 0;
    if (line.has_steps) out.step_ms = static_cast<double>(line.step_ns()) / 1e6;
    const Split& split = line.split;
    out.split = {line.percent(split.compute_ns), line.percent(split.communication_ns),
                 line.percent(split.memcpy_ns),  line.percent(split.memset_ns),
                 line.percent(split.idle_ns),    line.percent(split.unknown_ns)};
    if (line.device >= 0) out.busy_percent = line.busy_percent();
    for (std::size_t i = 0; i < kCauses; ++i) {
        if (line.percent(line.causes[i]) >= 0.05)
            out.idle.emplace_back(static_cast<Cause>(i), line.percent(line.causes[i]));
    }
    std::ranges::stable_sort(out.idle, std::greater<>(), &std::pair<Cause, double>::second);
    const SteadyPart& steady = line.steady;
    auto ms = [](std::int64_t ns) { return static_cast<double>(ns) / 1e6; };
    RecordedTime parts{.whole_ms = ms(steady.whole_ns),
                       .steady_ms = out.window_ms,
                       .startup_percent = steady.share(steady.startup_ns),
                       .recording_percent = steady.share(steady.recording_ns)};
    if (line.device >= 0) parts.whole_busy_percent = steady.percent(steady.whole_busy_ns);
    // If much was cut out of the middle, the rest between the one-offs is not steady.
    parts.is_remnant =
        line.cut && (4 * line.length_ns() < steady.whole_ns || line.cut_ns > line.length_ns());
    // Nor does a short moment after the left-out part, two kernels, or a handful of kernels after
    // the one-offs represent a longer run.
    constexpr std::int64_t kMoment = 1'000'000;
    constexpr std::size_t kFewWorks = 3, kHandful = 10;
    parts.is_remnant |= !steady.left_out.empty() && line.length_ns() < kMoment &&
                        4 * line.length_ns() < steady.whole_ns;
    parts.is_remnant |=
        line.device >= 0 && line.gpu.size() < (steady.left_out.empty() ? kFewWorks : kHandful);
    for (const UnsteadyTime& part : steady.left_out)
        parts.left_out.emplace_back(part.kind, ms(part.ns));
    out.window = std::move(parts);
    out.truncated = line.trace->losses.truncated;
}

Diagnosis diagnose_timeline(const Timeline& line) {
    Replay replay(line);
    Context context(line, replay);
    for (auto rule : {find_input, find_synchronisation, settle_waits, find_launch, find_optimizer,
                      find_communication, find_compute, find_habits, find_pauses})
        rule(context);
    Diagnosis out;
    out.inputs = {line.trace->file};
    if (context.device && line.device >= 0) out.device = context.device->name;
    fill_time(line, out);
    out.health = trace_health(line);
    bool is_unknown = line.device >= 0 && out.split.unknown > 25;
    out.findings = merged(context.findings);
    out.unseen_launches = unseen_launches(line);
    // A truncated file without GPU work may have lost it. Launching calls without GPU work prove
    // that it is missing.
    if (line.device < 0) out.other_device = line.trace->other_device;
    out.gpu_operator = gpu_operator(line);
    bool is_nothing = (out.truncated && line.device < 0) || out.unseen_launches > 0 ||
                      !out.other_device.empty() || !out.gpu_operator.empty();
    bool is_clock_off = starts_before_launch(line) > 0;
    // The host's time alone says nothing about a device whose work is missing.
    if (is_nothing && line.device < 0) out.findings.clear();
    for (Finding& finding : out.findings) {
        // A gain computed from a window that was mostly not recorded cannot be trusted.
        if (is_unknown || is_nothing || replay.error_percent() > 5)
            finding.confidence = Confidence::low;
        if ((out.truncated || is_clock_off) && finding.confidence == Confidence::high)
            finding.confidence = Confidence::medium;
        if (is_unknown || is_nothing) finding.optional = true;
        // While a CUDA graph is recorded, the calls around it look like separate problems.
        bool is_beside =
            out.window->recording_percent >= 15 && (finding.id == "F07" || finding.id == "F10" ||
                                                    finding.id == "F12" || finding.id == "F27");
        if (is_beside || out.window->is_remnant) {
            finding.confidence = Confidence::low;
            finding.optional = true;
        }
    }
    for (Finding& part : out.findings) {
        auto whole = std::ranges::find(out.findings, part.part_of, &Finding::id);
        if (!part.part_of.empty() && whole != out.findings.end() && whole->optional)
            part.optional = true;
    }
    out.total = is_unknown || is_nothing ? Gain{} : total_of(context, out.findings);
    out.replay_error_percent = replay.error_percent();
    out.dropped_events = line.trace->losses.lost();
    out.repaired_events = line.trace->losses.repaired_events;
    out.verdict = verdict_of(out);
    return out;
}

}  // namespace

Finding straggler(const RankComparison& ranks, const Diagnosis& late, double window_ms) {
    Finding finding{.id = "F17",
                    .count = static_cast<std::int64_t>(ranks.collectives),
                    .confidence = Confidence::high};
    double wait_ms = static_cast<double>(ranks.wait_ns) / 1e6;
    finding.share_percent = 100.0 * wait_ms / window_ms;
    finding.ms_per_step = wait_ms / std::max<double>(1.0, static_cast<double>(late.steps));
    std::string who;
    for (int rank : ranks.late) who += fmt::format("{}{}", who.empty() ? "" : ", ", rank);
    finding.evidence = fmt::format(
        "{} collectives paired over {} ranks: {:.0f} ms of transfer, {:.0f} ms of waiting per "
        "rank; last to arrive: rank {}",
        ranks.collectives, ranks.ranks.size(), static_cast<double>(ranks.transfer_ns) / 1e6,
        wait_ms, who);
    if (ranks.by_input)
        finding.evidence = fmt::format(
            "the {} ranks step together, and rank {} waits longest for its data: the others wait "
            "for it {:.1f} ms in each of {} steps",
            ranks.ranks.size(), who,
            static_cast<double>(ranks.others_wait_ns()) / 1e6 /
                static_cast<double>(std::max<std::size_t>(1, ranks.collectives)),
            ranks.collectives);
    double bound = 1.0 / std::max(0.05, 1.0 - finding.share_percent / 100.0);
    // The other ranks cannot get faster than the late rank gets with its own fixes.
    double likely = std::min(bound, std::max(1.0, late.total.likely));
    finding.gain = {1.0 + 0.6 * (likely - 1.0), likely, bound};
    return finding;
}

std::string_view Diagnosis::part_text(Cause cause) const {
    if (!busy_percent && cause == Cause::launch) return "operators";
    if (!busy_percent && cause == Cause::optimizer) return "the optimizer";
    return cause_text(cause);
}

std::vector<Finding> Diagnosis::shown(std::size_t most, bool everything) const {
    std::vector<Finding> out;
    for (const Finding& finding : findings) {
        if (everything) {
            out.push_back(finding);
            continue;
        }
        if (finding.optional || out.size() >= most) continue;
        bool is_static =
            finding.gain.high == 1.0 && finding.share_percent == 0;  // from a configuration
        if (gains_enough(finding) || is_static) out.push_back(finding);
    }
    return out;
}

Diagnosis diagnose_trace(const Trace& trace) { return diagnose_timeline(make_timeline(trace)); }

namespace {

// The step of a job is not shorter than the own work of its slowest rank, without its waiting:
// limits what the late rank can gain for the job.
void limit_by_others(const std::vector<Timeline>& lines, const RankComparison& ranks,
                     std::size_t late, Diagnosis& out) {
    double slowest = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        std::int64_t own = lines[i].length_ns() - ranks.ranks[i].wait_ns;
        if (i != late) slowest = std::max(slowest, static_cast<double>(own) / 1e6);
    }
    if (slowest <= 0) return;
    double most = std::max(1.0, out.window_ms / slowest);
    auto limit = [&](Gain& gain) {
        gain = {std::min(gain.low, most), std::min(gain.likely, most), std::min(gain.high, most)};
    };
    for (Finding& finding : out.findings) limit(finding.gain);
    limit(out.total);
}

}  // namespace

Diagnosis diagnose_traces(const std::vector<Trace>& traces) {
    if (traces.size() == 1) return diagnose_trace(traces[0]);
    std::vector<Timeline> lines;
    for (const Trace& trace : traces) lines.push_back(make_timeline(trace));
    RankComparison ranks = compare_ranks(lines);
    // Report the late rank on behalf of the job, or the rank that is idle most if none is late.
    std::size_t which = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        bool is_late = !ranks.late.empty() && ranks.ranks[i].rank == ranks.late[0];
        if (is_late ||
            (ranks.late.empty() && lines[i].busy_percent() < lines[which].busy_percent()))
            which = i;
    }
    Diagnosis out = diagnose_timeline(lines[which]);
    double transfer =
        100.0 * static_cast<double>(ranks.transfer_ns) / 1e6 / std::max(out.window_ms, 1e-9);
    for (Finding& finding : out.findings) {
        if (finding.id != "F15" || ranks.collectives == 0) continue;
        finding.surer.clear();
        finding.evidence += fmt::format(
            "; over {} ranks {:.0f} ms of it are transfer and {:.0f} ms waiting for another rank",
            ranks.ranks.size(), static_cast<double>(ranks.transfer_ns) / 1e6,
            static_cast<double>(ranks.wait_ns) / 1e6);
    }
    if (ranks.collectives > 0 && transfer < 10)
        std::erase_if(out.findings, [](const Finding& finding) { return finding.id == "F15"; });
    double wait_percent =
        100.0 * static_cast<double>(ranks.wait_ns) / 1e6 / std::max(out.window_ms, 1e-9);
    if (!ranks.late.empty() && wait_percent >= 5 && !out.window->is_remnant) {
        limit_by_others(lines, ranks, which, out);
        out.findings.insert(out.findings.begin(), straggler(ranks, out, out.window_ms));
    } else {
        ranks.late.clear();
    }
    out.inputs.clear();
    for (const Trace& trace : traces) {
        out.inputs.push_back(trace.file);
        if (&trace - traces.data() != static_cast<std::ptrdiff_t>(which)) {
            out.dropped_events += trace.losses.lost();
            out.repaired_events += trace.losses.repaired_events;
        }
    }
    for (const std::string& warning : ranks.warnings) out.health.push_back({"ranks", warning, ""});
    out.ranks = ranks;
    out.rank_shown = which;
    out.verdict = verdict_of(out);
    return out;
}

Diagnosis joined(Diagnosis trace, Diagnosis other) {
    for (Finding& finding : other.findings) trace.findings.push_back(std::move(finding));
    trace.findings = merged(std::move(trace.findings));
    for (std::string& input : other.inputs) trace.inputs.push_back(std::move(input));
    for (HealthNote& note : other.health) trace.health.push_back(std::move(note));
    return trace;
}

}  // namespace saturate
