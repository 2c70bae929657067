// SPDX-License-Identifier: Apache-2.0
// A configuration file of the user's own program, as it stood when the search began: what it sets,
// and the same text with other values, in its own words. The program is started with a copy, and
// saving the file in the middle of a search changes no trial. Pure.
#pragma once

#include <set>
#include <string>

#include "config/settings.h"
#include "tuning/trial.h"

namespace saturate {

class ConfigFile {
  public:
    // Throws UserError when the text is no configuration.
    ConfigFile(std::string text, std::string name);

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] Assignment values() const;
    // Settings that stand in the file and can be edited there: no key is added, for nobody knows
    // whether the program would read it.
    [[nodiscard]] std::set<std::string> tunable() const;
    // The text with these values; nothing else changes. Throws UserError for one that the file has
    // no place for.
    [[nodiscard]] std::string with(const Assignment& values) const;

  private:
    std::string name_;
    Document document_;
    Settings settings_;
};

}  // namespace saturate
