// SPDX-License-Identifier: Apache-2.0
#include "tuning/watched_machine.h"

#include <algorithm>

#include "base/text.h"
#include "diagnosis/cure.h"
#include "diagnosis/python_json.h"
#include "remedies/catalogue.h"

namespace saturate {

namespace {

constexpr double kWaits = 0.03;

void choose_workers(FixMachine& machine, const Json& python, const std::vector<Finding>& findings) {
    auto now = training_loader(python)["num_workers"].integer();
    // Batches come late and no core is left for more workers: fewer workers may be faster.
    bool is_crowded = machine.waits_for_data && now && machine.cores > 0 && *now > machine.cores;
    for (const Finding& finding : findings) {
        for (const SettingChange& change : finding.settings) {
            auto workers = change.key == "num_workers" ? parse_integer(change.value) : std::nullopt;
            if (!workers || *workers < 1 || machine.is_watched) continue;
            machine.workers = static_cast<int>(*workers);
            machine.is_watched = true;
        }
    }
    // But never fewer workers than cores.
    if (!is_crowded || (machine.is_watched && machine.workers >= machine.cores)) return;
    machine.workers = machine.cores;
    machine.is_watched = true;
}

// Chooses the threads for a model that computes on the CPU in one process.
void choose_threads(FixMachine& machine, const TrialResult& watched) {
    const Json& python = watched.record.python;
    auto threads = python["flags"]["threads"].integer();
    if (is_on_gpu(python) || !threads || python["world_size"].integer().value_or(1) > 1) return;
    Facts facts = record_facts(watched.record);
    if (machine.cores > 0) facts.cores = std::min(facts.cores, machine.cores);
    facts.is_measuring = true;
    facts.step_seconds = watched.samples_per_second->step_seconds;
    // If the model waits for batches, workers need the cores that the model's threads take. That
    // holds for present workers and for those that are proposed.
    if (machine.waits_for_data) {
        facts.loader = LoaderTimes{};
        bool has_workers = facts.number("num_workers").value_or(0) > 0;
        // More threads than cores get in each other's way, whatever the workers do.
        machine.threads_for_workers = !has_workers && *threads <= facts.cores;
        if (!has_workers) facts.now["num_workers"] = std::to_string(machine.workers);
    }
    facts.now["threads"] = std::to_string(*threads);
    Proposal proposal = find_remedy("threads")->propose(facts);
    auto wanted = parse_integer(proposal.value.value_or(""));
    if (!wanted || wanted == threads) return;
    machine.threads = static_cast<int>(*wanted);
    machine.threads_why = proposal.reason;
}

}  // namespace

FixMachine watched_machine(const FixMachine& machine, const ProjectFacts& facts,
                           const TrialResult& watched, const std::vector<Finding>& findings) {
    FixMachine out = machine;
    out.watched = watched_calls(facts, watched.record.python);
    if (watched.samples_per_second)
        out.waits_for_data = watched.samples_per_second->input_wait_share >= kWaits;
    choose_workers(out, watched.record.python, findings);
    if (watched.samples_per_second) choose_threads(out, watched);
    return out;
}

}  // namespace saturate
