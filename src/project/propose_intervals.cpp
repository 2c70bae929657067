// SPDX-License-Identifier: Apache-2.0
// Proposes fewer evaluations and checkpoints if a setting holds their interval.
#include <fmt/format.h>

#include "project/planner.h"

namespace saturate {

namespace {

constexpr std::int64_t kFactor = 5;

void propose_interval(Planner& planner, const FactCall& call, const char* setting,
                      const char* what) {
    if (call.interval_sources.empty()) return;
    const FactDeclaration* declared =
        planner.facts.declaration(call.interval_sources[0].declaration);
    auto now = declared && declared->value ? declared->value->literal.integer() : std::nullopt;
    if (!now || *now != 1) return;
    if (planner.is_forbidden(*declared, setting, -1)) return;
    auto change = planner.change_declared(call.interval_sources, Json(kFactor * *now));
    auto* done = std::get_if<ValueChange>(&change);
    if (!done) {
        planner.refuse(*declared, setting, std::get<std::string>(change));
        return;
    }
    planner.propose({.setting = setting,
                     .at = done->at,
                     .before = done->before,
                     .after = done->after,
                     .reason = fmt::format("training stops for {} after every epoch", what),
                     .expected = "a fifth of those pauses; you see results less often",
                     .edits = done->edits,
                     .call = call.id});
}

}  // namespace

void propose_intervals(Planner& planner) {
    for (const FactCall& call : planner.facts.calls) {
        if (call.kind == "evaluation")
            propose_interval(planner, call, "eval_interval", "an evaluation");
        if (call.kind == "checkpoint")
            propose_interval(planner, call, "checkpoint_interval", "a checkpoint");
    }
}

}  // namespace saturate
