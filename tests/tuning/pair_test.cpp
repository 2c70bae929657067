// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/text.h"
#include "tuning/search.h"

namespace saturate {
namespace {

// As it was measured on a CPU: a larger batch alone gains nothing, the other layout alone loses a
// quarter, both together gain.
double rate_of(const Assignment& settings) {
    bool is_large = *parse_number(value_of(settings, "batch_size")) >= 128;
    bool is_last = value_of(settings, "channels_last") == "true";
    if (is_last) return is_large ? 140 : 74;
    return 100;
}

SearchAnswer searched(bool on_cpu) {
    SearchSettings settings{
        .start = {{"batch_size", "16"}, {"num_workers", "0"}, {"channels_last", "false"}}};
    settings.facts.on_cpu = on_cpu;
    settings.facts.cores = 2;
    settings.facts.has_images = true;
    settings.facts.can_compile = false;
    settings.facts.can_cache = false;
    settings.batch.max = 1024;
    return search(settings, [&](const TrialRequest& request) {
        Assignment all = settings.start;
        for (const auto& [key, value] : request.settings) all[key] = value;
        double rate = rate_of(all);
        TrialResult out{.seconds = 1};
        out.samples_per_second =
            Rate{.per_second = rate, .low = 0.99 * rate, .high = 1.01 * rate, .n = 8, .steps = 100};
        out.samples_per_second->step_seconds = *parse_number(all.at("batch_size")) / rate;
        return out;
    });
}

TEST(PairTest, WhatGainsOnlyTogetherIsTriedTogether) {
    SearchAnswer answer = searched(true);
    EXPECT_EQ(answer.best["channels_last"], "true") << to_json(answer).pretty();
    EXPECT_EQ(answer.best["batch_size"], "128");
}

TEST(PairTest, OnAGpuEachIsTriedAlone) {
    for (const Tried& tried : searched(false).trials) EXPECT_LE(tried.change.size(), 1u);
}

}  // namespace
}  // namespace saturate
