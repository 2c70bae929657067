// SPDX-License-Identifier: Apache-2.0
#include "report/diagnosis_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace saturate {
namespace {

constexpr int kBarWidth = 60;

// Returns a bar with one character per kind, in proportion, and a legend line per visible part.
std::string bar_text(const Diagnosis& diagnosis) {
    struct Piece {
        char mark;
        std::string name;
        double share;
    };
    std::vector<Piece> pieces;
    const SplitPercent& split = diagnosis.split;
    if (diagnosis.busy_percent) {
        pieces.push_back({'#', "compute", split.compute});
        pieces.push_back({'=', "communication", split.communication});
        pieces.push_back({'~', "copies", split.memcpy + split.memset});
    }
    const char* marks = ".,:;-+'^\"!o*?";
    std::size_t used = 0;
    for (const auto& [cause, share] : diagnosis.idle) {
        bool is_unknown = !is_idle(cause);
        char mark = is_unknown ? '?' : marks[std::min<std::size_t>(used++, 11)];
        pieces.push_back({mark, std::string(diagnosis.part_text(cause)), share});
    }
    std::string bar;
    std::string legend;
    double sum = 0;
    for (const Piece& piece : pieces) {
        sum += piece.share;
        auto until = static_cast<std::size_t>(std::lround(sum / 100.0 * kBarWidth));
        while (bar.size() < std::min<std::size_t>(until, kBarWidth)) bar += piece.mark;
        if (piece.share >= 0.5)
            legend += fmt::format("    {} {:5.1f} %  {}\n", piece.mark, piece.share, piece.name);
    }
    return fmt::format("  [{}]\n{}", pad_right(bar, kBarWidth), legend);
}

std::string gain_text(const Gain& gain) {
    if (gain.high <= 1.0) return "this input does not show it";
    return fmt::format("{:.2f}x ({:.2f} to {:.2f})", gain.likely, gain.low, gain.high);
}

std::string finding_text(const Finding& finding, std::size_t number, bool has_steps) {
    bool is_part = !finding.part_of.empty();
    std::string out = is_part ? fmt::format("     {} {}", finding.id, finding.name())
                              : fmt::format("  {}. {} {}", number, finding.id, finding.name());
    if (finding.share_percent > 0) out += fmt::format(": {:.1f} %", finding.share_percent);
    if (finding.share_percent > 0 && finding.ms_per_step > 0)
        out += fmt::format(", {:.1f} ms{}", finding.ms_per_step, has_steps ? " per step" : "");
    out += fmt::format("\n       seen: {}\n", finding.evidence);
    for (const Example& example : finding.examples) {
        out += fmt::format("         at {:.3f} ms: {}", static_cast<double>(example.time_ns) / 1e6,
                           example.text);
        if (!example.source.empty()) out += fmt::format("  <- {}", example.source);
        out += '\n';
    }
    if (!finding.where.empty()) out += fmt::format("       at:   {}\n", finding.where);
    out += fmt::format("       fix:  {}\n", finding.fix_text());
    out += fmt::format("       gain: {}, confidence {}\n", gain_text(finding.gain),
                       confidence_text(finding.confidence));
    if (!finding.assumes.empty()) out += fmt::format("       assumes: {}\n", finding.assumes);
    if (!finding.surer.empty())
        out += fmt::format("       to be more certain: {}\n", finding.surer);
    for (std::string_view line : split(trim(finding.patch), '\n')) {
        if (!line.empty()) out += fmt::format("         {}\n", line);
    }
    return out;
}

std::string ranks_text(const RankComparison& ranks) {
    double waits = static_cast<double>(ranks.wait_ns) / 1e6;
    std::string out =
        ranks.by_input
            ? fmt::format("  {} steps compared over {} ranks: {:.1f} ms waiting per rank\n",
                          ranks.collectives, ranks.ranks.size(), waits)
            : fmt::format(
                  "  {} collectives compared over {} ranks: {:.1f} ms transfer, {:.1f} ms "
                  "waiting per rank\n",
                  ranks.collectives, ranks.ranks.size(),
                  static_cast<double>(ranks.transfer_ns) / 1e6, waits);
    for (const RankFacts& rank : ranks.ranks) {
        bool late = std::ranges::find(ranks.late, rank.rank) != ranks.late.end();
        out += fmt::format(
            "    rank {:<3} busy {:5.1f} %  communication {:5.1f} %  waits {:7.1f} ms  last in "
            "{:3}{}\n",
            rank.rank, rank.busy_percent, rank.communication_percent,
            static_cast<double>(rank.wait_ns) / 1e6, rank.latest, late ? "  <- late" : "");
    }
    return out;
}

double step_time(const Diagnosis& diagnosis) {
    return diagnosis.step_ms.value_or(diagnosis.window_ms);
}

// Returns the largest gain among the findings left out because they are no drop-in change.
std::string other_changes(const Diagnosis& diagnosis, const DiagnoseView& view) {
    const Finding* largest = nullptr;
    for (const Finding& finding : diagnosis.findings) {
        if (finding.optional && finding.gain.likely >= 1.03 && !view.everything &&
            (!largest || finding.gain.likely > largest->gain.likely))
            largest = &finding;
    }
    if (!largest) return "";
    return fmt::format(", not drop-in: {} ({:.2f} times at best)", largest->name(),
                       largest->gain.likely);
}

}  // namespace

