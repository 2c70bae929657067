// SPDX-License-Identifier: Apache-2.0
// Proposes the number of threads that compute on the CPU, as a watched run suggests it.
#include <fmt/format.h>

#include "project/planner.h"

namespace saturate {

namespace {

// The call that sets the threads. The last one decides.
const FactCall* set_by(const ProjectFacts& facts) {
    const FactCall* out = nullptr;
    for (const FactCall& call : facts.calls)
        if (call.kind == "flag" && call.callee == "torch.set_num_threads") out = &call;
    return out;
}

}  // namespace

void propose_threads(Planner& planner) {
    int wanted = planner.machine.threads;
    if (wanted < 1) return;
    bool is_room = planner.machine.threads_for_workers;
    if (is_room && !planner.is_proposed("num_workers")) return;
    FixProposal proposal{.setting = "threads",
                         .after = std::to_string(wanted),
                         .reason = planner.machine.threads_why};
    if (const FactCall* call = set_by(planner.facts)) {
        if (call->arguments.size() != 1) return;
        const FactArgument& now = call->arguments[0];
        proposal.at = *call;
        proposal.before = now.text;
        proposal.edits.push_back(
            {call->file,
             SourceEdit{SourceEdit::Kind::expression, now.span, "", proposal.after},
             {}});
        if (now.literal.is_null()) {
            auto change = planner.change_declared(now.sources, Json(wanted));
            auto* done = std::get_if<ValueChange>(&change);
            if (!done) {
                planner.refuse(*call, "threads", std::get<std::string>(change));
                return;
            }
            proposal.at = done->at;
            proposal.before = done->before;
            proposal.edits = done->edits;
        }
    } else {
        const FactSource* script = planner.facts.file(planner.facts.script);
        if (!script || !script->after_imports) return;
        auto torch = planner.torch_in(script->file, proposal.edits);
        if (!torch) return;
        proposal.at = {.file = script->file, .span = *script->after_imports};
        proposal.edits.push_back({script->file,
                                  SourceEdit{SourceEdit::Kind::after, *script->after_imports, "",
                                             fmt::format("{}.set_num_threads({})", *torch, wanted)},
                                  {}});
    }
    if (is_room) proposal.room_for = "num_workers";
    planner.propose(std::move(proposal));
}

}  // namespace saturate
