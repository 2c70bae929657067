// SPDX-License-Identifier: Apache-2.0
#include "report/tuning_text.h"

#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "report/text_table.h"

namespace saturate {

namespace {

std::string change_text(const Assignment& change) {
    std::string out;
    for (const auto& [key, value] : change)
        out += fmt::format("{}{}={}", out.empty() ? "" : " ", key, value);
    return out.empty() ? "-" : out;
}

std::string gain_text(double ratio) { return fmt::format("{:+.0f} %", 100 * (ratio - 1)); }

std::string measured_text(const Rate& rate) {
    return fmt::format("{} samples/s (n={}, {}..{})", rate_text(rate.per_second), rate.n,
                       rate_text(rate.low), rate_text(rate.high));
}

std::string outcome_text(const Tried& tried) {
    if (tried.outcome == TrialOutcome::ok && !tried.rate && tried.change.empty())
        return tried.message;
    if (tried.outcome == TrialOutcome::ok && !tried.rate)
        return fmt::format("{} {}", gain_text(tried.ratio), tried.message);
    if (!tried.rate || tried.outcome != TrialOutcome::ok)
        return std::string(outcome_name(tried.outcome));
    return measured_text(*tried.rate);
}

}  // namespace

std::string trial_line(int number, const Tried& tried) {
    bool is_change = !tried.change.empty();
    std::string what = is_change ? change_text(tried.change) : tried.cause;
    std::string line =
        fmt::format("{:>3}  {}  {}", number, pad_right(what, 34), outcome_text(tried));
    if (tried.outcome != TrialOutcome::ok && !tried.message.empty()) line += ": " + tried.message;
    if (is_change && tried.rate && tried.outcome == TrialOutcome::ok)
        line += fmt::format("  {}", gain_text(tried.ratio));
    if (is_change && tried.cause != "batch size")
        line += tried.kept   ? ", kept"
                : tried.open ? ", too close to call, measured again later"
                             : ", not kept";
    if (tried.from_cache) line += " (measured before)";
    return line;
}

std::string batch_text(const BatchAnswer& answer) {
    TextTable table({"batch size", "memory", "samples/s", "outcome"});
    for (const BatchProbe& probe : answer.probes) {
        table.add({std::to_string(probe.size),
                   probe.memory_bytes ? bytes_text(*probe.memory_bytes) : "-",
                   probe.rate ? rate_text(probe.rate->per_second) : "-",
                   probe.rate ? "pass" : std::string(outcome_name(probe.outcome))});
    }
    std::string out = table.text();
    if (answer.memory) {
        out += fmt::format("  memory = {} + {} per sample (largest error {:.1f} %)\n",
                           bytes_text(static_cast<std::uint64_t>(answer.memory->at_zero)),
                           bytes_text(static_cast<std::uint64_t>(answer.memory->per_unit)),
                           100 * answer.memory->error);
    }
    if (answer.time) {
        out += fmt::format(
            "  step time = {:.2f} ms + {:.4f} ms per sample (largest error {:.1f} %)\n",
            1e3 * answer.time->at_zero, 1e3 * answer.time->per_unit, 100 * answer.time->error);
    }
    return out + "  " + answer.why + "\n";
}

std::vector<std::vector<std::string>> kept_rows(const SearchAnswer& answer, const Assignment& start,
                                                bool is_proven) {
    std::vector<std::vector<std::string>> rows = {{"setting", "before", "after", "why"}};
    if (is_proven) rows[0].insert(rows[0].end() - 1, "effect measured");
    for (const KeptSetting& kept : kept_settings(answer)) {
        auto old = start.find(kept.key);
        std::vector<std::string> row{kept.key, old == start.end() ? "-" : old->second, kept.value};
        // An effect that the proof does not confirm is not shown, whatever a single trial measured.
        if (is_proven)
            row.push_back(kept.ratio          ? gain_text(*kept.ratio)
                          : kept.with.empty() ? "-"
                                              : "with " + kept.with);
        row.push_back(kept.reason);
        rows.push_back(row);
    }
    return rows;
}

std::string kept_text(const SearchAnswer& answer, const Assignment& start, bool is_proven) {
    if (answer.best.empty()) return "";
    std::vector<std::vector<std::string>> rows = kept_rows(answer, start, is_proven);
    TextTable table(rows[0]);
    for (std::size_t i = 1; i < rows.size(); ++i) table.add(rows[i]);
    return table.text();
}

std::string search_text(const SearchAnswer& answer) {
    std::string out;
    if (answer.upper_bound && answer.baseline) {
        double share = 100 * (*answer.upper_bound / answer.baseline->per_second - 1);
        out +=
            fmt::format("Without the loader: {} samples/s. {}\n", rate_text(*answer.upper_bound),
                        share >= 3 ? fmt::format("Faster loading can gain {:.0f} % at most.", share)
                                   : std::string("The loader is not the bottleneck."));
    }
    if (answer.batch && answer.batch->probes.size() > 1)
        out += "\nBatch size\n" + batch_text(*answer.batch);
    // By change: if a change was tried again because another one had moved the bottleneck, the last
    // trial counts.
    std::map<std::string, std::string> rejected;
    for (const Tried& tried : answer.trials) {
        if (tried.change.empty() || tried.cause == "batch size") continue;
        std::string what = change_text(tried.change);
        rejected.erase(what);
        bool is_trade = tried.outcome == TrialOutcome::ok && !tried.rate;  // a note mentions it
        if (tried.kept || is_trade) continue;
        rejected[what] = tried.outcome == TrialOutcome::ok
                             ? fmt::format("{}, {}", gain_text(tried.ratio),
                                           tried.ratio < 0.98 ? "slower" : "within the noise")
                             : fmt::format("{}{}{}", outcome_name(tried.outcome),
                                           tried.message.empty() ? "" : ": ", tried.message);
    }
    if (!rejected.empty()) out += "\nTried and not kept\n";
    for (const auto& [what, why] : rejected) out += fmt::format("  {}: {}\n", what, why);
    if (!answer.notes.empty()) out += "\n";
    for (const std::string& note : answer.notes) out += "Note: " + note + "\n";
    return out + fmt::format("The search ended: {}\n", answer.ended);
}

std::string proof_text(const Proof& proof) {
    auto side = [](const Measured& m) {
        return fmt::format("{} (n={}, {}..{})", rate_text(m.median), m.n, rate_text(m.low),
                           rate_text(m.high));
    };
    std::string run_longer =
        proof.longer.empty() ? "" : fmt::format(", run longer: --budget {}", proof.longer);
    if (proof.pairs.empty())
        return fmt::format("Verdict not proven: no pair of runs finished{}\n", run_longer);
    std::string out = fmt::format("Before  {} {}\nAfter   {} {}\n", side(proof.before), proof.unit,
                                  side(proof.after), proof.unit);
    if (proof.has_interval())
        out += fmt::format(
            "Verdict {}: {:.2f} times [{:.2f}, {:.2f}], 99 % interval of {} interleaved pairs\n",
            verdict_name(proof.verdict), proof.ratio, proof.interval_low, proof.interval_high,
            proof.pairs.size());
    else
        out +=
            fmt::format("Verdict not proven: {} pair{} of runs, {} needed{}\n", proof.pairs.size(),
                        proof.pairs.size() == 1 ? "" : "s", kProofPairs, run_longer);
    if (!proof.loss_guard.empty()) out += "Loss    " + proof.loss_guard + "\n";
    if (!proof.complete && proof.longer.empty())
        out += "The proof is not complete: a run failed or it was stopped.\n";
    return out;
}

}  // namespace saturate
