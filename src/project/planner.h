// SPDX-License-Identifier: Apache-2.0
// The notebook of the rules in propose_*.cpp: they say which value a call should have and why; it
// knows where that value is declared, how it is written there, and what forbids it.
#pragma once

#include <set>
#include <variant>

#include "project/fix_plan.h"

namespace saturate {

// What a keyword of a call is, as far as the source tells.
struct KnownValue {
    enum class State { absent, known, unknown };
    State state = State::unknown;
    Json literal;             // where it is known
    std::string text;         // as the call has it
    std::string from;         // "--num_workers", where it is declared elsewhere
    bool is_watched = false;  // the source does not tell, a watched run does
    [[nodiscard]] bool is(bool value) const { return literal.boolean() == value; }
};

// How to give a call's keyword another value.
struct ValueChange {
    SourcePlace at;
    std::string before;
    std::string after;
    std::vector<FileEdit> edits;
};

class Planner {
  public:
    Planner(const ProjectFacts& facts, const FixMachine& machine, const FixQuestion& question)
        : facts(facts), machine(machine), question_(question) {}

    const ProjectFacts& facts;
    const FixMachine& machine;

    // By the source; where that does not tell, by the watched run.
    [[nodiscard]] KnownValue value(const FactCall& call, std::string_view name) const;
    // The edits, or why there are none. `text` is written where an expression at the call gives way;
    // empty: the value.
    [[nodiscard]] std::variant<ValueChange, std::string> change(const FactCall& call,
                                                                const std::string& name,
                                                                const Json& value,
                                                                const std::string& text = {}) const;
    [[nodiscard]] std::variant<ValueChange, std::string> change_declared(
        const std::vector<FlowSource>& sources, const Json& value) const;
    // A keyword with a value that is an expression.
    [[nodiscard]] std::variant<ValueChange, std::string> add_expression(
        const FactCall& call, const std::string& name, const std::string& text) const;
    // The name torch has in the file; where it has none, an import is added to the edits.
    [[nodiscard]] std::optional<std::string> torch_in(const std::string& file,
                                                      std::vector<FileEdit>& edits) const;

    // What stands there in the file; empty where it cannot be read.
    [[nodiscard]] std::string text(const std::string& file, ByteSpan span) const;

    void propose(FixProposal proposal);
    void refuse(const SourcePlace& at, const std::string& setting, const std::string& why);
    // Refuses and returns true where a trap of the project forbids it.
    bool is_forbidden(const SourcePlace& at, const std::string& setting, int call);
    [[nodiscard]] bool is_proposed(std::string_view setting, int call) const;
    [[nodiscard]] bool is_proposed(std::string_view setting) const;  // of any call
    [[nodiscard]] std::vector<FileEdit> edits_of(std::string_view setting, int call) const;

    [[nodiscard]] FixPlan take() { return std::move(plan_); }

  private:
    // A key beside the `_target_` that names what is called.
    [[nodiscard]] static std::variant<ValueChange, std::string> add_key(const FactCall& call,
                                                                        const std::string& name,
                                                                        const std::string& text);
    [[nodiscard]] KnownValue value_read(const FactCall& call, std::string_view name) const;
    [[nodiscard]] bool is_given(const std::vector<FlowSource>& sources) const;

    FixQuestion question_;
    FixPlan plan_;
    std::set<std::string> ids_;
};

// One file per group of settings.
void propose_loader(Planner& planner);
// saturate_gpu.Loader in the place of a DataLoader that trains.
void propose_saturate_loader(Planner& planner, const FactCall& loader);
void propose_optimizer(Planner& planner);
void propose_precision(Planner& planner);
void propose_model(Planner& planner);
void propose_reads(Planner& planner);
void propose_intervals(Planner& planner);
void propose_frameworks(Planner& planner);
void propose_threads(Planner& planner);

[[nodiscard]] std::string python_literal(const Json& value);  // True, 8, "bf16"

}  // namespace saturate
