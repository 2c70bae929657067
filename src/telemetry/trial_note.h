// SPDX-License-Identifier: Apache-2.0
// A note next to a run record that says what the run was for. A search stops its trials once they
// are measured, and their records only say that they were stopped. Written by process/, read by
// report/.
#pragma once

#include <filesystem>
#include <string>

namespace saturate {

struct TrialNote {
    std::string name;     // "num_workers=4", "proof: unchanged"; empty if not a trial
    std::string outcome;  // "measured", "out of memory"; empty if still running
};

// Returns RUN.trial.json, next to the record's folder, because that folder must be empty at start.
[[nodiscard]] std::filesystem::path trial_note_file(const std::filesystem::path& run);

// Ignores errors: the trial does not depend on the note.
void write_trial_note(const std::filesystem::path& run, const TrialNote& note);
[[nodiscard]] TrialNote read_trial_note(const std::filesystem::path& run);

}  // namespace saturate