bool says_the_same(const Finding& part, const std::vector<Finding>& all) {
    return std::ranges::any_of(all, [&](const Finding& whole) {
        return whole.id == part.part_of && whole.share_percent == part.share_percent &&
               whole.fix_text() == part.fix_text();
    });
}

std::string more_than_the_product(const Diagnosis& diagnosis, const std::vector<Finding>& shown) {
    double product = 1.0;
    for (const Finding& finding : shown) {
        if (finding.part_of.empty() && !finding.optional) product *= finding.gain.likely;
    }
    if (diagnosis.total.likely < 1.01 * product) return "";
    return fmt::format(
        "more than one by one ({:.2f}x): if only one cause is removed, the next takes some of "
        "its time",
        product);
}

std::string verdict_lines(std::string_view verdict) {
    std::string out;
    while (!verdict.empty()) {
        std::size_t end = std::min(verdict.find("; "), verdict.size());
        out += std::string(verdict.substr(0, end)) + '\n';
        verdict.remove_prefix(std::min(end + 2, verdict.size()));
    }
    return out;
}

std::string left_out_text(const Diagnosis& diagnosis) {
    if (!diagnosis.window || diagnosis.window->left_out.empty()) return "";
    const RecordedTime& window = *diagnosis.window;
    std::string parts;
    for (const auto& [kind, ms] : window.left_out)
        parts += fmt::format("{}{} {:.1f} ms", parts.empty() ? "" : ", ", kind, ms);
    return fmt::format("left out of {:.1f} ms recorded{}: {}", window.whole_ms,
                       window.whole_busy_percent
                           ? fmt::format(" (busy {:.1f} %)", *window.whole_busy_percent)
                           : "",
                       parts);
}

std::string diagnosis_text(const Diagnosis& diagnosis, const DiagnoseView& view) {
    std::string out = view.with_answer ? verdict_lines(diagnosis.verdict) + "\n" : "";
    if (diagnosis.window_ms > 0 && (view.with_answer || diagnosis.busy_percent)) {
        out += fmt::format("  {}{:.1f} ms", diagnosis.device.empty() ? "" : diagnosis.device + ", ",
                           diagnosis.window_ms);
        if (diagnosis.steps > 0)
            out += fmt::format(", {} step{}", diagnosis.steps, diagnosis.steps == 1 ? "" : "s");
        if (diagnosis.step_ms) out += fmt::format(" of {:.1f} ms", *diagnosis.step_ms);
        if (diagnosis.busy_percent) out += fmt::format(", busy {:.1f} %", *diagnosis.busy_percent);
        if (std::string left_out = left_out_text(diagnosis); !left_out.empty())
            out += "\n  " + left_out;
        out += "\n" + bar_text(diagnosis) + "\n";
    }
    if (diagnosis.ranks) out += ranks_text(*diagnosis.ranks) + "\n";
    std::vector<Finding> shown = diagnosis.shown(view.most, view.everything);
    std::size_t number = 0;
    for (const Finding& finding : shown) {
        if (finding.part_of.empty()) ++number;
        if (says_the_same(finding, shown)) continue;
        out += finding_text(finding, number, diagnosis.steps > 0);
        for (const Finding& part : shown) {
            if (part.part_of == finding.id && says_the_same(part, shown))
                out += fmt::format("       also: {} {}: {}\n", part.id, part.name(), part.evidence);
        }
        out += "\n";
    }
    std::size_t hidden = diagnosis.findings.size() - shown.size();
    std::string more = more_than_the_product(diagnosis, shown);
    if (diagnosis.total.likely > 1.0 && !shown.empty())
        out += fmt::format("  all fixes together: {}{}\n", gain_text(diagnosis.total),
                           more.empty() ? "" : ", " + more);
    if (diagnosis.replay_error_percent && !shown.empty())
        out += fmt::format(
            "  accuracy: replaying the unchanged trace is {:.1f} % off the measured time\n",
            *diagnosis.replay_error_percent);
    for (const HealthNote& note : diagnosis.health) {
        out += fmt::format("  {}: {}\n", note.id, note.text);
        if (!note.advice.empty()) out += fmt::format("      {}\n", note.advice);
    }
    if (hidden > 0)
        out += fmt::format("  {} more with --all{}\n", hidden, other_changes(diagnosis, view));
    return out;
}

