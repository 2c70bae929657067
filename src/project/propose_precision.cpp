// SPDX-License-Identifier: Apache-2.0
// Proposes mixed precision around forward pass and loss, TF32, and cuDNN's choice of kernels.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

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

// The source has the feature and this setting switches it off: proposes to switch it on.
void propose_switch(Planner& planner, const char* setting, const FactDeclaration& declared,
                    const std::string& reason) {
    if (planner.is_forbidden(declared, setting, -1)) return;
    auto change = planner.change_declared({{declared.id, Certainty::certain}}, Json(true));
    auto* done = std::get_if<ValueChange>(&change);
    if (!done) {
        planner.refuse(declared, setting, std::get<std::string>(change));
        return;
    }
    planner.propose({.setting = setting,
                     .at = done->at,
                     .before = done->before,
                     .after = done->after,
                     .reason = reason,
                     .edits = done->edits});
}

std::string has_precision(const FactDeclaration& declared) {
    return fmt::format("your script has mixed precision, but {} is off", declared.setting);
}

std::string has_compile(const FactDeclaration& declared) {
    return fmt::format("your script has torch.compile(), but {} is off", declared.setting);
}

// Switches on code below `if args.amp:`, if one setting does it. Returns false if the source has no
// such code.
bool propose_left_out(Planner& planner, std::string_view kind, const char* setting,
                      std::string (*reason)(const FactDeclaration&)) {
    for (const FactAlternative& other : planner.facts.alternatives) {
        if (other.kind != kind) continue;
        if (const FactDeclaration* declared = planner.facts.declaration(other.declaration))
            propose_switch(planner, setting, *declared, reason(*declared));
        else
            planner.refuse(other, setting, "your script has it, but its settings leave it out");
        return true;
    }
    return false;
}

bool is_off(const FactDeclaration& declared) {
    return declared.value ? declared.value->literal.boolean() == false
                          : declared.kind == "option" && !declared.given;
}

// autocast(enabled=args.amp): recognised by what flows into it, or by the name of the setting.
void propose_precision_switch(Planner& planner) {
    static constexpr std::array<std::string_view, 9> kNames = {
        "amp",  "use_amp",  "fp16",    "use_fp16", "mixed_precision", "use_mixed_precision",
        "bf16", "use_bf16", "autocast"};
    for (const FactCall& call : planner.facts.calls) {
        const FactArgument* enabled = call.kind == "autocast" ? call.argument("enabled") : nullptr;
        if (!enabled || enabled->sources.size() != 1) continue;
        const FlowSource& source = enabled->sources[0];
        const FactDeclaration* declared = planner.facts.declaration(source.declaration);
        if (!declared || source.is_derived || source.certainty != Certainty::certain) continue;
        if (!is_off(*declared)) continue;
        propose_switch(planner, "precision", *declared, has_precision(*declared));
        return;
    }
    for (const FactDeclaration& declared : planner.facts.declarations) {
        if (std::ranges::find(kNames, lower(declared.key)) == kNames.end()) continue;
        if (declared.reads == 0 || declared.is_in_branch) continue;
        if (is_off(declared))
            propose_switch(planner, "precision", declared, has_precision(declared));
    }
}

constexpr const char* kScaler = "grad_scaler";

// Adds a gradient scaler, because gradients of fp16 may vanish: backward(), step() and update() go
// through it, and it is made once per file. Needs both calls as plain statements in the step and no
// code that looks at the scaled gradients. Returns why not, or "" if the edits were added.
std::string add_scaler(const Planner& planner, const FactLoop& loop, const std::string& torch,
                       std::vector<FileEdit>& edits) {
    const ProjectFacts& facts = planner.facts;
    const FactCall* backward = loop.backward ? facts.call(*loop.backward) : nullptr;
    const FactCall* step = loop.step ? facts.call(*loop.step) : nullptr;
    const FactSource* source = facts.file(loop.file);
    auto is_plain = [&](const FactCall* call, std::string_view end) {
        if (!call || call->file != loop.file || !call->statement || !call->arguments.empty())
            return false;
        std::string text = planner.text(call->file, *call->statement);
        return text.ends_with(end) && text.find_first_of(" \n=(") == text.size() - 2;
    };
    auto count = [&](std::string_view kind) {
        return std::ranges::count_if(facts.calls, [&](const FactCall& call) {
            return call.kind == kind && call.in_step == loop.id;
        });
    };
    if (!source || !source->after_imports) return "there is no simple place to create one";
    if (!is_plain(backward, ".backward()") || count("backward") != 1)
        return "backward() is not a single plain call in the step";
    if (!is_plain(step, ".step()") || count("step") != 1)
        return "optimizer.step() is not a single plain call in the step";
    std::string body = planner.text(loop.file, loop.span);
    for (const char* word : {"clip_grad", ".grad", "no_sync", kScaler})
        if (body.find(word) != std::string::npos)
            return fmt::format("the step uses {} on the gradients", word);
    auto without = [](const std::string& text, std::string_view end) {
        return text.substr(0, text.size() - end.size());
    };
    std::string loss = without(planner.text(loop.file, *backward->statement), ".backward()");
    std::string optimizer = without(planner.text(loop.file, *step->statement), ".step()");
    auto add = [&](SourceEdit::Kind kind, ByteSpan span, std::string text) {
        edits.push_back({loop.file, SourceEdit{kind, span, "", std::move(text)}, {}});
    };
    using enum SourceEdit::Kind;
    add(after, *source->after_imports,
        fmt::format("{1} = {0}.amp.GradScaler(\"cuda\", enabled={0}.cuda.is_available())", torch,
                    kScaler));
    add(expression, *backward->statement, fmt::format("{}.scale({}).backward()", kScaler, loss));
    add(expression, *step->statement, fmt::format("{}.step({})", kScaler, optimizer));
    add(after, *step->statement, fmt::format("{}.update()", kScaler));
    return "";
}

