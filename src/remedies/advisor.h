// SPDX-License-Identifier: Apache-2.0
// Writes values into a configuration: it knows how the file's dialect says them, whether they stand
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
    std::optional<Level> level = {};  // absent: the setting's own
};

class Advisor {
  public:
    Advisor(const Document& document, const Settings& settings, Level level,
            const KeyReader& reader);

    // Proposes a value as `train --set` takes it; true when it will stand in the file. Not when it
    // is there already, when the file leaves it open (auto), when the dialect has no name for it,
    // when it would change its type, or when its level is above the one allowed (which is counted).
    bool want(Setting setting, const std::string& value, const Because& because);
    // Whether want() would write a value for it.
    [[nodiscard]] bool can_write(Setting setting) const;
    void remove(const Value& value, const Because& because);

    void warn(const Value& value, std::string what, std::string fix);
    void note(std::string text);
    // How the file would say the value; empty: it cannot.
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

// A value's text for this wish in the same type and style (keep_type.cpp): True for true where the
// file has False, 6.0e-4 for 0.0006 where it has 3.0e-4. Nothing where it would become another
// type.
[[nodiscard]] std::optional<std::string> in_type_of(const Value& value, const std::string& wanted,
                                                    Format format);
// What a dialect's convention calls a value (dialect_words.cpp); `was` is the text that is there,
// empty for a new key. Empty where it has no word for it.
[[nodiscard]] std::string dialect_word(Setting setting, Convention convention,
                                       const std::string& wanted, const std::string& was);

}  // namespace saturate
