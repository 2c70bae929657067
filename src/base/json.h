// SPDX-License-Identifier: Apache-2.0
// One JSON value. `--json` prints it; run records and reports are read into it. Objects keep the
// order in which keys were added. Not for hot paths: the trace reader has its own parser.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace saturate {

class Json {
  public:
    using Array = std::vector<Json>;
    using Member = std::pair<std::string, Json>;
    using Object = std::vector<Member>;

    Json() = default;  // null
    Json(std::nullptr_t) {}
    Json(bool value) : value_(value) {}
    Json(std::integral auto value) : value_(static_cast<std::int64_t>(value)) {}
    Json(double value) : value_(value) {}
    Json(const char* value) : value_(std::string(value)) {}
    Json(std::string_view value) : value_(std::string(value)) {}
    Json(std::string value) : value_(std::move(value)) {}
    Json(Array value) : value_(std::move(value)) {}
    Json(Object value) : value_(std::move(value)) {}
    template <typename T>
    Json(const std::optional<T>& value) {  // absent is null: unknown is never 0
        if (value) *this = Json(*value);
    }

    static Json array(std::initializer_list<Json> items = {}) { return Json(Array(items)); }
    static Json object(std::initializer_list<Member> members = {}) { return Json(Object(members)); }
    template <typename Range>
    static Json array_of(const Range& items) {
        Array out;
        for (const auto& item : items) out.emplace_back(item);
        return Json(std::move(out));
    }

    // Throws UserError with line and column. Refuses more than 200 nested levels.
    static Json parse(std::string_view text, const std::string& file);

    [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
    [[nodiscard]] bool is_object() const { return std::holds_alternative<Object>(value_); }
    [[nodiscard]] bool is_array() const { return std::holds_alternative<Array>(value_); }

    // Return nothing if the value has another type.
    [[nodiscard]] std::optional<bool> boolean() const;
    [[nodiscard]] std::optional<double> number() const;
    [[nodiscard]] std::optional<std::int64_t> integer() const;
    [[nodiscard]] std::optional<std::string> string() const;
    [[nodiscard]] const Array& items() const;                          // empty unless an array
    [[nodiscard]] const Object& members() const;                       // empty unless an object
    [[nodiscard]] const Json& operator[](std::string_view key) const;  // null when absent

    // Adds or replaces a member; this must be null or an object.
    Json& set(std::string_view key, Json value);
    // Appends; this must be null or an array.
    Json& add(Json value);

    // One line, or indented by two spaces. Numbers that JSON cannot hold (NaN, infinity) become
    // null.
    [[nodiscard]] std::string line() const;
    [[nodiscard]] std::string pretty() const;

  private:
    void write(std::string& out, int indent, bool is_pretty) const;

    std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

// Appends `text` as a JSON string in quotes. Broken UTF-8 becomes U+FFFD.
void append_json_string(std::string& out, std::string_view text);

}  // namespace saturate
