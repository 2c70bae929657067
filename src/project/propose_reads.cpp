// SPDX-License-Identifier: Apache-2.0
// Proposals for values that the host reads for a log in every step: keep them on the device, or
// read them every N steps.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "base/text.h"
#include "project/planner.h"
#include "project/python_text.h"

namespace saturate {

namespace {

constexpr int kEvery = 50;  // steps

// Handles `total += loss.item()` and `losses.append(loss.item())`: the values stay on the device,
// and are read where the script uses the sum or the list. They are 64-bit floats, as Python's are;
// a count stays a whole number.
bool keep_on_device(Planner& planner, const FactWait& wait) {
    if (wait.into.empty() || wait.what != "item" || wait.value_text.empty()) return false;
    bool is_read_early = std::ranges::any_of(wait.uses, [&](const FactUse& use) {
        return use.when == "step" || use.when.empty() || (wait.into_list && use.when == "interval");
    });
    if (is_read_early || wait.uses.empty()) return false;
    // The value as it is written: `(a + b).item()` keeps its brackets.
    constexpr std::string_view kRead = ".item()";
    std::string before = planner.text(wait.file, wait.span);
    if (!before.ends_with(kRead)) return false;
    std::string value = before.substr(0, before.size() - kRead.size());
    bool stays_as_it_is = wait.is_count || wait.is_as_read;
    bool is_on_apple = std::ranges::find(planner.facts.traps, "on_apple", &FactTrap::kind) !=
                       planner.facts.traps.end();
    if (is_on_apple && !stays_as_it_is) return false;  // mps has no 64-bit floats
    FixProposal proposal{
        .setting = "log_interval",
        .at = wait,
        .before = before,
        .after = value + (stays_as_it_is ? ".detach()" : ".detach().double()"),
        .reason = fmt::format("{} is not needed in every step, but every step waits for the GPU "
                              "to add to it",
                              wait.into),
        .expected = wait.into_list ? "the host runs ahead of the device; the values are the same"
                                   : "the host runs ahead of the device; the sum is the same"};
    proposal.edits.push_back(
        {wait.file, SourceEdit{SourceEdit::Kind::expression, wait.span, "", proposal.after}, {}});
    std::string read = wait.into_list  ? fmt::format("[value.item() for value in {}]", wait.into)
                       : wait.is_count ? fmt::format("int({})", wait.into)
                                       : fmt::format("float({})", wait.into);
    for (const FactUse& use : wait.uses)
        proposal.edits.push_back(
            {use.file, SourceEdit{SourceEdit::Kind::expression, use.span, "", read}, {}});
    planner.propose(std::move(proposal));
    return true;
}

// `if step % log_interval == 0`, and log_interval is 1: that setting is changed, where it can be.
void propose_every(Planner& planner, const FactWait& wait, std::set<std::string>& changed) {
    auto change = planner.change_declared(wait.every_sources, Json(kEvery));
    auto* done = std::get_if<ValueChange>(&change);
    if (!done || !wait.every_logs) {
        planner.refuse(
            wait, "reads",
            fmt::format("it is read every {} steps, and that is 1: set it higher", wait.every));
        return;
    }
    if (!changed.insert(done->at.place().text()).second) return;  // several values of one log
    planner.propose(
        {.setting = "log_interval",
         .at = done->at,
         .before = done->before,
         .after = done->after,
         .reason =
             fmt::format("every step waits for the GPU to show a value ({})", wait.place().text()),
         .expected = fmt::format(
             "the log has a line every {} steps, and the host runs ahead of the device", kEvery),
         .edits = done->edits});
}

// True if the statement only logs.
bool is_log(const std::string& statement) {
    static const std::regex kLog(
        R"re(^(print|([\w.\[\]'"]+\.)(set_postfix|set_postfix_str|set_description|set_description_str|add_scalar|add_scalars|info|debug))\()re");
    return std::regex_search(statement, kLog);
}

// True for print(..., end=''): other statements print the rest of its line.
bool is_part_of_line(const std::string& statement) {
    static const std::regex kEnd(R"re(\bend\s*=\s*['"](?!\\n))re");
    return statement.starts_with("print(") && std::regex_search(statement, kEnd);
}