void propose_autocast(Planner& planner) {
    const ProjectFacts& facts = planner.facts;
    if (has_call(facts, "autocast") || has_call(facts, "scaler")) {
        propose_precision_switch(planner);
        return;
    }
    if (propose_left_out(planner, "autocast", "precision", has_precision)) return;
    if (has_call(facts, "accelerator") || has_call(facts, "trainer")) return;
    for (const FactLoop& loop : facts.loops) {
        if (loop.kind == "training_step") continue;
        if (planner.is_forbidden(loop, "precision", -1)) continue;
        if (!loop.compute) {
            planner.refuse(loop, "precision",
                           fmt::format("where autocast belongs is for you to decide: {}",
                                       loop.compute_why.empty() ? "the forward pass was not found"
                                                                : loop.compute_why));
            continue;
        }
        std::vector<FileEdit> edits;
        auto torch = planner.torch_in(loop.file, edits);
        if (!torch) continue;
        bool is_half = !planner.machine.has_bf16;
        if (std::string why = is_half ? add_scaler(planner, loop, *torch, edits) : "";
            !why.empty()) {
            planner.refuse(
                loop, "precision",
                fmt::format("this GPU has no bf16, fp16 needs a gradient scaler, and {}", why));
            continue;
        }
        std::string header = fmt::format(
            "with {0}.autocast(\"cuda\", dtype={0}.{1}, enabled={0}.cuda.is_available()):", *torch,
            is_half ? "float16" : "bfloat16");
        edits.push_back(
            {loop.file, SourceEdit{SourceEdit::Kind::wrap, *loop.compute, "", header}, {}});
        SourcePlace at = loop.forward.value_or(SourcePlace(loop));
        planner.propose({.setting = "precision",
                         .at = at,
                         .after = is_half ? "fp16" : "bf16",
                         .reason = is_half ? "forward pass and loss run in fp32; this GPU has no "
                                             "bf16, so fp16 with a gradient scaler"
                                           : "forward pass and loss run in fp32; bf16 needs no "
                                             "gradient scaler",
                         .edits = edits,
                         .loop = loop.id});
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

// Anomaly detection left on after debugging: it records and checks each operation.
void report_anomaly_checks(Planner& planner) {
    const FactCall* call = flag_of(planner.facts, {"detect_anomaly"});
    if (!call || call->flag_value == "False") return;
    planner.refuse(*call, "anomaly detection",
                   "it checks every operation for NaN and makes each step much slower: turn it off "
                   "unless you are looking for one");
}

void propose_flags(Planner& planner) {
    const ProjectFacts& facts = planner.facts;
    if (facts.loops.empty()) return;
    report_anomaly_checks(planner);
    const FactCall* deterministic =
        flag_of(facts, {"deterministic", "use_deterministic_algorithms"});
    if (!flag_of(facts, {"allow_tf32", "float32_matmul_precision"}) &&
        !planner.is_forbidden(facts.loops[0], "tf32", -1)) {
        propose_line(planner, "tf32", "set_float32_matmul_precision(\"high\")", "high",
                     "fp32 matrix products do not use the tensor cores");
    }
    const FactCall* benchmark = flag_of(facts, {"benchmark"});
    if (benchmark && benchmark->flag_value == "False")
        planner.refuse(*benchmark, "cudnn_benchmark", "your script turns it off on purpose");
    else if (!benchmark && deterministic && deterministic->flag_value != "False")
        planner.refuse(*deterministic, "cudnn_benchmark",
                       "your script asks for deterministic kernels");
    else if (!benchmark) {
        SourcePlace at = facts.loops[0];
        if (planner.is_forbidden(at, "cudnn_benchmark", -1) || !facts.convolves) return;
        propose_line(planner, "cudnn_benchmark", "backends.cudnn.benchmark = True", "True",
                     "cuDNN picks its convolution algorithms without timing them");
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
    if (propose_left_out(planner, "compile", "compile", has_compile)) return;
    auto parallel = std::ranges::find(facts.calls, "parallel", &FactCall::kind);
    std::set<std::string> done;  // one model may be trained by several loops
    for (const FactLoop& loop : facts.loops) {
        if (!loop.model_at || loop.model.empty()) continue;
        if (!done.insert(loop.model_at->place().text()).second) continue;
        if (planner.is_forbidden(*loop.model_at, "compile", -1)) continue;
        if (parallel != facts.calls.end()) {
            planner.refuse(*loop.model_at, "compile",
                           fmt::format("the model is wrapped in {}", parallel->short_callee()));
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
                         .edits = {{loop.model_at->file, edit, {}}},
                         .loop = loop.id});
    }
}

}  // namespace saturate