std::string comparison_text(const Diagnosis& before, const Diagnosis& after) {
    double ratio = step_time(before) / std::max(step_time(after), 1e-9);
    std::string out = fmt::format("{}: {:.1f} ms to {:.1f} ms, {:.3f} times as fast\n",
                                  before.step_ms && after.step_ms ? "step" : "window",
                                  step_time(before), step_time(after), ratio);
    if (before.busy_percent && after.busy_percent)
        out +=
            fmt::format("busy: {:.1f} % to {:.1f} %\n", *before.busy_percent, *after.busy_percent);
    for (const Finding& finding : before.shown(99, false)) {
        if (!finding.part_of.empty()) continue;
        auto same = std::ranges::find(after.findings, finding.id, &Finding::id);
        bool gone = same == after.findings.end() || same->share_percent < 1;
        out += fmt::format(
            "  {} {}: {:.1f} % {}, predicted {:.2f}x\n", finding.id, finding.name(),
            finding.share_percent,
            gone ? std::string("is gone") : fmt::format("is now {:.1f} %", same->share_percent),
            finding.gain.likely);
    }
    for (const Finding& finding : after.shown(99, false)) {
        if (std::ranges::find(before.findings, finding.id, &Finding::id) == before.findings.end())
            out += fmt::format("  {} {}: new, {:.1f} %\n", finding.id, finding.name(),
                               finding.share_percent);
    }
    // The fixes whose findings are gone were made. Compare with the largest of their predictions,
    // or with the prediction for all fixes if all are gone.
    double predicted = 0;
    bool is_all = true;
    for (const Finding& finding : before.shown(99, false)) {
        if (!finding.part_of.empty()) continue;
        auto same = std::ranges::find(after.findings, finding.id, &Finding::id);
        bool gone = same == after.findings.end() || same->share_percent < finding.share_percent / 4;
        if (gone) predicted = std::max(predicted, finding.gain.likely);
        is_all &= gone;
    }
    if (is_all) predicted = std::max(predicted, before.total.likely);
    if (predicted > 0)
        out += fmt::format("prediction for what is gone: {:.3f}x, measured {:.3f}x ({:+.1f} %)\n",
                           predicted, ratio, 100.0 * (predicted / ratio - 1.0));
    return out;
}

Json comparison_json(const Diagnosis& before, const Diagnosis& after) {
    return Json::object({{"schema", 1},
                         {"ratio", step_time(before) / std::max(step_time(after), 1e-9)},
                         {"before", to_json(before, 99, false)},
                         {"after", to_json(after, 99, false)}});
}

std::string how_text() {
    return R"(# A trace that diagnose can say most about: one step of waiting, one of warm-up, six recorded.
from torch.profiler import ProfilerActivity, profile, schedule

def save(prof):
    prof.export_chrome_trace("trace.json.gz")

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
             schedule=schedule(wait=1, warmup=1, active=6, repeat=1),
             on_trace_ready=save, with_stack=True, record_shapes=True) as prof:
    for step, batch in enumerate(loader):
        train_step(batch)
        prof.step()
        if step >= 8:
            break

# Then: saturate diagnose trace.json.gz        (several ranks: a folder of their files)
)";
}

}  // namespace saturate
