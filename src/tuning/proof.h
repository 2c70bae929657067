// SPDX-License-Identifier: Apache-2.0
// Before and after, in turns, until it is known which is faster or that no difference can be seen.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace saturate {

enum class Verdict { faster, slower, no_difference, not_proven };
[[nodiscard]] std::string_view verdict_name(Verdict verdict);  // "no difference seen"

constexpr int kProofPairs = 5;  // fewer have no interval and prove nothing

struct Measured {
    double median = 0, low = 0, high = 0;
    int n = 0;
};
[[nodiscard]] Measured measured(std::vector<double> values);

struct ProofSettings {
    int pairs_min = kProofPairs;
    int pairs_max = 15;
    // Pairs are added until half the interval is this narrow: a share of the ratio, or of the gain.
    double width = 0.03;
    double width_of_gain = 0.2;
    std::string unit = "samples/s";
    std::function<bool()> is_time_up;  // asked once `pairs_min` are there; may be null
};

struct Proof {
    Measured before, after;
    std::string unit;
    std::vector<std::pair<double, double>> pairs;
    double ratio = 1;  // after over before: the geometric mean of the pairs
    double interval_low = 1, interval_high = 1;  // of the ratio, 99 %; of five pairs or more
    Verdict verdict = Verdict::not_proven;
    std::string loss_guard;  // one line; empty: not asked
    bool complete = true;    // false: interrupted, or a run failed; what is there counts
    std::string longer;      // "12m": the budget that a proof would take; empty: time was enough

    [[nodiscard]] bool has_interval() const { return pairs.size() >= kProofPairs; }
};

// Runs in the order A B B A A B B A ..., so that a machine that gets slower hurts both alike. A run
// that gives nothing ends the proof with what there is. `is_stopped` is asked between runs.
[[nodiscard]] Proof prove(const ProofSettings& settings,
                          const std::function<std::optional<double>()>& before,
                          const std::function<std::optional<double>()>& after,
                          const std::function<bool()>& is_stopped = nullptr);

// Ratio, interval and verdict of the pairs; also for runs that were made elsewhere.
void judge(Proof& proof);

// docs/json.md, section proof.
[[nodiscard]] Json to_json(const Proof& proof);

}  // namespace saturate
