// SPDX-License-Identifier: Apache-2.0
// A configuration's settings, whatever its dialect calls them: checked, typed, each with its place.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/dialect.h"
#include "config/document.h"
#include "config/scalar.h"
#include "probe/gpu_table.h"

namespace saturate {

// One setting as the file has it.
struct Value {
    Setting setting;
    Convention convention = Convention::none;
    KeyPath path;
    std::size_t prefix = 0;  // keys of the path before the dialect's own name begins
    Place place;             // of the value
    std::string text;        // as in the file, without quotes
    bool quoted = false;
    ScalarType type = ScalarType::word;  // to the program that reads the file
    bool left_alone = false;  // auto, null, ${...}, a unit we do not convert: not ours to change
    std::vector<double> numbers;         // of a whole, number or size
    std::optional<bool> flag;            // of a flag, and of compile
    std::optional<Precision> precision;  // of a precision that names its type; fp32 for off
};

// What a file asks of mixed precision, its keys taken together.
struct PrecisionWish {
    bool on = false;
    std::optional<Precision> type;  // absent: on, the type left to the framework
};

// Something that cannot be meant, or has no effect. Not an error: the file still works, worse than
// it could.
struct Warning {
    Place where;
    std::string what;
    std::string fix;
};

class Settings {
  public:
    // Of our own files throws UserError with every value that is out of range or of the wrong kind,
    // and with unknown keys. In others such a value may mean something to their program: it is left
    // alone, with a note. `dialect`: that of the file where it is known, else it is recognised.
    static Settings read(const Document& document, const Dialect* dialect = nullptr);

    [[nodiscard]] const Dialect& dialect() const { return *dialect_; }
    [[nodiscard]] bool upper_case() const {
        return upper_case_;
    }  // BATCH_SIZE rather than batch_size
    [[nodiscard]] const std::vector<Value>& values() const { return values_; }
    [[nodiscard]] const std::vector<Warning>& warnings() const { return warnings_; }
    // What was not understood and is left alone.
    [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
    // Whether any of the values is one of training. A manifest or a workflow has none, or a name or
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
