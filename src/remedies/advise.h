// SPDX-License-Identifier: Apache-2.0
// Computes the changes of a configuration from settings and facts, each with its reason. Nothing is
// measured here; if only a measurement can tell, the advice says so. Applied to its own result, it
// changes nothing.
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
    std::string effect;  // expected effect
};

// A key that the file lacks and that no program is seen to read: shown, not written.
struct Addition {
    std::string key;  // in the dialect of the file
    std::string value;
    Level level = Level::safe;
    std::string reason;
};

struct Advice {
    std::vector<Change> changes;
    std::vector<Addition> additions;
    std::vector<Warning>
        warnings;  // contradictions and settings without effect in the file as it is
    std::vector<std::string> notes;  // what was left unchanged, and why
};

// Returns the reader of a key of the file, such as "train.py:41", or "" if none is seen. Needed for
// files that are not ours: a new key is written only if a program reads it.
using KeyReader = std::function<std::string(const KeyPath& path)>;

// `facts` has the machine and the level; the settings are added here.
[[nodiscard]] Advice advise(const Document& document, const Settings& settings, Facts facts,
                            const KeyReader& reader = {});

// A value found by a measurement or a diagnosis: canonical name, and the value in the syntax of
// `train --set`.
struct FoundValue {
    Setting setting;
    std::string value;
    std::string reason;
    std::string effect;  // as measured
};

// Returns the changes that write these values in the dialect of the file. A value that the dialect
// cannot express becomes a note.
[[nodiscard]] Advice advise_values(const Document& document, const Settings& settings,
                                   const std::vector<FoundValue>& values,
                                   const KeyReader& reader = {});

// Returns the text with the changes made. A change that cannot be made exactly (for example behind
// an alias) moves from the changes to the warnings.
[[nodiscard]] std::string apply_changes(const Document& document, Advice& advice);

}  // namespace saturate
