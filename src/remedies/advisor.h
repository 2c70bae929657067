// SPDX-License-Identifier: Apache-2.0
// Writes values into a configuration. Knows how the file's dialect expresses a value, whether it is
// there already, that a value keeps its type, and where a missing key belongs. Only for advise.cpp.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "remedies/advise.h"

namespace saturate {

struct Because {
    std::string reason;
    std::string effect;
    std::optional<Level> level = {};  // absent: the level of the setting
};

class Advisor {
  public:
    Advisor(const Document& document, const Settings& settings, Level level,
            const KeyReader& reader);

    // Proposes a value in the syntax of `train --set`. Returns true if the file will have it.
    // Returns false if the file has it already or leaves it open (auto), if the dialect has no name
    // for it, if its type would change, or if its level is not allowed (these are counted).
    bool want(Setting setting, const std::string& value, const Because& because);
    // True if want() could write a value for this setting.
    [[nodiscard]] bool can_write(Setting setting) const;
    void remove(const Value& value, const Because& because);

    void warn(const Value& value, std::string what, std::string fix);
    void note(std::string text);
    // The value as the file would express it, or "" if it cannot.
    [[nodiscard]] std::string said(const Value& value, const std::string& wanted) const;

    [[nodiscard]] std::size_t changes() const { return advice_.changes.size(); }
    [[nodiscard]] Advice take();

  private:
    bool want_precision(const std::string& value, const Because& because);
    bool propose(Setting setting, const Value* value, const Alias& alias, const std::string& text,
                 const Because& because);
    [[nodiscard]] bool is_free() const { return settings_.dialect().is_free(); }
    [[nodiscard]] KeyPath own_parent(const Alias& alias) const;
    [[nodiscard]] std::optional<Edit> place_new(Setting setting, const Alias& alias,
                                                const std::string& text) const;
    [[nodiscard]] std::string new_text(Setting setting, const Alias& alias,
                                       const std::string& wanted) const;

    const Document& document_;
    const Settings& settings_;
    const Level level_;
    const KeyReader& reader_;
    Advice advice_;
    std::map<Level, int> above_level_;
};

// Returns the wanted value in the type and style of this value (keep_type.cpp): True if the file
// has False, 6.0e-4 for 0.0006 if it has 3.0e-4. Returns nothing if the type would change.
[[nodiscard]] std::optional<std::string> in_type_of(const Value& value, const std::string& wanted,
                                                    Format format);
// Returns the word for a value in a dialect's convention (dialect_words.cpp), or "" if it has none.
// `was` is the present text, empty for a new key.
[[nodiscard]] std::string dialect_word(Setting setting, Convention convention,
                                       const std::string& wanted, const std::string& was);

}  // namespace saturate
