// SPDX-License-Identifier: Apache-2.0
// Mixed precision around forward pass and loss, TF32, and cuDNN's choice of kernels.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "project/planner.h"

namespace saturate {

namespace {

bool has_call(const ProjectFacts& facts, std::string_view kind) {
    return std::ranges::any_of(facts.calls,
                               [&](const FactCall& call) { return call.kind == kind; });
}

const FactCall* flag_of(const ProjectFacts& facts, std::initializer_list<std::string_view> names) {
    for (const FactCall& call : facts.calls) {
        if (call.kind != "flag") continue;
        for (std::string_view name : names)
            if (call.flag == name || call.flag.ends_with(fmt::format(".{}", name))) return &call;
    }
    return nullptr;
}

// Mixed precision is in the source and a setting keeps it off.
void propose_switch(Planner& planner) {
    static constexpr std::array<std::string_view, 9> kNames = {
        "amp",  "use_amp",  "fp16",    "use_fp16", "mixed_precision", "use_mixed_precision",
        "bf16", "use_bf16", "autocast"};
    for (const FactDeclaration& declared : planner.facts.declarations) {
        if (std::ranges::find(kNames, lower(declared.key)) == kNames.end()) continue;
        if (declared.reads == 0) continue;
        bool is_off = declared.value ? declared.value->literal.boolean() == false
                                     : declared.kind == "option" && !declared.given;
        if (!is_off) continue;
        if (planner.is_forbidden(declared, "precision", -1)) continue;
        auto change = planner.change_declared({{declared.id, Certainty::certain}}, Json(true));
        auto* done = std::get_if<ValueChange>(&change);
        if (!done) {
            planner.refuse(declared, "precision", std::get<std::string>(change));
            continue;
        }
        planner.propose({.setting = "precision",
                         .at = done->at,
                         .before = done->before,
                         .after = done->after,
                         .reason = fmt::format("your script has mixed precision, and {} keeps it "
                                               "off",
                                               declared.setting),
                         .edits = done->edits});
    }
}

void propose_autocast(Planner& planner) {
    const ProjectFacts& facts = planner.facts;
    if (has_call(facts, "autocast") || has_call(facts, "scaler")) {
        propose_switch(planner);
        return;
    }
    if (has_call(facts, "accelerator") || has_call(facts, "trainer")) return;
    for (const FactLoop& loop : facts.loops) {
        if (loop.kind == "training_step") continue;
        if (planner.is_forbidden(loop, "precision", -1)) continue;
        if (!loop.compute) {
            planner.refuse(loop, "precision",
                           fmt::format("where autocast would go is for a person to say: {}",
                                       loop.compute_why.empty() ? "the forward pass is not seen"
                                                                : loop.compute_why));
            continue;
        }
        if (!planner.machine.has_bf16) {
            planner.refuse(loop, "precision",
                           "this GPU has no bf16, and fp16 needs a gradient scaler as well");
            continue;
        }
        std::vector<FileEdit> edits;
        auto torch = planner.torch_in(loop.file, edits);
        if (!torch) continue;
        std::string header = fmt::format(
            "with {0}.autocast(\"cuda\", dtype={0}.bfloat16, enabled={0}.cuda.is_available()):",
            *torch);
        edits.push_back(
            {loop.file, SourceEdit{SourceEdit::Kind::wrap, *loop.compute, "", header}, {}});
        SourcePlace at = loop.forward.value_or(SourcePlace(loop));
        planner.propose({.setting = "precision",
                         .at = at,
                         .after = "bf16",
                         .reason = "forward pass and loss run at 32 bits; bf16 needs no gradient "
                                   "scaler",
                         .edits = edits});
    }
}

void propose_line(Planner& planner, const char* setting, const std::string& line,
                  const std::string& after, const std::string& reason) {
    const FactSource* script = planner.facts.file(planner.facts.script);
    if (!script || !script->after_imports) return;
    std::vector<FileEdit> edits;
    auto torch = planner.torch_in(script->file, edits);
    if (!torch) return;
    SourcePlace at{.file = script->file, .span = *script->after_imports};
    edits.push_back({script->file,
                     SourceEdit{SourceEdit::Kind::after, *script->after_imports, "",
                                fmt::format("{}.{}", *torch, line)},
                     {}});
    planner.propose(
        {.setting = setting, .at = at, .after = after, .reason = reason, .edits = edits});
}

void propose_flags(Planner& planner) {
    const ProjectFacts& facts = planner.facts;
    if (facts.loops.empty()) return;
    const FactCall* deterministic =
        flag_of(facts, {"deterministic", "use_deterministic_algorithms"});
    if (!flag_of(facts, {"allow_tf32", "float32_matmul_precision"})) {
        propose_line(planner, "tf32", "set_float32_matmul_precision(\"high\")", "high",
                     "32-bit matrix products run without tensor cores");
    }
    const FactCall* benchmark = flag_of(facts, {"benchmark"});
    if (benchmark && benchmark->flag_value == "False")
        planner.refuse(*benchmark, "cudnn_benchmark", "your script turns it off on purpose");
    else if (!benchmark && deterministic && deterministic->flag_value != "False")
        planner.refuse(*deterministic, "cudnn_benchmark",
                       "your script asks for deterministic kernels");
    else if (!benchmark) {
        SourcePlace at = facts.loops[0];
        if (planner.is_forbidden(at, "cudnn_benchmark", -1)) return;
        propose_line(planner, "cudnn_benchmark", "backends.cudnn.benchmark = True", "True",
                     "cuDNN takes its first guess for each convolution");
    }
}

}  // namespace

void propose_precision(Planner& planner) {
    propose_autocast(planner);
    propose_flags(planner);
}

void propose_model(Planner& planner) {
    const ProjectFacts& facts = planner.facts;
    if (has_call(facts, "compile")) return;
    for (const FactLoop& loop : facts.loops) {
        if (!loop.model_at || loop.model.empty()) continue;
        if (planner.is_forbidden(*loop.model_at, "compile", -1)) continue;
        if (has_call(facts, "parallel")) {
            planner.refuse(*loop.model_at, "compile", "the model is wrapped in DataParallel");
            continue;
        }
        SourceEdit edit{SourceEdit::Kind::after, loop.model_at->span, "",
                        loop.model + ".compile()"};
        planner.propose({.setting = "compile",
                         .at = *loop.model_at,
                         .after = edit.text,
                         .reason = "each layer starts its own kernels from Python; compiled in "
                                   "place (PyTorch 2.2 or newer), so that checkpoints keep their "
                                   "names",
                         .edits = {{loop.model_at->file, edit, {}}}});
    }
}

}  // namespace saturate
