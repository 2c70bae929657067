// SPDX-License-Identifier: Apache-2.0
#include "tuning/rate.h"

#include <algorithm>
#include <vector>

namespace saturate {

namespace {

constexpr std::int64_t kLeastSteady = 4;  // steps
constexpr std::int64_t kLeastLong = 2;  // if a step takes kLongSeconds: chance evens out within it
constexpr double kLongSeconds = 0.5;
constexpr std::size_t kBlocks = 16;

double share_of(const StepSums& sums, StepPart part) {
    return sums.percent(part).value_or(0) / 100;
}

}  // namespace

std::optional<Rate> rate_of(const Account& account) {
    const StepSums& steady = account.steady;
    auto per_second = steady.samples_per_second();
    bool is_long = steady.step_seconds() >= kLongSeconds;
    if (!per_second || steady.steps < (is_long ? kLeastLong : kLeastSteady)) return std::nullopt;
    Rate rate{.per_second = *per_second,
              .steps = steady.steps,
              .dropped = account.warm_up,
              .step_seconds = steady.step_seconds(),
              .input_wait_share = share_of(steady, StepPart::input_wait),
              .copy_share = share_of(steady, StepPart::copy),
              .log_share = share_of(steady, StepPart::log)};
    if (steady.told(StepPart::device_busy) == steady.steps)
        rate.device_busy_share = share_of(steady, StepPart::device_busy);

    std::size_t count = account.parts.size();
    std::size_t blocks = std::min(kBlocks, is_long ? count : std::max<std::size_t>(1, count / 2));
    auto between = [&](std::size_t begin, std::size_t end) {
        StepSums sums;
        for (std::size_t i = begin * count / blocks; i < end * count / blocks; ++i)
            sums.add(account.parts[i]);
        return sums.samples_per_second().value_or(*per_second);
    };
    // Each window is half of the steps. The host runs ahead of the device and then waits for it,
    // and only many steps even that out.
    std::size_t half = std::max<std::size_t>(1, blocks / 2);
    std::vector<double> rates;
    for (std::size_t b = 0; b + half <= blocks; ++b) rates.push_back(between(b, b + half));
    rate.n = static_cast<int>(rates.size());
    rate.low = *std::ranges::min_element(rates);
    rate.high = *std::ranges::max_element(rates);
    std::size_t third = std::max<std::size_t>(1, blocks / 3);
    rate.trend = between(0, third) / between(blocks - third, blocks) - 1;
    return rate;
}

std::optional<Rate> rate_of(std::span<const StepRecord> steps) {
    return rate_of(account_of(steps));
}

bool is_known_well(const Rate& rate) { return rate.n >= 6 && rate.spread() <= 0.03; }

bool is_hopeless(const Rate& rate, double least) { return rate.n >= 4 && rate.high < least; }

}  // namespace saturate
