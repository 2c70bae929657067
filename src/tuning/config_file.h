// SPDX-License-Identifier: Apache-2.0
// The configuration file of a user's own program, as it was when the search began. Reads its
// settings and writes the same text with other values, in the file's own words. Each trial gets a
// copy, so saving the file during a search changes no trial. Pure.
#pragma once

#include <set>
#include <string>

#include "config/settings.h"
#include "tuning/trial.h"

namespace saturate {

class ConfigFile {
  public:
    // Throws UserError if the text is not a configuration.
    ConfigFile(std::string text, std::string name);

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] Assignment values() const;
    // Settings that the file has and that can be edited there. No key is added: we cannot know
    // whether the program would read it.
    [[nodiscard]] std::set<std::string> tunable() const;
    // Takes the settings on these lines out of tunable(), because the program does not use them.
    // Returns their names.
    std::set<std::string> leave_out(const std::set<int>& lines);
    // Returns the text with these values and nothing else changed. Throws UserError if the file has
    // no place for one of them.
    [[nodiscard]] std::string with(const Assignment& values) const;

  private:
    std::string name_;
    Document document_;
    Settings settings_;
    std::set<std::string> left_out_;
};

}  // namespace saturate
