// SPDX-License-Identifier: Apache-2.0
// From settings and facts to the changes of a configuration, each with its reason. Nothing here is
// measured; what only a measurement can tell is said to be so. Asked again about its own answer, it
// has nothing to change.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/document.h"
#include "config/edit.h"
#include "config/settings.h"
#include "remedies/facts.h"

namespace saturate {

struct Change {
    Setting setting;
    Edit edit;
    int line = 0;        // 0: the key is new
    std::string before;  // empty: the key is new
    std::string after;
    Level level = Level::safe;
    std::string reason;
    std::string effect;  // what to expect of it
};

// A key that is not there and that nobody is seen to read: shown, not written.
struct Addition {
    std::string key;  // in the words of the file's dialect
    std::string value;
    Level level = Level::safe;
    std::string reason;
};

struct Advice {
    std::vector<Change> changes;
    std::vector<Addition> additions;
    std::vector<Warning>
        warnings;  // contradictions and settings without effect, as the file stands
    std::vector<std::string> notes;  // what was left alone and why
};

// Who reads a key of the file: "train.py:41"; empty: nobody is seen to. For files that are not
// ours; a new key is written only where somebody reads it.
using KeyReader = std::function<std::string(const KeyPath& path)>;

// `facts` with the machine and the level; the settings are added here.
[[nodiscard]] Advice advise(const Document& document, const Settings& settings, Facts facts,
                            const KeyReader& reader = {});

// A value that was found elsewhere, by measuring or by a diagnosis: canonical name, and value as
// `train --set` takes it.
struct FoundValue {
    Setting setting;
    std::string value;
    std::string reason;
    std::string effect;  // what was measured
};

// The changes that write these values in the words of the file's dialect. What it has no word for
// becomes a note.
[[nodiscard]] Advice advise_values(const Document& document, const Settings& settings,
                                   const std::vector<FoundValue>& values,
                                   const KeyReader& reader = {});

// The text with the changes done. Those that cannot be made exactly (behind an alias, say) leave
// the advice and become warnings.
[[nodiscard]] std::string apply_changes(const Document& document, Advice& advice);

}  // namespace saturate
