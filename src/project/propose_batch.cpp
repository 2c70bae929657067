// SPDX-License-Identifier: Apache-2.0
#include "project/propose_batch.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "project/planner.h"
#include "remedies/learning_rate.h"

namespace saturate {

namespace {

bool trains(const ProjectFacts& facts, const FactCall& call) {
    if (call.kind != "loader" || call.short_callee() != "DataLoader") return false;
    return call.role == "train" || std::ranges::any_of(facts.loops, [&](const FactLoop& loop) {
               return loop.loader == call.id;
           });
}

struct BatchCalls {
    const FactCall* loader = nullptr;
    const FactCall* optimizer = nullptr;
    std::int64_t size = 0;
    double rate = 0;
    std::string why;
};

// The trap that rules out another batch size for this loader or for code that counts its batches
// (schedules, samplers). Traps of other loaders only do not count.
const FactTrap* trap_of(const ProjectFacts& facts, int loader) {
    auto is_other_loader = [&](int id) {
        auto call = std::ranges::find(facts.calls, id, &FactCall::id);
        return id != loader && call != facts.calls.end() && call->kind == "loader";
    };
    for (const FactTrap& trap : facts.traps) {
        bool forbids = std::ranges::find(trap.forbids, "batch_size") != trap.forbids.end();
        bool is_others = !trap.calls.empty() && std::ranges::all_of(trap.calls, is_other_loader);
        if (forbids && !is_others) return &trap;
    }
    return nullptr;
}

BatchCalls find(Planner& planner) {
    BatchCalls out;
    for (const FactCall& call : planner.facts.calls) {
        if (trains(planner.facts, call)) {
            if (out.loader) return {.why = "several loaders feed the training"};
            out.loader = &call;
        }
        if (call.kind == "optimizer") {
            if (out.optimizer) return {.why = "there are several optimizers"};
            out.optimizer = &call;
        }
    }
    if (!out.loader) return {.why = "the loader that feeds the training was not found"};
    if (!out.optimizer)
        return {.why = "the optimizer was not found, and its learning rate has to follow"};
    if (const FactTrap* trap = trap_of(planner.facts, out.loader->id)) return {.why = trap->why};
    KnownValue size = planner.value(*out.loader, "batch_size");
    KnownValue rate = planner.value(*out.optimizer, "lr");
    out.size = size.literal.integer().value_or(0);
    out.rate = rate.literal.number().value_or(0);
    if (out.size <= 0) return {.why = "the sources do not show where the batch size comes from"};
    if (out.rate <= 0)
        return {
            .why =
                "the sources do not show where the learning rate comes from, and it has to follow"};
    return out;
}

std::variant<FixProposal, std::string> make(Planner& planner, const BatchCalls& found,
                                            std::int64_t size) {
    auto change = planner.change(*found.loader, "batch_size", Json(size));
    auto* done = std::get_if<ValueChange>(&change);
    if (!done) return std::get<std::string>(change);
    LearningRateRule rule = rule_for(lower(std::string(found.optimizer->short_callee())));
    double rate = scaled_learning_rate(
        found.rate, static_cast<double>(size) / static_cast<double>(found.size), rule);
    std::string follows_how =
        rule == LearningRateRule::none
            ? fmt::format("the learning rate stays: no rule is known for {}",
                          found.optimizer->short_callee())
            : fmt::format("the learning rate follows by the {} rule: {:.6g} -> {:.3g}",
                          rule_name(rule), found.rate, rate);
    FixProposal out{.setting = "batch_size",
                    .at = done->at,
                    .before = done->before,
                    .after = done->after,
                    .reason = "larger batches keep the device busier; " + follows_how,
                    .expected = "fewer, larger steps",
                    .edits = done->edits,
                    .apply = "",
                    .call = found.loader->id};
    out.id = out.setting;
    out.level = Level::training;
    if (size == found.size || rule == LearningRateRule::none) return out;
    auto follows =
        planner.change(*found.optimizer, "lr", Json::parse(fmt::format("{:.3g}", rate), "rate"));
    auto* with = std::get_if<ValueChange>(&follows);
    if (!with)
        return fmt::format("the learning rate has to follow: {}", std::get<std::string>(follows));
    out.edits.insert(out.edits.end(), with->edits.begin(), with->edits.end());
    return out;
}

}  // namespace

BatchPlace batch_place(const ProjectFacts& facts, const FixQuestion& question) {
    FixMachine machine;
    Planner planner(facts, machine, question);
    BatchCalls found = find(planner);
    if (!found.why.empty()) return {0, found.why};
    auto made = make(planner, found, 2 * found.size);
    if (auto* why = std::get_if<std::string>(&made)) return {0, *why};
    return {found.size, ""};
}

std::optional<FixProposal> batch_proposal(const ProjectFacts& facts, const FixQuestion& question,
                                          std::int64_t size) {
    FixMachine machine;
    Planner planner(facts, machine, question);
    BatchCalls found = find(planner);
    if (!found.why.empty()) return std::nullopt;
    auto made = make(planner, found, size);
    auto* proposal = std::get_if<FixProposal>(&made);
    return proposal ? std::optional(*proposal) : std::nullopt;
}

}  // namespace saturate
