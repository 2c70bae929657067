// SPDX-License-Identifier: Apache-2.0
// The settings of a configuration in any dialect: checked, typed, each with its place.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/dialect.h"
#include "config/document.h"
#include "config/scalar.h"
#include "probe/gpu_table.h"

namespace saturate {

// One setting as it is in the file.
struct Value {
    Setting setting;
    Convention convention = Convention::none;
    KeyPath path;
    std::size_t prefix = 0;  // number of keys in the path before the dialect's own name
    Place place;             // of the value
    std::string text;        // as in the file, without quotes
    bool quoted = false;
    ScalarType type = ScalarType::word;  // for the program that reads the file
    bool left_alone = false;      // auto, null, ${...} or a foreign unit: we do not change it
    std::vector<double> numbers;  // for kinds whole, number and size
    std::optional<bool> flag;     // for kinds flag and compile
    std::optional<Precision> precision;  // if the value names a type; fp32 for off
};

// What a file asks of mixed precision, from all its keys together.
struct PrecisionWish {
    bool on = false;
    std::optional<Precision> type;  // absent: on, and the framework chooses the type
};

// A value that cannot be meant, or that has no effect. Not an error: the file works, but not as
// well as it could.
struct Warning {
    Place where;
    std::string what;
    std::string fix;
};

class Settings {
  public:
    // In our own files, throws UserError with all values out of range or of the wrong kind and all
    // unknown keys. In other files such a value may mean something to their program, so it is left
    // alone with a note. `dialect`: the known dialect of the file; null: recognise it.
    static Settings read(const Document& document, const Dialect* dialect = nullptr);

    [[nodiscard]] const Dialect& dialect() const { return *dialect_; }
    [[nodiscard]] bool upper_case() const {
        return upper_case_;
    }  // BATCH_SIZE rather than batch_size
    [[nodiscard]] const std::vector<Value>& values() const { return values_; }
    [[nodiscard]] const std::vector<Warning>& warnings() const { return warnings_; }
    // What was not understood and is left alone.
    [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
    // True if the values are settings of a training. A manifest or a workflow has at most a name or
    // two that training uses as well.
    [[nodiscard]] bool is_training() const;

    // The value that counts for a setting, or null.
    [[nodiscard]] const Value* get(Setting setting) const;
    [[nodiscard]] std::optional<double> number(Setting setting) const;
    [[nodiscard]] std::optional<bool> flag(Setting setting) const;
    [[nodiscard]] std::string word(Setting setting) const;  // lower case; empty when absent
    [[nodiscard]] std::optional<PrecisionWish> precision() const;

  private:
    const Dialect* dialect_ = nullptr;
    bool upper_case_ = false;
    std::vector<Value> values_;
    std::vector<Warning> warnings_;
    std::vector<std::string> notes_;
};

}  // namespace saturate
