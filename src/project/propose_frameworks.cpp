// SPDX-License-Identifier: Apache-2.0
// Proposals for scripts whose framework has the loop: arguments of Lightning's and Hugging Face's
// trainers.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "project/planner.h"

namespace saturate {

namespace {

void set_keyword(Planner& planner, const FactCall& call, const std::string& keyword,
                 const std::string& text, FixProposal proposal) {
    if (planner.value(call, keyword).state != KnownValue::State::absent) return;
    if (planner.is_forbidden(call, proposal.setting, call.id)) return;
    auto change = planner.add_expression(call, keyword, text);
    auto* done = std::get_if<ValueChange>(&change);
    if (!done) {
        planner.refuse(call, proposal.setting, std::get<std::string>(change));
        return;
    }
    proposal.at = done->at;
    proposal.after = done->after;
    proposal.edits.insert(proposal.edits.begin(), done->edits.begin(), done->edits.end());
    proposal.call = call.id;
    planner.propose(std::move(proposal));
}

// Arguments of the Trainer that Lightning 2.0 removed. A project with one of them uses an older
// release, which does not know "bf16-mixed".
// clang-format off
constexpr std::array<std::string_view, 21> kBeforeTwo = {
    "gpus", "tpu_cores", "ipus", "num_processes", "distributed_backend",
    "amp_backend", "amp_level", "use_amp", "max_nb_epochs", "nb_gpu_nodes",
    "checkpoint_callback", "early_stop_callback", "progress_bar_refresh_rate", "weights_summary", "automatic_optimization",
    "auto_scale_batch_size", "auto_lr_find", "resume_from_checkpoint", "flush_logs_every_n_steps", "auto_select_gpus",
    "replace_sampler_ddp"};
// clang-format on

void propose_lightning(Planner& planner, const FactCall& call) {
    for (std::string_view name : kBeforeTwo) {
        // Also Trainer(**config["trainer"]).
        if (!call.argument(name) && !call.spread_key(name)) continue;
        planner.refuse(call, "precision",
                       fmt::format("Lightning 2.0 removed {}=, so this project uses an older "
                                   "version, with other values for precision",
                                   name));
        return;
    }
    set_keyword(planner, call, "precision", "\"bf16-mixed\"",
                {.setting = "precision",
                 .reason = "the trainer runs in fp32, its default",
                 .expected = "matrix products in 16 bits (Lightning 2.0 or newer)"});
}

void propose_transformers(Planner& planner, const FactCall& call) {
    int workers = planner.machine.workers;
    set_keyword(planner, call, "dataloader_num_workers", fmt::format("{}", workers),
                {.setting = "num_workers",
                 .reason = "the trainer loads every batch in the training process, its default",
                 .expected = "loading runs while the model trains"});
    for (const char* name : {"fp16", "bf16"}) {
        const FactArgument* given = call.argument(name);
        if (given && given->literal.boolean() != false) return;
    }
    std::vector<FileEdit> edits;
    auto torch = planner.torch_in(call.file, edits);
    if (!torch) return;
    set_keyword(planner, call, "bf16", fmt::format("{}.cuda.is_available()", *torch),
                {.setting = "precision",
                 .reason = "the trainer runs in fp32, its default",
                 .expected = "matrix products in 16 bits on an Ampere GPU or newer",
                 .edits = edits});
}

// HfArgumentParser reads the trainer's arguments from the command, so the user changes them there.
void advise_by_command(Planner& planner, const FactCall& trainer) {
    const ProjectFacts& facts = planner.facts;
    auto is_made = [](const FactCall& call) { return call.kind == "arguments"; };
    if (std::ranges::any_of(facts.calls, is_made)) return;
    auto has = [&](std::string_view flag) {
        return std::ranges::any_of(facts.arguments, [&](std::string_view word) {
            return word == flag || (word.starts_with(flag) && word[flag.size()] == '=');
        });
    };
    if (!has("--dataloader_num_workers"))
        planner.refuse(trainer, "num_workers",
                       fmt::format("the trainer loads every batch in the training process, its "
                                   "default: add --dataloader_num_workers {} to your command",
                                   planner.machine.workers));
    if (!has("--bf16") && !has("--fp16"))
        planner.refuse(trainer, "precision",
                       "the trainer runs in fp32, its default: add --bf16 True to your command");
}

}  // namespace

void propose_frameworks(Planner& planner) {
    for (const FactCall& call : planner.facts.calls) {
        if (call.kind == "trainer" && call.callee.find("lightning") != std::string::npos)
            propose_lightning(planner, call);
        if (call.kind == "arguments") propose_transformers(planner, call);
        if (call.kind == "trainer" && call.callee.starts_with("transformers."))
            advise_by_command(planner, call);
    }
}

}  // namespace saturate
