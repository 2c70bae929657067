// SPDX-License-Identifier: Apache-2.0
// A command line, checked against the row of its verb in the table of verbs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verbs.h"

namespace saturate {

class Arguments {
  public:
    // Accepts "--name value", "--name=value", "-n value", and everything after "--" as the command.
    // Throws UserError with all mistakes at once, with a suggestion if there is a similar name.
    static Arguments parse(const Verb& verb, const std::vector<std::string>& words);

    // Only for options that the verb has; any other name fails a check.
    [[nodiscard]] bool has(std::string_view name) const;  // true if given
    // Returns the last value given, else the default from the table.
    [[nodiscard]] std::optional<std::string> text(std::string_view name) const;
    [[nodiscard]] std::vector<std::string> all(std::string_view name) const;
    // Throws UserError unless the value is a number within the limits.
    [[nodiscard]] std::optional<double> number(std::string_view name, double least,
                                               double most) const;
    // Returns "90", "90s", "10m" or "1h" in seconds.
    [[nodiscard]] std::optional<double> seconds(std::string_view name, double least,
                                                double most) const;
    [[nodiscard]] std::optional<long> whole(std::string_view name, long least, long most) const;

    std::vector<std::string> words;  // as given
    std::vector<std::string> operands;
    std::vector<std::string> command;  // after "--"
    bool wants_help = false;

  private:
    [[nodiscard]] const Option& option(std::string_view name) const;
    const Verb* verb_ = nullptr;
    std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

}  // namespace saturate
