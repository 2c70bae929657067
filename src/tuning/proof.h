// SPDX-License-Identifier: Apache-2.0
// Runs a job before and after a change, in turns, until one is known to be faster or no difference
// can be seen.
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

constexpr int kProofPairs = 5;  // with fewer pairs there is no interval and no verdict

struct Measured {
    double median = 0, low = 0, high = 0;
    int n = 0;
};
[[nodiscard]] Measured measured(std::vector<double> values);

struct ProofSettings {
    int pairs_min = kProofPairs;
    int pairs_max = 15;
    // Adds pairs until half the interval is this narrow, as a share of the ratio or of the gain.
    double width = 0.03;
    double width_of_gain = 0.2;
    std::string unit = "samples/s";
    std::function<bool()> is_time_up;  // asked after `pairs_min` pairs; may be null
};

struct Proof {
    Measured before, after;
    std::string unit;
    std::vector<std::pair<double, double>> pairs;
    double ratio = 1;  // after over before: the geometric mean of the pairs
    double interval_low = 1, interval_high = 1;  // of the ratio, 99 %; needs five pairs
    Verdict verdict = Verdict::not_proven;
    std::string loss_guard;  // one line; empty: not compared
    bool complete = true;    // false: interrupted or a run failed; the pairs so far count
    std::string longer;      // "12m": the budget that a proof would take; empty: time was enough

    [[nodiscard]] bool has_interval() const { return pairs.size() >= kProofPairs; }
};

// Runs in the order A B B A A B B A ..., so that a machine that slows down affects both alike. A
// run without a result ends the proof with the pairs so far. Calls `is_stopped` between runs.
[[nodiscard]] Proof prove(const ProofSettings& settings,
                          const std::function<std::optional<double>()>& before,
                          const std::function<std::optional<double>()>& after,
                          const std::function<bool()>& is_stopped = nullptr);

// Computes ratio, interval and verdict from the pairs. Also used for runs that were made elsewhere.
void judge(Proof& proof);

// docs/json.md, section proof.
[[nodiscard]] Json to_json(const Proof& proof);

}  // namespace saturate
