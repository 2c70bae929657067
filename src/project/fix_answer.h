// SPDX-License-Identifier: Apache-2.0
// What `fix` answers: the facts, the proposals with what became of them, and the patch.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/json.h"
#include "project/fix_patch.h"

namespace saturate {

struct FixOutcome {
    std::string word = "not tried";  // kept, no gain, slower, changed training, failed
    std::optional<double> ratio;     // of the rates, after over before
    std::string note;
};

struct FixAnswer {
    ProjectFacts facts;
    FixPlan plan;
    FixPatch patch;
    std::string patch_file;  // empty: none was written
    Level level = Level::numerics;
    std::map<std::string, FixOutcome> outcomes;  // by the proposal's id

    [[nodiscard]] FixOutcome outcome(const FixProposal& proposal) const;
    [[nodiscard]] bool has_training() const;  // the source shows a loop, a loader or a trainer
};

// Places that wait in every step, one per line of a file.
[[nodiscard]] std::vector<const FactWait*> said_waits(const ProjectFacts& facts);
// Places that wait where the code that gets the tensor reads it: a logger, an `if`.
[[nodiscard]] std::vector<const FactWait*> possible_waits(const ProjectFacts& facts);
// Settings that are said to have no effect: not those that reading cannot tell.
[[nodiscard]] std::vector<const FactWithoutEffect*> said_without_effect(const ProjectFacts& facts);
[[nodiscard]] std::string wait_words(const FactWait& wait);  // "read for a log"

[[nodiscard]] Json to_json(const FixAnswer& answer);  // docs/json.md, section fix

}  // namespace saturate
