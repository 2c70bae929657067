// SPDX-License-Identifier: Apache-2.0
// The notebook of the rules in advise.cpp: they say what they want and why; it knows how the file's
// dialect writes that, whether it stands there already, and where a missing key belongs.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "remedies/advise.h"
#include "remedies/workload.h"

namespace saturate {

struct Because {
    std::string reason;
    std::string effect;
    std::optional<Level> level = {};  // absent: the setting's own
};

class Advisor {
  public:
    Advisor(const Document& document, const Settings& settings, const Target& target, Level level);

    const Document& document;
    const Settings& settings;
    const Target& target;
    const Level level;
    std::optional<ModelShape> shape;  // as it will be after the changes so far

    // Propose a value. Nothing happens when it is there already, when the file leaves it open
    // (auto), when the dialect has no name for it, or when its level is above the one allowed
    // (which is counted).
    void want(Setting setting, bool value, const Because& because);
    void want(Setting setting, double value, const Because& because);
    void want_precision(Precision precision, const Because& because);
    void want_word(Setting setting, const std::string& value, const Because& because);
    void remove(const Value& value, const Because& because);

    void warn(const Value& value, std::string what, std::string fix);
    void note(std::string text);

    // The value as it will be: proposed, or as the file has it.
    [[nodiscard]] std::optional<double> number(Setting setting) const;
    [[nodiscard]] std::optional<bool> flag(Setting setting) const;
    [[nodiscard]] bool may_add(Setting setting) const;

    [[nodiscard]] std::size_t changes() const { return advice_.changes.size(); }
    [[nodiscard]] Advice take();

  private:
    void propose(Setting setting, const Value* value, const Alias& alias, const std::string& text,
                 const Because& because);
    [[nodiscard]] KeyPath own_parent(const Alias& alias) const;
    [[nodiscard]] std::optional<Edit> place_new(Setting setting, const Alias& alias,
                                                const std::string& text) const;
    [[nodiscard]] std::string word(const std::string& text, bool quoted) const;
    [[nodiscard]] std::string flag_text(Convention convention, const Value* value,
                                        bool wanted) const;

    Advice advice_;
    std::map<Setting, double> numbers_;
    std::map<Setting, bool> flags_;
    std::map<Level, int> above_level_;
};

}  // namespace saturate
