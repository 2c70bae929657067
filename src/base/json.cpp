// SPDX-License-Identifier: Apache-2.0
// Wraps nlohmann-json: its SAX parser fills our value.
#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"

namespace saturate {

std::optional<bool> Json::boolean() const {
    if (const bool* value = std::get_if<bool>(&value_)) return *value;
    return std::nullopt;
}

std::optional<double> Json::number() const {
    if (const double* value = std::get_if<double>(&value_)) return *value;
    if (auto value = integer()) return static_cast<double>(*value);
    return std::nullopt;
}

std::optional<std::int64_t> Json::integer() const {
    if (const std::int64_t* value = std::get_if<std::int64_t>(&value_)) return *value;
    return std::nullopt;
}

std::optional<std::string> Json::string() const {
    if (const std::string* value = std::get_if<std::string>(&value_)) return *value;
    return std::nullopt;
}

const Json::Array& Json::items() const {
    static const Array kNone;
    const Array* value = std::get_if<Array>(&value_);
    return value ? *value : kNone;
}

const Json::Object& Json::members() const {
    static const Object kNone;
    const Object* value = std::get_if<Object>(&value_);
    return value ? *value : kNone;
}

const Json& Json::operator[](std::string_view key) const {
    static const Json kNull;
    for (const Member& member : members()) {
        if (member.first == key) return member.second;
    }
    return kNull;
}

Json& Json::set(std::string_view key, Json value) {
    if (is_null()) value_ = Object{};
    Object* object = std::get_if<Object>(&value_);
    SATURATE_CHECK(object, "set() is for objects");
    for (Member& member : *object) {
        if (member.first == key) {
            member.second = std::move(value);
            return *this;
        }
    }
    object->emplace_back(key, std::move(value));
    return *this;
}

Json& Json::add(Json value) {
    if (is_null()) value_ = Array{};
    Array* array = std::get_if<Array>(&value_);
    SATURATE_CHECK(array, "add() is for arrays");
    array->push_back(std::move(value));
    return *this;
}

void append_json_string(std::string& out, std::string_view text) {
    // Most strings have no quote, no escape and no byte outside ASCII. The library handles the
    // others and repairs broken UTF-8.
    bool is_plain = std::ranges::all_of(
        text, [](char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; });
    if (is_plain) {
        out.append("\"").append(text).append("\"");
        return;
    }
    out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void Json::write(std::string& out, int indent, bool is_pretty) const {
    auto new_line = [&](int level) {
        if (is_pretty) out.append("\n").append(static_cast<std::size_t>(level) * 2, ' ');
    };
    if (is_null()) {
        out += "null";
    } else if (auto truth = boolean()) {
        out += *truth ? "true" : "false";
    } else if (auto whole = integer()) {
        out += fmt::to_string(*whole);
    } else if (auto value = number()) {
        out += std::isfinite(*value) ? fmt::format("{}", *value) : "null";
    } else if (const std::string* text = std::get_if<std::string>(&value_)) {
        append_json_string(out, *text);
    } else if (is_array()) {
        out += '[';
        for (std::size_t i = 0; i < items().size(); ++i) {
            if (i > 0) out += is_pretty ? "," : ", ";
            new_line(indent + 1);
            items()[i].write(out, indent + 1, is_pretty);
        }
        if (!items().empty()) new_line(indent);
        out += ']';
    } else {
        out += '{';
        for (std::size_t i = 0; i < members().size(); ++i) {
            if (i > 0) out += is_pretty ? "," : ", ";
            new_line(indent + 1);
            append_json_string(out, members()[i].first);
            out += ": ";
            members()[i].second.write(out, indent + 1, is_pretty);
        }
        if (!members().empty()) new_line(indent);
        out += '}';
    }
}

std::string Json::line() const {
    std::string out;
    write(out, 0, false);
    return out;
}

std::string Json::pretty() const {
    std::string out;
    write(out, 0, true);
    return out;
}

namespace {

// Builds the value on a stack of open containers.
class JsonBuilder : public nlohmann::json_sax<nlohmann::json> {
  public:
    Json root;
    std::size_t error_at = 0;
    bool too_deep = false;

    bool null() override { return put(Json()); }
    bool boolean(bool value) override { return put(value); }
    bool number_integer(std::int64_t value) override { return put(value); }
    bool number_unsigned(std::uint64_t value) override {
        if (value > INT64_MAX) return put(static_cast<double>(value));
        return put(static_cast<std::int64_t>(value));
    }
    bool number_float(double value, const std::string&) override { return put(value); }
    bool string(std::string& value) override { return put(Json(std::move(value))); }
    bool binary(nlohmann::json::binary_t&) override { return false; }
    bool start_object(std::size_t) override { return open(Json(Json::Object{})); }
    bool start_array(std::size_t) override { return open(Json(Json::Array{})); }
    bool key(std::string& name) override {
        keys_.back() = std::move(name);
        return true;
    }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool parse_error(std::size_t at, const std::string&,
                     const nlohmann::json::exception&) override {
        error_at = at;
        return false;
    }

  private:
    bool open(Json container) {
        constexpr std::size_t kDeepest = 200;
        if (open_.size() >= kDeepest) {
            too_deep = true;
            return false;
        }
        open_.push_back(std::move(container));
        keys_.emplace_back();
        return true;
    }

    bool close() {
        Json done = std::move(open_.back());
        open_.pop_back();
        keys_.pop_back();
        return put(std::move(done));
    }

    bool put(Json value) {
        if (open_.empty()) {
            root = std::move(value);
        } else if (open_.back().is_array()) {
            open_.back().add(std::move(value));
        } else {
            open_.back().set(keys_.back(), std::move(value));
        }
        return true;
    }

    std::vector<Json> open_;
    std::vector<std::string> keys_;
};

Place place_of(std::string_view text, std::size_t at, const std::string& file) {
    // The parser counts the bytes it has read. It stopped at the last of them.
    std::string_view before = text.substr(0, at > 0 ? std::min(at - 1, text.size()) : 0);
    int line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
    std::size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
    return {file, line, static_cast<int>(before.size() - start) + 1};
}

}  // namespace

Json Json::parse(std::string_view text, const std::string& file) {
    JsonBuilder builder;
    if (nlohmann::json::sax_parse(text.begin(), text.end(), &builder))
        return std::move(builder.root);
    if (builder.too_deep) {
        throw UserError({.where = {file},
                         .found = "values nested more than 200 levels deep",
                         .expected = "a JSON document of fewer levels"});
    }
    std::size_t at = builder.error_at;
    std::string near =
        at == 0 || at > text.size() ? "the end of the text" : in_quotes(text.substr(at - 1), 20);
    throw UserError({.where = place_of(text, at, file),
                     .found = fmt::format("JSON that breaks off at {}", near),
                     .expected = "a JSON document"});
}

}  // namespace saturate
