// SPDX-License-Identifier: Apache-2.0
#include "remedies/learning_rate.h"

#include <cmath>

namespace saturate {

LearningRateRule rule_for(const std::string& optimizer) {
    if (optimizer.starts_with("sgd")) return LearningRateRule::linear;
    if (optimizer.find("adam") != std::string::npos) return LearningRateRule::square_root;
    return LearningRateRule::none;
}

double scaled_learning_rate(double rate, double batch_ratio, LearningRateRule rule) {
    switch (rule) {
        case LearningRateRule::linear:
            return rate * batch_ratio;
        case LearningRateRule::square_root:
            return rate * std::sqrt(batch_ratio);
        case LearningRateRule::none:
            break;
    }
    return rate;
}

std::string_view rule_name(LearningRateRule rule) {
    constexpr std::string_view kNames[] = {"none", "square root", "linear"};
    return kNames[static_cast<int>(rule)];
}

}  // namespace saturate
