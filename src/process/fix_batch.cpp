// SPDX-License-Identifier: Apache-2.0
#include "process/fix_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"
#include "probe/machine.h"
#include "project/propose_batch.h"
#include "remedies/facts.h"
#include "tuning/batch_size.h"
#include "tuning/fix_order.h"

namespace saturate {

namespace {

constexpr int kMostProbes = 6;

}  // namespace

FixBatch find_fix_batch(FixMeasure& measure, const FixAnswer& answer, const FixQuestion& question,
                        const FixTrialSettings& settings, const FixChanges& kept, double best) {
    FixBatch out;
    BatchPlace place = batch_place(answer.facts, question);
    out.refused = place.why;
    if (place.size <= 0) return out;
    if (!measure.has_time()) {
        out.refused = "there was no time left to search for another size";
        out.has_no_time = true;
        return out;
    }
    // Epochs with other batch sizes are not comparable.
    FixMeasure::StepsAlone steps(measure);
    BatchLimits limits{.min = std::min<std::int64_t>(place.size, settings.batch.min),
                       .max = std::max(place.size, settings.batch.max),
                       .step = settings.batch.step,
                       .probes_max = std::min(kMostProbes, measure.runs_left()),
                       .climb_only = true};
    std::map<std::int64_t, double> rates;
    BatchAnswer found =
        find_batch_size(place.size, limits, {}, [&](const TrialRequest& wanted) -> TrialResult {
            auto size = parse_integer(value_of(wanted.settings, "batch_size"));
            if (!size || !measure.has_time()) return {.outcome = TrialOutcome::not_run};
            auto proposal = batch_proposal(answer.facts, question, *size);
            if (!proposal) return {.outcome = TrialOutcome::not_run};
            FixChanges changes = kept;
            if (*size != place.size) changes.push_back(&*proposal);
            TrialResult result = measure.trial(changes);
            result.memory_limit_bytes = probe_memory().usable_bytes();
            if (settings.device_memory_bytes > 0)
                result.memory_limit_bytes = settings.device_memory_bytes;
            if (result.ok()) rates[*size] = result.samples_per_second->per_second;
            measure.say(fmt::format(
                "batch_size {}: {}", *size,
                result.ok() ? fmt::format("{:.1f} samples/s", rates[*size]) : result.message));
            return result;
        });
    if (found.size <= 0 || found.size == place.size || !rates.contains(found.size)) return out;
    out.proposal = batch_proposal(answer.facts, question, found.size);
    out.rate = rates[found.size];
    out.outcome.ratio = out.rate / (rates.contains(place.size) ? rates[place.size] : best);
    out.outcome.result = *out.outcome.ratio >= kFixGain ? FixResult::kept : FixResult::no_gain;
    out.outcome.note = found.why;
    return out;
}

}  // namespace saturate
