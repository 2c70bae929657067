// SPDX-License-Identifier: Apache-2.0
// The rules of `optimize`, called by advise.cpp in this order: each builds on those before it.
#pragma once

#include "remedies/advisor.h"

namespace saturate {

// rules_device.cpp
[[nodiscard]] Precision best_precision(const Target& target);
void advise_model(Advisor& a);  // level model: where the card has room for one
void advise_precision(Advisor& a);
void advise_tf32(Advisor& a);
void advise_layout(Advisor& a);
void advise_compile(Advisor& a);
void advise_optimizer(Advisor& a);

// rules_loader.cpp
void advise_workers(Advisor& a);
void advise_loader(Advisor& a);

// rules_batch.cpp
void advise_batch(Advisor& a);
void advise_learning_rate(Advisor& a);
void advise_clipping(Advisor& a);
void advise_intervals(Advisor& a);
void warn_of_contradictions(Advisor& a);

}  // namespace saturate
