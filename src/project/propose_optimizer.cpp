// SPDX-License-Identifier: Apache-2.0
// Proposes fused optimizers (one kernel for all parameters), and dropping gradients instead of
// filling them with zeros.
#include <fmt/format.h>

#include "project/planner.h"

namespace saturate {

namespace {

std::string why_not_fused(const FactCall& call) {
    std::string name(call.short_callee());
    if (name == "*") return "the class is picked by its name when the program runs";
    bool has_namesake = name == "Adam" || name == "AdamW" || name == "SGD" || name == "Adagrad";
    if (has_namesake && !call.callee.starts_with("torch."))
        return fmt::format("{} has no fused form; torch.optim.{} has one", call.callee, name);
    return fmt::format("{} has no fused form", name);
}

void propose_fused(Planner& planner, const FactCall& call) {
    for (const char* name : {"fused", "foreach", "capturable", "differentiable"})
        if (call.argument(name)) return;
    if (call.fused_known == false) {
        planner.refuse(call, "fused_optimizer", why_not_fused(call));
        return;
    }
    if (planner.is_forbidden(call, "fused_optimizer", call.id)) return;
    if (call.groups == "per_parameter") {
        planner.refuse(call, "fused_optimizer",
                       "each parameter is in its own group: fused would run once per parameter");
        return;
    }
    if (!call.fused_known.value_or(false)) return;
    if (call.config) {
        planner.refuse(call, "fused_optimizer",
                       "a configuration cannot ask whether there is a GPU; if you always train on "
                       "one, add fused: true here");
        return;
    }
    std::vector<FileEdit> imports;
    auto torch = planner.torch_in(call.file, imports);
    if (!torch) return;
    auto change =
        planner.add_expression(call, "fused", fmt::format("{}.cuda.is_available()", *torch));
    auto* done = std::get_if<ValueChange>(&change);
    if (!done) {
        planner.refuse(call, "fused_optimizer", std::get<std::string>(change));
        return;
    }
    done->edits.insert(done->edits.end(), imports.begin(), imports.end());
    std::string reason =
        call.moved == false
            ? fmt::format(
                  "{} updates the parameters in many small kernels; PyTorch before 2.4 "
                  "needs the model on the GPU before this line, which was not seen",
                  call.short_callee())
            : fmt::format("{} updates the parameters in many small kernels", call.short_callee());
    planner.propose({.setting = "fused_optimizer",
                     .at = done->at,
                     .after = done->after,
                     .reason = reason,
                     .edits = done->edits,
                     .call = call.id});
}

void propose_set_to_none(Planner& planner, const FactCall& call) {
    const FactArgument* argument = call.argument("set_to_none");
    if (!argument || argument->literal.boolean() != false) return;
    auto change = planner.change(call, "set_to_none", Json(true));
    auto* done = std::get_if<ValueChange>(&change);
    if (!done) return;
    planner.propose({.setting = "set_to_none",
                     .at = done->at,
                     .before = done->before,
                     .after = done->after,
                     .reason = "gradients are filled with zeros and added to in every step",
                     .edits = done->edits,
                     .call = call.id});
}

}  // namespace

void propose_optimizer(Planner& planner) {
    for (const FactCall& call : planner.facts.calls) {
        if (call.kind == "optimizer") propose_fused(planner, call);
        if (call.kind == "zero_grad" && call.in_step) propose_set_to_none(planner, call);
    }
}

}  // namespace saturate
