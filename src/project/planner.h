// SPDX-License-Identifier: Apache-2.0
// Collects the proposals of the rules in propose_*.cpp. A rule says which value a call should have
// and why. The planner knows where the value is declared, how to write it there, and what rules it
// out.
#pragma once

#include <set>
#include <variant>

#include "project/fix_plan.h"

namespace saturate {

// The value of a call's keyword, as far as the source shows it.
struct KnownValue {
    enum class State { absent, known, unknown };
    State state = State::unknown;
    Json literal;             // if known; if unknown, what it is under a condition, or null
    std::string text;         // as written at the call
    std::string from;         // "--num_workers", if declared elsewhere
    bool is_watched = false;  // not from the source, but from a watched run
    [[nodiscard]] bool is(bool value) const { return literal.boolean() == value; }
};

// The edits that give a call's keyword another value.
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

    // Reads the value from the source, or from the watched run if the source does not show it.
    [[nodiscard]] KnownValue value(const FactCall& call, std::string_view name) const;
    // Returns the edits, or why there are none. `text` replaces an expression at the call; empty:
    // the value does.
    [[nodiscard]] std::variant<ValueChange, std::string> change(const FactCall& call,
                                                                const std::string& name,
                                                                const Json& value,
                                                                const std::string& text = {}) const;
    [[nodiscard]] std::variant<ValueChange, std::string> change_declared(
        const std::vector<FlowSource>& sources, const Json& value) const;
    // Adds a keyword whose value is an expression.
    [[nodiscard]] std::variant<ValueChange, std::string> add_expression(
        const FactCall& call, const std::string& name, const std::string& text) const;
    // The name of torch in the file. If the file does not import torch, adds an import to `edits`.
    [[nodiscard]] std::optional<std::string> torch_in(const std::string& file,
                                                      std::vector<FileEdit>& edits) const;

    // The text of the span in the file, or "" if the file cannot be read.
    [[nodiscard]] std::string text(const std::string& file, ByteSpan span) const;

    void propose(FixProposal proposal);
    void refuse(const SourcePlace& at, const std::string& setting, const std::string& why);
    // If a trap of the project rules out the setting, refuses it and returns true.
    bool is_forbidden(const SourcePlace& at, const std::string& setting, int call);
    [[nodiscard]] bool is_proposed(std::string_view setting, int call) const;
    [[nodiscard]] bool is_proposed(std::string_view setting) const;  // for any call
    [[nodiscard]] std::vector<FileEdit> edits_of(std::string_view setting, int call) const;

    [[nodiscard]] FixPlan take() { return std::move(plan_); }

  private:
    // Adds a key next to the `_target_` that names the called function.
    [[nodiscard]] static std::variant<ValueChange, std::string> add_key(const FactCall& call,
                                                                        const std::string& name,
                                                                        const std::string& text);
    // The trainer of a framework that is set to the CPU, or null.
    [[nodiscard]] const FactCall* cpu_trainer() const;
    [[nodiscard]] KnownValue value_read(const FactCall& call, std::string_view name) const;
    [[nodiscard]] bool is_given(const std::vector<FlowSource>& sources) const;

    FixQuestion question_;
    // Of a call whose change is another call's proposal.
    struct SharedEdits {
        std::string setting;
        int call;
        std::vector<FileEdit> edits;
    };
    std::vector<SharedEdits> shared_;
    FixPlan plan_;
    std::set<std::string> ids_;
};

// One file per group of settings.
void propose_loader(Planner& planner);
// Proposes saturate_gpu.Loader instead of a DataLoader that trains.
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
