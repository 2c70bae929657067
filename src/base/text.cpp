// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

namespace saturate {

std::string_view trim(std::string_view text) {
    constexpr std::string_view kSpace = " \t\r\n\v\f";
    std::size_t first = text.find_first_not_of(kSpace);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return out;
}

std::string upper(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    return out;
}

std::string shell_words(std::span<const std::string> words) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:,@%+-";
    std::vector<std::string> out;
    for (const std::string& word : words) {
        bool is_plain = !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
        std::string escaped;
        for (char c : word) escaped += c == '\'' ? std::string("'\\''") : std::string(1, c);
        out.push_back(is_plain ? word : "'" + escaped + "'");
    }
    return join(out, " ");
}

std::string or_dash(std::string_view text) { return std::string(text.empty() ? "-" : text); }

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
    return std::ranges::find(words, word) != words.end();
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (true) {
        std::size_t at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) return parts;
        text.remove_prefix(at + 1);
    }
}

std::string join(std::span<const std::string> parts, std::string_view between) {
    return fmt::format("{}", fmt::join(parts.begin(), parts.end(), between));
}

namespace {

template <typename Number>
std::optional<Number> parse_whole(std::string_view text) {
    Number value{};
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) {
    return parse_whole<std::int64_t>(text);
}

std::optional<double> parse_number(std::string_view text) { return parse_whole<double>(text); }

namespace {

// Number of edits. A swap of neighbouring letters is one edit: "trian" is one away from "train".
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    std::iota(last.begin(), last.end(), 0);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, change});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = std::min(row[j], before[j - 2] + 1);
            }
        }
        std::swap(before, last);
        std::swap(last, row);
    }
    return last[b.size()];
}

}  // namespace

std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates) {
    // A quarter of the letters may be wrong, at least one. A word of more than 64 letters is not a
    // typo.
    constexpr std::size_t kLongest = 64;
    if (word.empty() || word.size() > kLongest) return std::nullopt;
    std::optional<std::string> best;
    std::size_t best_distance = std::max<std::size_t>(1, (word.size() + 2) / 4) + 1;
    for (const std::string& candidate : candidates) {
        if (candidate.size() > kLongest) continue;
        std::size_t distance = edit_distance(lower(word), lower(candidate));
        if (distance < best_distance) {
            best_distance = distance;
            best = candidate;
        }
    }
    return best;
}

std::string bytes_text(std::uint64_t bytes) {
    constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    if (bytes < 1024) return fmt::format("{} B", bytes);
    double value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 1024 && unit + 1 < std::size(kUnits)) {
        value /= 1024;
        ++unit;
    }
    return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

namespace {

struct CodePoint {
    char32_t value = 0;
    std::size_t size = 1;
    bool valid = false;
};

CodePoint decode(std::string_view text) {
    auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    if (byte(0) < 0x80) return {byte(0), 1, true};
    std::size_t size = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : byte(0) >= 0xC2 ? 2 : 0;
    if (size == 0 || size > text.size() || byte(0) > 0xF4) return {};
    char32_t value = byte(0) & (0x7F >> size);
    for (std::size_t i = 1; i < size; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return {};
        value = (value << 6) | (byte(i) & 0x3F);
    }
    constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};  // shorter forms are overlong
    bool surrogate = value >= 0xD800 && value <= 0xDFFF;
    if (value < kSmallest[size] || value > 0x10FFFF || surrogate) return {};
    return {value, size, true};
}

std::size_t columns(char32_t c) {
    bool combining = (c >= 0x300 && c <= 0x36F) || c == 0x200B || c == 0x200D || c == 0xFE0F;
    if (combining) return 0;
    bool wide = (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) ||
                (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) ||
                (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
                (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1FAFF) ||
                (c >= 0x20000 && c <= 0x3FFFD);
    return wide ? 2 : 1;
}

}  // namespace

std::size_t display_width(std::string_view utf8) {
    std::size_t width = 0;
    while (!utf8.empty()) {
        CodePoint point = decode(utf8);
        width += point.valid ? columns(point.value) : 1;
        utf8.remove_prefix(point.size);
    }
    return width;
}

std::string pad_right(std::string_view utf8, std::size_t width) {
    std::string out(utf8);
    std::size_t used = display_width(utf8);
    if (used < width) out.append(width - used, ' ');
    return out;
}

std::string in_quotes(std::string_view raw, std::size_t limit) {
    std::string out = "\"";
    std::size_t used = 0;
    while (!raw.empty()) {
        if (used >= limit) return out + "...\"";
        CodePoint point = decode(raw);
        if (!point.valid || point.value < 0x20 || point.value == 0x7F) {
            if (point.valid && point.value == '\n') {
                out += "\\n";
            } else if (point.valid && point.value == '\t') {
                out += "\\t";
            } else {
                out += fmt::format("\\x{:02x}", static_cast<unsigned char>(raw[0]));
            }
        } else {
            out += raw.substr(0, point.size);
        }
        raw.remove_prefix(point.size);
        ++used;
    }
    return out + "\"";
}

}  // namespace saturate
