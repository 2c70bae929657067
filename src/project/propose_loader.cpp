// SPDX-License-Identifier: Apache-2.0
// Proposes workers, pinned memory with asynchronous copies, and persistent workers.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "project/planner.h"

namespace saturate {

namespace {

// Loops that train from this loader.
std::vector<const FactLoop*> loops_of(const ProjectFacts& facts, const FactCall& loader) {
    std::vector<const FactLoop*> out;
    for (const FactLoop& loop : facts.loops)
        if (loop.loader == loader.id) out.push_back(&loop);
    return out;
}

bool trains(const Planner& planner, const FactCall& call) {
    if (call.kind != "loader" || call.short_callee() != "DataLoader") return false;
    const WatchedLoader* seen = planner.machine.watched.loader(call.id);
    if (seen && seen->is_own) return false;
    return call.role == "train" || !loops_of(planner.facts, call).empty() || (seen && seen->trains);
}

// True if the expression may be written twice: names, attributes, keys.
bool is_plain(const std::string& text) {
    return !text.empty() && text.find_first_not_of(
                                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_.[]'\"") == std::string::npos;
}

FixProposal make(const ValueChange& change, const FactCall& call, const char* setting,
                 std::string reason) {
    FixProposal out{.setting = setting,
                    .at = change.at,
                    .before = change.before,
                    .after = change.after,
                    .reason = std::move(reason),
                    .edits = change.edits,
                    .call = call.id};
    return out;
}

// Returns the change, or notes the refusal.
std::optional<ValueChange> taken(Planner& planner, const FactCall& call, const char* setting,
                                 std::variant<ValueChange, std::string> change) {
    if (auto* done = std::get_if<ValueChange>(&change)) return *done;
    planner.refuse(call, setting, std::get<std::string>(change));
    return std::nullopt;
}

void propose_workers(Planner& planner, const FactCall& loader) {
    KnownValue now = planner.value(loader, "num_workers");
    if (now.state == KnownValue::State::unknown) return;
    std::int64_t count = now.literal.integer().value_or(0);
    int fitting = planner.machine.workers;
    // If there are workers, only a watched run shows whether they are too few or too many.
    if ((count > 0 && !planner.machine.is_watched) || fitting < 1 || count == fitting) return;
    if (planner.is_forbidden(loader, "num_workers", loader.id)) return;
    auto change =
        taken(planner, loader, "num_workers", planner.change(loader, "num_workers", Json(fitting)));
    if (!change) return;
    std::string is_now = now.from.empty() ? "" : fmt::format("{} is {}: ", now.from, count);
    bool is_crowded = fitting == planner.machine.cores && count > fitting;
    planner.propose(make(
        *change, loader, "num_workers",
        is_crowded  ? fmt::format("{}more workers than cores take time from each other and "
                                   "from the training process",
                                  is_now)
        : count > 0 ? fmt::format("{}judging by the time a batch takes, {} fit", is_now, fitting)
        : planner.machine.waits_for_data
            ? fmt::format("{}the training process loads every batch itself, and the steps wait "
                          "for it",
                          is_now)
            : fmt::format("{}the training process loads every batch itself, between the steps",
                          is_now)));
}

void propose_persistent(Planner& planner, const FactCall& loader) {
    KnownValue now = planner.value(loader, "persistent_workers");
    KnownValue workers = planner.value(loader, "num_workers");
    bool will_have = planner.is_proposed("num_workers", loader.id);
    bool has = workers.literal.integer().value_or(0) > 0;
    bool may_have = workers.state == KnownValue::State::unknown && is_plain(workers.text);
    if (now.is(true) || now.state == KnownValue::State::unknown || !(has || will_have || may_have))
        return;
    // The loop of a framework iterates the loader once per epoch.
    bool has_epochs =
        std::ranges::any_of(loops_of(planner.facts, loader), [](const FactLoop* loop) {
            return !loop->epochs.empty() || loop->kind == "training_step" || loop->kind == "engine";
        });
    const WatchedLoader* seen = planner.machine.watched.loader(loader.id);
    if (!has_epochs && !(seen && seen->has_epochs)) return;
    if (loader.in_epoch) {
        planner.refuse(loader, "persistent_workers",
                       "the loader is created anew in every epoch, and its workers end with it");
        return;
    }
    if (planner.is_forbidden(loader, "persistent_workers", loader.id)) return;
    // PyTorch refuses the keyword with 0 workers, so it must be off if the number may be 0.
    const FactArgument* given = loader.argument("num_workers");
    bool is_spread = !given && workers.state != KnownValue::State::absent;  // **settings
    bool is_constant = !is_spread && (!given || !given->literal.is_null());
    if (!is_constant && !is_plain(workers.text)) return;
    const FactSpreadKey* key = loader.spread_key("num_workers");
    std::string text = is_constant ? "True"
                       : !is_spread ? fmt::format("{} > 0", workers.text)
                       : key && key->is_maybe
                           ? fmt::format("{}.get(\"num_workers\", 0) > 0", workers.text)
                           : fmt::format("{}[\"num_workers\"] > 0", workers.text);
    auto change = now.state == KnownValue::State::known
                      ? planner.change(loader, "persistent_workers", Json(true), text)
                      : planner.add_expression(loader, "persistent_workers", text);
    auto done = taken(planner, loader, "persistent_workers", change);
    if (!done) return;
    if (will_have && is_constant) {
        // PyTorch refuses the keyword without workers: both changes are made together or not at
        // all.
        for (const FileEdit& edit : planner.edits_of("num_workers", loader.id))
            done->edits.push_back(edit);
    }
    KnownValue shuffle = planner.value(loader, "shuffle");
    bool keeps_order = shuffle.is(false) ||
                       (shuffle.state == KnownValue::State::absent && !loader.argument("sampler") &&
                        !loader.argument("batch_sampler") && !loader.may_hold("sampler"));
    FixProposal proposal =
        make(*done, loader, "persistent_workers",
             keeps_order ? "the workers are restarted in every epoch"
                         : "the workers are restarted in every epoch; if they stay alive, a script "
                           "with a fixed seed shuffles differently from its second epoch on");
    // A run may end before its second epoch, and would show the same losses.
    if (!keeps_order) proposal.level = Level::numerics;
    // Where epochs are short, starting workers anew in each takes longer than they save.
    if (will_have && !has) proposal.room_for = "num_workers";
    planner.propose(std::move(proposal));
}

std::vector<const FactCall*> batch_copies(const ProjectFacts& facts, const FactCall& loader) {
    std::vector<const FactCall*> out;
    for (const FactLoop* loop : loops_of(facts, loader)) {
        for (const FactCall& call : facts.calls) {
            bool is_ours = call.kind == "copy" && call.in_step == loop->id && call.from_loader &&
                           call.when != "evaluation" && call.when != "interval";
            if (is_ours && !call.argument("non_blocking") && call.may_insert &&
                call.certainty != Certainty::unknown && !call.may_hold("non_blocking"))
                out.push_back(&call);
        }
    }
    return out;
}

void add_copies(FixProposal& proposal, const std::vector<const FactCall*>& copies) {
    for (const FactCall* copy : copies) {
        FileEdit edit{copy->file,
                      SourceEdit{SourceEdit::Kind::keyword, copy->span, "non_blocking", "True"},
                      {}};
        proposal.edits.push_back(edit);
    }
}

std::string lines_text(const std::vector<const FactCall*>& copies) {
    std::set<std::string> places;
    for (const FactCall* copy : copies) places.insert(copy->place().text());
    return fmt::format("{}", fmt::join(places, ", "));
}

void propose_pinned(Planner& planner, const FactCall& loader) {
    std::vector<const FactCall*> copies = batch_copies(planner.facts, loader);
    KnownValue now = planner.value(loader, "pin_memory");
    if (now.is(true)) {
        if (copies.empty()) return;
        FixProposal proposal{
            .setting = "non_blocking",
            .at = *copies[0],
            .after = "True",
            .reason = fmt::format("the loader pins its memory, but the copies still wait ({})",
                                  lines_text(copies)),
            .call = loader.id};
        add_copies(proposal, copies);
        planner.propose(std::move(proposal));
        return;
    }
    if (now.state == KnownValue::State::unknown) {
        for (const FactCall* copy : copies)
            planner.refuse(*copy, "non_blocking",
                           fmt::format("it only helps if the loader at {} pins its memory, and the "
                                       "sources do not show whether it does",
                                       loader.place().text()));
        return;
    }
    // Pinned memory needs a copy to a device in the step. Lightning makes that copy itself.
    bool has_copy =
        std::ranges::any_of(
            planner.facts.calls,
            [&](const FactCall& call) { return call.kind == "copy" && call.in_step; }) ||
        std::ranges::any_of(planner.facts.loops,
                            [](const FactLoop& loop) { return loop.kind == "training_step"; });
    if (!has_copy || planner.is_forbidden(loader, "pin_memory", loader.id)) return;
    auto change =
        taken(planner, loader, "pin_memory", planner.change(loader, "pin_memory", Json(true)));
    if (!change) return;
    FixProposal proposal = make(
        *change, loader, "pin_memory",
        copies.empty()
            ? std::string("batches are copied to the GPU through an extra buffer of the driver")
            : fmt::format("each step waits for its copy to the GPU; pinned memory and "
                          "non_blocking=True let them overlap ({})",
                          lines_text(copies)));
    add_copies(proposal, copies);
    planner.propose(std::move(proposal));
}

// The user chooses the batch size. Notes why it cannot simply be changed.
void refuse_batch_size(Planner& planner) {
    for (const FactTrap& trap : planner.facts.traps)
        if (std::ranges::find(trap.forbids, "batch_size") != trap.forbids.end())
            planner.refuse(trap, "batch_size", trap.why);
}

}  // namespace

void propose_loader(Planner& planner) {
    for (const FactCall& call : planner.facts.calls) {
        if (!trains(planner, call)) continue;
        propose_workers(planner, call);
        propose_saturate_loader(planner, call);
        propose_pinned(planner, call);
        propose_persistent(planner, call);
    }
    refuse_batch_size(planner);
}

}  // namespace saturate
