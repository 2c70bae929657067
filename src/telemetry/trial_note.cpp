// SPDX-License-Identifier: Apache-2.0
#include "telemetry/trial_note.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace saturate {

std::filesystem::path trial_note_file(const std::filesystem::path& run) {
    return run.string() + ".trial.json";
}

void write_trial_note(const std::filesystem::path& run, const TrialNote& note) {
    Json json = Json::object({{"schema", 1}, {"name", note.name}});
    json.set("outcome", note.outcome.empty() ? Json() : Json(note.outcome));
    try {
        write_file_whole(trial_note_file(run), json.pretty() + "\n");
    } catch (const Failure&) {
        return;
    }
}

TrialNote read_trial_note(const std::filesystem::path& run) {
    constexpr std::uint64_t kMost = 64 << 10;
    try {
        std::filesystem::path file = trial_note_file(run);
        Json json = Json::parse(read_file(file, kMost, "the note of a trial"), file.string());
        return {.name = json["name"].string().value_or(""),
                .outcome = json["outcome"].string().value_or("")};
    } catch (const Failure&) {
        return {};  // no note, or it is just being written
    }
}

}  // namespace saturate
