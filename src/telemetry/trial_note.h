// SPDX-License-Identifier: Apache-2.0
// What a run was for, beside its record: a search stops its trials once they are measured, and
// their own records only know that they were stopped. Written by process/, read by report/.
#pragma once

#include <filesystem>
#include <string>

namespace saturate {

struct TrialNote {
    std::string name;     // "num_workers=4", "proof: unchanged"; empty: no trial
    std::string outcome;  // "measured", "out of memory"; empty: not over yet
};

// A file beside the record's folder, which has to be new: RUN.trial.json.
[[nodiscard]] std::filesystem::path trial_note_file(const std::filesystem::path& run);

// A note that cannot be written is left out: the trial does not depend on it.
void write_trial_note(const std::filesystem::path& run, const TrialNote& note);
[[nodiscard]] TrialNote read_trial_note(const std::filesystem::path& run);

}  // namespace saturate