// True if these are two statements of one block with nothing between them.
bool stand_together(const Planner& planner, const FileEdit& first, const FileEdit& second) {
    if (first.file != second.file || first.source->text != second.source->text) return false;
    ByteSpan one = first.source->span, other = second.source->span;
    std::string head = planner.text(first.file, {0, other.begin});
    auto indent = indentation(head, one.begin);
    return indent && indentation(head, other.begin) == indent &&
           head.find_first_not_of(" \t\r\n", one.end) == std::string::npos;
}

}  // namespace

void propose_reads(Planner& planner) {
    std::map<std::pair<std::string, std::size_t>, FixProposal> by_statement;
    std::set<std::string> changed;
    for (const FactWait& wait : planner.facts.waits) {
        if (!wait.is_said()) continue;
        if (wait.kind == "sync_control" || wait.what == "if") {
            planner.refuse(wait, "reads", "the value decides what happens next");
            continue;
        }
        if (wait.what == "synchronize") {
            planner.refuse(wait, "synchronize",
                           "delete the line, unless it is there to measure how long a step takes");
            continue;
        }
        if (wait.kind == "sync_dead") {
            planner.refuse(wait, "reads", "nothing uses the value; you can delete the line");
            continue;
        }
        if (wait.kind == "metric_cpu" || wait.kind == "metric_step") {
            planner.refuse(wait, "reads",
                           wait.kind == "metric_step"
                               ? "compute it every N steps, or once per epoch"
                               : "if it is only a metric, compute it every N steps; if training "
                                 "needs it, compute it on the GPU");
            continue;
        }
        if (wait.kind != "sync_log" && wait.kind != "sync_implicit") continue;
        if (const FactTrap* trap = planner.facts.trap("reads", -1);
            trap && trap->file == wait.file && trap->line == wait.line) {
            planner.refuse(wait, "reads", trap->why);
            continue;
        }
        if (keep_on_device(planner, wait)) continue;
        if (!wait.every.empty()) {
            propose_every(planner, wait, changed);
            continue;
        }
        const FactLoop* loop = planner.facts.loop(wait.loop);
        bool is_in_loop =
            loop && wait.path.empty() && loop->file == wait.file && loop->span.contains(wait.span);
        std::string statement = is_in_loop && wait.statement && !loop->counter.empty() &&
                                        wait.statement_kind == "expression"
                                    ? planner.text(wait.file, *wait.statement)
                                    : "";
        if (is_part_of_line(statement)) {
            planner.refuse(wait, "reads", "it prints a part of a line");
            continue;
        }
        if (is_log(statement)) {
            FixProposal& proposal = by_statement[{wait.file, wait.statement->begin}];
            if (!proposal.edits.empty()) continue;
            proposal = {.setting = "log_interval",
                        .at = wait,
                        .before = "every step",
                        .after = fmt::format("every {} steps", kEvery),
                        .reason = "the host waits for the device in every step to show a value",
                        .expected = fmt::format("the log has a line every {} steps, and the host "
                                                "runs ahead of the device",
                                                kEvery),
                        .edits = {}};
            SourceEdit edit{SourceEdit::Kind::wrap, *wait.statement, "",
                            fmt::format("if {} % {} == 0:", loop->counter, kEvery)};
            proposal.edits.push_back({wait.file, edit, {}});
            continue;
        }
        planner.refuse(
            wait, "reads",
            wait.use == "log"
                ? "to show it, keep it on the GPU with detach(), and read it every N steps"
                : "where the value goes was not followed: if it is only shown, keep it on "
                  "the GPU with detach(), and read it every N steps");
    }
    // Neighbouring statements share one `if`.
    FixProposal* last = nullptr;
    for (auto& [where, proposal] : by_statement) {
        if (last && stand_together(planner, last->edits[0], proposal.edits[0])) {
            last->edits[0].source->span.end = proposal.edits[0].source->span.end;
            proposal.edits.clear();
        } else {
            last = &proposal;
        }
    }
    for (auto& [where, proposal] : by_statement)
        if (!proposal.edits.empty()) planner.propose(std::move(proposal));
}

}  // namespace saturate
