// SPDX-License-Identifier: Apache-2.0
// Compares the diagnosis of random mixes with the causes they are made of. Used by mix_test.cpp for
// a few mixes and by slow/mixes_test.cpp for many.
#pragma once

#include <cmath>
#include <map>
#include <optional>

#include "diagnosis/diagnosis.h"
#include "diagnosis/trace_read.h"
#include "trace_mix.h"

namespace saturate {

struct MixAnswer {
    std::string told;  // text for messages
    bool has_cause = false;
    double share_error = 0;  // of the largest cause, in points
    bool has_gain = false;
    double gain_error = 0;    // relative, of the finding for that cause
    std::string false_alarm;  // a finding above 5 % that is not in the mix
    std::string bold;         // ... with high confidence
};

// A cause, the finding that reports it, and the assumed effect of the fix.
struct Cure {
    Do what;
    std::string_view id;
    MixChange change;
};

inline std::vector<Cure> cures(bool python_goes_whole) {
    return {{Do::input, "F01", {.input = 0.02}},
            {Do::launch, "F10", {.launch = 0.4}},
            {Do::python, "F11", {.python = python_goes_whole ? 0.0 : 0.3}},
            {Do::allocate, "F09", {.allocate = 0.02, .allocations_wait = false}},
            {Do::collective, "F15", {.collective = 0.5}}};
}

inline MixAnswer check_mix(const Mix& mix, const MixOptions& options) {
    Mix::Run made = mix.run({}, options);
    MixAnswer out;
    Trace trace = parse_trace(made.text, "mix.json");
    Timeline line = make_timeline(trace);
    Diagnosis diagnosis = diagnose_trace(trace);
    out.told = diagnosis.verdict;
    std::int64_t from = line.start_ns + trace.origin_ns, to = line.end_ns + trace.origin_ns;
    auto length = static_cast<double>(line.length_ns());
    auto time = [&](Do what, std::int64_t since, std::int64_t until) {
        return static_cast<double>(what == Do::collective ? made.collectives(since, until)
                                                          : made.idle(what, since, until));
    };
    auto share = [&](Do what) { return 100.0 * time(what, from, to) / length; };
    auto find = [&](std::string_view id) -> const Finding* {
        for (const Finding& finding : diagnosis.findings) {
            if (finding.id == id) return &finding;
        }
        return nullptr;
    };
    const Finding* python = find("F11");
    bool goes_whole = python && python->assumes.find("as a whole") != std::string::npos;
    const Cure* largest = nullptr;
    std::vector<Cure> all = cures(goes_whole);
    for (const Cure& cure : all) {
        if (share(cure.what) >= 10 && (!largest || share(cure.what) > share(largest->what)))
            largest = &cure;
    }
    if (largest) {
        out.has_cause = true;
        const Finding* finding = find(largest->id);
        out.share_error = finding ? std::abs(finding->share_percent - share(largest->what))
                                  : share(largest->what);
        if (finding && finding->gain.likely >= 1.03) {
            // Without step marks, the window includes the prelude if it is too small to matter.
            Mix::Run fixed = mix.run(largest->change, options);
            double before = length;
            double saved = static_cast<double>((made.end_ns - made.prelude_ns) -
                                               (fixed.end_ns - fixed.prelude_ns));
            // The share of the cause that is inside a cut window.
            double inside = time(largest->what, std::max(from, made.prelude_ns), to) /
                            time(largest->what, made.prelude_ns, made.end_ns);
            double gain = before / (before - saved * std::min(1.0, inside));
            out.has_gain = true;
            out.gain_error = finding->gain.likely / gain - 1.0;
        }
    }
    std::map<std::string_view, double> there;  // shares by id
    for (const Cure& cure : all) there[cure.id] = share(cure.what);
    there["F05"] = there["F01"];
    there["F12"] = there["F27"] = there["F10"];
    there["F16"] = there["F15"];
    auto has = [&](Do what) {
        return std::ranges::any_of(mix.steps, [&](const Action& one) { return one.what == what; });
    };
    there["F06"] = there["F08"] = has(Do::read) ? 100 : 0;
    there["F07"] = has(Do::wait) ? 100 : 0;
    for (const Finding& finding : diagnosis.findings) {
        if (finding.share_percent <= 5 || finding.optional || there[finding.id] >= 2) continue;
        std::string text =
            fmt::format("{} {:.1f} %: {}", finding.id, finding.share_percent, finding.evidence);
        out.false_alarm = text;
        if (finding.confidence == Confidence::high) out.bold = text;
    }
    return out;
}

struct MixScore {
    int mixes = 0, causes = 0, right_shares = 0, gains = 0, right_gains = 0;
    int false_alarms = 0;
    std::vector<std::string> wrong;
};

enum class Damage { none, cut_head, startup, recording };

// Cuts off the head of the mix, or adds a start that takes as long as all the rest.
inline void damage(Mix& mix, MixOptions& options, Damage kind, std::mt19937& random) {
    if (kind == Damage::cut_head) {
        options.cuts_start = std::uniform_real_distribution<double>(0.05, 0.5)(random);
        options.marks_steps = false;  // the profiler only marks whole steps
        return;
    }
    if (kind == Damage::none || !mix.prelude.empty()) return;
    std::int64_t all = mix.run().end_ns;
    if (kind == Damage::recording) mix.prelude.push_back({Do::record, all});
    if (kind == Damage::startup) {
        mix.prelude.push_back({Do::first_call, all});
        for (int i = 0; i < 6; ++i) mix.prelude.push_back({Do::first_launch, 10'000'000, 50'000});
    }
}

inline MixScore score_mixes(int count, unsigned seed, Damage kind = Damage::none) {
    std::mt19937 random(seed);
    MixScore score;
    for (int i = 0; i < count; ++i) {
        Mix mix = random_mix(random);
        MixOptions options{.marks_steps = std::bernoulli_distribution(0.6)(random),
                           .has_stacks = std::bernoulli_distribution(0.4)(random)};
        damage(mix, options, kind, random);
        MixAnswer answer = check_mix(mix, options);
        ++score.mixes;
        score.false_alarms += !answer.false_alarm.empty();
        score.causes += answer.has_cause;
        bool is_right_share = answer.share_error <= 3;
        score.right_shares += answer.has_cause && is_right_share;
        score.gains += answer.has_gain;
        bool is_right_gain = std::abs(answer.gain_error) <= 0.05;
        score.right_gains += answer.has_gain && is_right_gain;
        if (!is_right_share || !is_right_gain || !answer.false_alarm.empty())
            score.wrong.push_back(fmt::format(
                "mix {} (steps {}, stacks {}): share off by {:.1f}, gain by {:.1f} %, {} | {}", i,
                options.marks_steps, options.has_stacks, answer.share_error,
                100 * answer.gain_error, answer.false_alarm, answer.told));
    }
    return score;
}

}  // namespace saturate
