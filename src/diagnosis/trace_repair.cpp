// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/trace_repair.h"

#include <fmt/format.h>

#include <cstring>
#include <vector>

namespace saturate {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

std::size_t skip_space(std::string_view text, std::size_t at) {
    while (at < text.size() && is_space(text[at])) ++at;
    return at;
}

// True if one of the usual first keys of an event is at `at`.
bool has_first_key(std::string_view text, std::size_t at) {
    for (std::string_view key : {"\"ph\"", "\"name\"", "\"cat\"", "\"args\"", "\"pid\"", "\"tid\"",
                                 "\"ts\"", "\"dur\"", "\"id\""}) {
        if (text.substr(at, key.size()) == key) return true;
    }
    return false;
}

// Returns the comma before the brace at `brace` if one event ends before it and another begins
// after it.
std::optional<std::size_t> boundary_at(std::string_view text, std::size_t brace) {
    std::size_t at = brace;
    while (at > 0 && is_space(text[at - 1])) --at;
    if (at == 0 || text[at - 1] != ',') return std::nullopt;
    std::size_t comma = --at;
    while (at > 0 && is_space(text[at - 1])) --at;
    if (at == 0 || text[at - 1] != '}') return std::nullopt;
    if (!has_first_key(text, skip_space(text, brace + 1))) return std::nullopt;
    return comma;
}

// Returns the length of the UTF-8 character at `at`, or 0 if it is broken.
std::size_t utf8_length(std::string_view text, std::size_t at) {
    auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    unsigned char lead = byte(at);
    std::size_t length = lead < 0x80   ? 1
                         : lead < 0xc2 ? 0
                         : lead < 0xe0 ? 2
                         : lead < 0xf0 ? 3
                         : lead < 0xf5 ? 4
                                       : 0;
    if (length == 0 || at + length > text.size()) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(at + i) & 0xc0) != 0x80) return 0;
    }
    if (lead == 0xe0 && byte(at + 1) < 0xa0) return 0;
    if (lead == 0xed && byte(at + 1) > 0x9f) return 0;
    if (lead == 0xf0 && byte(at + 1) < 0x90) return 0;
    if (lead == 0xf4 && byte(at + 1) > 0x8f) return 0;
    return length;
}

// True if the quote at `at` can end a value, judging by the text that follows.
bool ends_value(std::string_view text, std::size_t at, bool in_array) {
    std::size_t next = skip_space(text, at + 1);
    if (next >= text.size()) return true;
    if (text[next] == '}' || text[next] == ']') {
        std::size_t after = skip_space(text, next + 1);
        return after >= text.size() || std::strchr(",}]", text[after]) != nullptr;
    }
    if (text[next] != ',') return false;
    std::size_t key = skip_space(text, next + 1);
    if (key >= text.size()) return false;
    if (in_array) return std::strchr("\"[{-0123456789tfn", text[key]) != nullptr;
    if (text[key] != '"') return false;
    std::size_t close = text.find('"', key + 1);
    if (close == std::string_view::npos || close - key > 64) return false;
    std::size_t colon = skip_space(text, close + 1);
    return colon < text.size() && text[colon] == ':';
}

}  // namespace

std::optional<std::size_t> next_boundary(std::string_view text, std::size_t from) {
    for (std::size_t at = text.find('{', from); at != std::string_view::npos;
         at = text.find('{', at + 1)) {
        std::optional<std::size_t> comma = boundary_at(text, at);
        if (comma && *comma >= from) return comma;
    }
    return std::nullopt;
}

std::optional<std::size_t> last_boundary(std::string_view text) {
    for (std::size_t at = text.rfind('{'); at != std::string_view::npos && at > 0;
         at = text.rfind('{', at - 1)) {
        if (std::optional<std::size_t> comma = boundary_at(text, at)) return comma;
    }
    return std::nullopt;
}

std::optional<std::size_t> value_end(std::string_view text, std::size_t from) {
    std::size_t depth = 0;
    for (std::size_t at = from; at < text.size(); ++at) {
        char c = text[at];
        if (c == '"') {
            for (++at; at < text.size() && text[at] != '"'; ++at) {
                if (text[at] == '\\') ++at;
            }
        } else if (c == '{' || c == '[') {
            ++depth;
        } else if (c == '}' || c == ']') {
            if (depth <= 1) return at + 1;
            --depth;
        }
    }
    return std::nullopt;
}

std::string repair_event(std::string_view broken) {
    std::string out;
    out.reserve(broken.size() + 64);
    std::vector<char> nest;
    bool in_string = false;
    bool is_key = false;  // whether the current or next string is a key
    for (std::size_t at = 0; at < broken.size(); ++at) {
        char c = broken[at];
        auto code = static_cast<unsigned char>(c);
        bool in_array = !nest.empty() && nest.back() == '[';
        if (!in_string) {
            if (c == '{' || c == '[') nest.push_back(c);
            if ((c == '}' || c == ']') && !nest.empty()) nest.pop_back();
            if (c == '{') is_key = true;
            if (c == ',') is_key = !in_array;
            if (c == ':') is_key = false;
            in_string = c == '"';
            if (code >= 0x20 && code < 0x80)
                out += c;
            else if (is_space(c))
                out += ' ';
        } else if (c == '"') {
            bool ends = is_key || ends_value(broken, at, in_array);
            out += ends ? "\"" : "\\\"";
            in_string = !ends;
        } else if (c == '\\') {
            bool is_escape = at + 1 < broken.size() && std::strchr("\"\\/bfnrtu", broken[at + 1]);
            out += is_escape ? "\\" : "\\\\";
            if (is_escape) out += broken[++at];
        } else if (code < 0x20) {
            out += fmt::format("\\u{:04x}", code);
        } else if (std::size_t length = utf8_length(broken, at)) {
            out.append(broken, at, length);
            at += length - 1;
        } else {
            out += '?';
        }
    }
    return out;
}

}  // namespace saturate
