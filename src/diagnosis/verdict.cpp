// SPDX-License-Identifier: Apache-2.0
// The sentence that a user reads first: how busy the GPU is, the largest cause and the best fix, or
// why the trace cannot show that.
#include <fmt/format.h>

#include <algorithm>

#include "diagnosis/diagnosis.h"

namespace saturate {
namespace {

// Returns the causes of idle time that a finding explains; none for a finding about GPU work.
std::vector<Cause> causes_of(std::string_view id) {
    if (id == "F01" || id == "F02" || id == "F05") return {Cause::input};
    if (id == "F03" || id == "F06" || id == "F07" || id == "F08") return {Cause::sync};
    if (id == "F09") return {Cause::allocator};
    if (id == "F10" || id == "F12" || id == "F27") return {Cause::launch, Cause::latency};
    if (id == "F11") return {Cause::python, Cause::host};
    if (id == "F13" || id == "F14") return {Cause::optimizer};
    if (id == "F23") return {Cause::pause};
    if (id == "F24") return {Cause::compile, Cause::recording};
    return {};
}

struct Biggest {
    std::string name;
    double share = 0;
    bool has_finding = false;  // one that only --all shows
};

// Returns the finding with the largest share of the recorded time; the first one on a tie.
const Finding* largest_of(const std::vector<Finding>& shown) {
    const Finding* largest = nullptr;
    for (const Finding& finding : shown) {
        if (!finding.part_of.empty()) continue;
        if (!largest || finding.share_percent > largest->share_percent) largest = &finding;
    }
    return largest;
}

// Returns another finding that is nearly as large, so that their order may be chance, or null.
const Finding* as_large(const std::vector<Finding>& shown, const Finding& largest) {
    const Finding* found = nullptr;
    for (const Finding& finding : shown) {
        if (!finding.part_of.empty() || finding.id == largest.id || finding.share_percent < 10 ||
            finding.share_percent < 0.8 * largest.share_percent)
            continue;
        if (!found || finding.share_percent > found->share_percent) found = &finding;
    }
    return found;
}

bool explains(const std::vector<Finding>& findings, Cause cause) {
    return std::ranges::any_of(findings, [&](const Finding& finding) {
        std::vector<Cause> named = causes_of(finding.id);
        return std::ranges::find(named, cause) != named.end();
    });
}

// Returns a cause of idle time that no shown finding explains and that is larger than all of them.
std::optional<Biggest> unexplained(const Diagnosis& diagnosis, const std::vector<Finding>& shown,
                                   double told) {
    for (const auto& [cause, share] : diagnosis.idle) {
        if (!is_idle(cause) || is_one_off(cause) || explains(shown, cause)) continue;
        if (share >= 10 && share > told)
            return Biggest{std::string(cause_text(cause)), share,
                           explains(diagnosis.findings, cause)};
    }
    return std::nullopt;
}

std::string speed_up(const Diagnosis& diagnosis, double factor) {
    return fmt::format("would make {} about {:.2f} times as fast",
                       diagnosis.steps > 0 ? "a step" : "it", factor);
}

// Returns a sentence on the part of the trace that says little about a longer run, or "".
std::string not_steady(const Diagnosis& diagnosis) {
    if (!diagnosis.window) return "";
    const RecordedTime& window = *diagnosis.window;
    if (window.recording_percent >= 50)
        return fmt::format(
            "this trace shows CUDA graphs being recorded ({:.0f} % of it), which happens once and "
            "runs nothing: trace a later call; in the rest ",
            window.recording_percent);
    double head = 0, tail = 0;
    for (const auto& [kind, ms] : window.left_out) {
        head += kind == kBeforeOwnWork ? 100 * ms / window.whole_ms : 0;
        tail += kind == kAfterWork ? 100 * ms / window.whole_ms : 0;
    }
    if (head >= 50 && !window.is_remnant)
        return fmt::format(
            "during the first {:.0f} % of this trace the GPU works on what was started before it: "
            "record whole steps; in the rest ",
            head);
    if (tail >= 50 && !window.is_remnant)
        return fmt::format(
            "the last {:.0f} % of this trace is the end of the program, after the last work on the "
            "GPU: record a longer run; in the rest ",
            tail);
    if (window.startup_percent < 25) return "";
    // The work between the one-offs is left out with them.
    double before = 0;
    for (const auto& [kind, ms] : window.left_out)
        before += kind.find("step") == kind.npos && kind.find("own work") == kind.npos &&
                          kind != kAfterWork
                      ? 100 * ms / window.whole_ms
                      : 0;
    if (before >= window.startup_percent + 10)
        return fmt::format(
            "this trace shows start-up: {:.0f} % of it happens once, and {:.0f} % comes before the "
            "steady part; record a later part; in the rest ",
            window.startup_percent, before);
    return fmt::format(
        "this trace shows start-up: {:.0f} % of it happens once; record a later part; in the rest ",
        window.startup_percent);
}

std::string late_ranks(const Diagnosis& diagnosis) {
    const std::vector<int>& late = diagnosis.ranks->late;
    std::string names;
    for (std::size_t i = 0; i < late.size(); ++i)
        names += fmt::format("{}{}", i == 0 ? "" : i + 1 == late.size() ? " and " : ", ", late[i]);
    std::string text =
        fmt::format("the ranks wait for rank{} {}", late.size() == 1 ? "" : "s", names);
    if (diagnosis.total.likely >= kShownFrom)
        text += "; the fixes below " + speed_up(diagnosis, diagnosis.total.likely);
    return text;
}

// Mentions half precision (F18) if it would gain much; it is optional, so only --all shows it.
std::string opportunity(const Diagnosis& diagnosis) {
    const Finding* best = nullptr;
    for (const Finding& finding : diagnosis.findings) {
        bool is_large = finding.gain.likely >= 1.3 && finding.share_percent >= 30;
        if (finding.id == "F18" && is_large) best = &finding;
    }
    return best ? fmt::format("; half precision could make it about {:.1f} times as fast (--all)",
                              best->gain.likely)
                : "";
}

}  // namespace

std::string cause_and_fix(const Diagnosis& diagnosis, std::string_view whole) {
    std::vector<Finding> shown = diagnosis.shown(5, false);
    std::vector<Finding> measured, named;  // without a configuration's, which have no time
    for (const Finding& finding : shown) {
        if (finding.share_percent > 0) measured.push_back(finding);
    }
    // Name a large cause even if no fix is known to gain anything.
    for (const Finding& finding : diagnosis.findings) {
        if (!finding.optional && finding.share_percent >= (measured.empty() ? 3 : 1))
            named.push_back(finding);
    }
    const Finding* largest = largest_of(named);
    std::optional<Biggest> hidden;
    if (diagnosis.busy_percent)
        hidden = unexplained(diagnosis, named, largest ? largest->share_percent : 0);
    std::string text;
    if (hidden) {
        text =
            hidden->has_finding
                ? fmt::format("; biggest cause: {}, {:.0f} % of the {} (--all says more)",
                              hidden->name, hidden->share, whole)
                : fmt::format("; biggest cause: {}, {:.0f} % of the {}, which no finding explains",
                              hidden->name, hidden->share, whole);
        if (largest)
            text += fmt::format("; then {}, {:.0f} %", largest->name(), largest->share_percent);
    } else if (const Finding* second = largest ? as_large(named, *largest) : nullptr) {
        text = fmt::format("; biggest causes: {}, {:.0f} %, and {}, {:.0f} % of the {}",
                           largest->name(), largest->share_percent, second->name(),
                           second->share_percent, whole);
    } else if (largest) {
        text = fmt::format("; biggest cause: {}, {:.0f} % of the {}", largest->name(),
                           largest->share_percent, whole);
    }
    // The first finding has the largest gain. If its cause is another one, name it too.
    if (!measured.empty() && largest && measured[0].id != largest->id)
        text += fmt::format("; fix first: {}", measured[0].name());
    if (diagnosis.total.likely >= kShownFrom)
        text += fmt::format("; the fixes below {}", speed_up(diagnosis, diagnosis.total.likely));
    return text;
}

std::string verdict_of(const Diagnosis& diagnosis) {
    std::string cut =
        diagnosis.truncated ? "the file ends in the middle, so what follows is missing: " : "";
    if (!diagnosis.busy_percent) {
        if (diagnosis.truncated)
            return "the file ends in the middle, and the rest of it contains no GPU work: cannot "
                   "say; let the profiler finish writing, or copy the file again";
        if (diagnosis.unseen_launches > 0)
            return fmt::format(
                "cannot say: the host starts work on the GPU {} times, but none of that work was "
                "recorded; record with ProfilerActivity.CUDA, and with no other profiler running",
                diagnosis.unseen_launches);
        if (!diagnosis.other_device.empty())
            return fmt::format(
                "cannot say: this trace is of an accelerator ({}) whose work is not read here, "
                "only "
                "that of GPUs",
                diagnosis.other_device);
        if (!diagnosis.gpu_operator.empty())
            return fmt::format(
                "cannot say: this job uses a GPU ({}), but none of the GPU's work was recorded; "
                "record with ProfilerActivity.CUDA, and with no other profiler running",
                diagnosis.gpu_operator);
        return "no GPU work in this trace: it was recorded on the CPU, or without "
               "ProfilerActivity.CUDA" +
               cause_and_fix(diagnosis, "recorded time");
    }
    double busy = *diagnosis.busy_percent;
    std::string head = not_steady(diagnosis);
    std::string whole = head.empty() ? "recorded time" : "rest";
    if (diagnosis.split.unknown > 25)
        return cut + head +
               fmt::format(
                   "{}{:.0f} % of the {} is unknown, because the trace does not show what the GPU "
                   "did there (seen busy: {:.1f} %)",
                   head.empty() ? "cannot say: " : "", diagnosis.split.unknown,
                   head.empty() ? whole : "time", busy);
    if (diagnosis.ranks && !diagnosis.ranks->late.empty())
        return cut + head + late_ranks(diagnosis);
    if (head.empty() && diagnosis.window && diagnosis.window->is_remnant)
        return cut + fmt::format(
                         "cannot say: too little of the job's own work was recorded ({:.1f} of "
                         "{:.1f} ms, the GPU busy {:.1f} % of it); record whole steps",
                         diagnosis.window_ms, diagnosis.window->whole_ms, busy);
    std::string told = cause_and_fix(diagnosis, whole);
    bool is_quiet = diagnosis.shown(5, false).empty();
    // Little is left without the one-offs, and there are no findings in it.
    if (!head.empty() && is_quiet &&
        (diagnosis.window->is_remnant || diagnosis.window_ms < 0.25 * diagnosis.window->whole_ms))
        return cut + head + fmt::format("the GPU is busy {:.1f} % of the time", busy);
    // A GPU that idles for a known reason is not healthy, even if no fix is known.
    constexpr double kHealthyFrom = 80, kHealthyAnyway = 90;
    if (is_quiet && (told.empty() || busy >= kHealthyAnyway))
        return cut + head +
               fmt::format(
                   "{}: the GPU is busy {:.1f} % of the time and no drop-in change would "
                   "gain 3 % or more{}",
                   busy >= kHealthyFrom ? "healthy" : "no single cause", busy,
                   opportunity(diagnosis));
    return cut + head + fmt::format("the GPU is busy {:.1f} % of the time{}", busy, told);
}

}  // namespace saturate
