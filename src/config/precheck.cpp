// SPDX-License-Identifier: Apache-2.0
#include "config/precheck.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "config/document.h"
#include "config/lines.h"
#include "config/reader.h"

namespace saturate {

namespace {

// The length of the UTF-8 character at `at`; 0 if it is broken.
std::size_t character(std::string_view text, std::size_t at) {
    auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    unsigned lead = byte(at);
    if (lead < 0x80) return 1;
    std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
    if (size == 0 || lead > 0xF4 || at + size > text.size()) return 0;
    for (std::size_t i = 1; i < size; ++i) {
        if ((byte(at + i) & 0xC0) != 0x80) return 0;
    }
    unsigned second = byte(at + 1);
    bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
    bool surrogate = lead == 0xED && second >= 0xA0;
    bool beyond = lead == 0xF4 && second >= 0x90;
    return overlong || surrogate || beyond ? 0 : size;
}

bool is_control(char c) {
    auto byte = static_cast<unsigned char>(c);
    return byte == 0x7F || (byte < 0x20 && c != '\t' && c != '\n' && c != '\r');
}

std::vector<Problem> check_encoding(std::string_view text, const std::string& file) {
    if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
        return {{.where = {file},
                 .found = "is UTF-16 text",
                 .expected = "UTF-8",
                 .fix = fmt::format("iconv -f UTF-16 -t UTF-8 {} > new.yaml", file)}};
    }
    if (text.find('\0') != std::string_view::npos) {
        return {{.where = {file},
                 .found = "is a binary file",
                 .expected = "a configuration as text: YAML, JSON or TOML",
                 .fix = "name the configuration, not a checkpoint or an archive"}};
    }
    return {};
}

}  // namespace

std::vector<Problem> precheck(std::string_view text, const std::string& file) {
    if (text.size() > Document::kLargest) {
        return {{.where = {file},
                 .found = fmt::format("is larger than {}", bytes_text(Document::kLargest)),
                 .expected = "a configuration of at most " + bytes_text(Document::kLargest)}};
    }
    std::vector<Problem> problems = check_encoding(text, file);
    if (!problems.empty()) return problems;
    Lines lines(text, file);
    std::size_t marks = 0;  // structural characters: a cheap upper bound of the values
    for (std::size_t at = 0; at < text.size();) {
        std::size_t size = character(text, at);
        if (size == 0) {
            return {{.where = lines.place(at),
                     .found = "is not UTF-8 text from here on: " + in_quotes(text.substr(at, 8)),
                     .expected = "UTF-8",
                     .fix = fmt::format("iconv -f GB18030 -t UTF-8 {} > new.yaml, if it is Chinese "
                                        "text in another encoding",
                                        file)}};
        }
        char c = text[at];
        bool lone_return = c == '\r' && !text.substr(at + 1).starts_with('\n');
        if (is_control(c) || lone_return) {
            return {{.where = lines.place(at),
                     .found = lone_return ? std::string("a carriage return without a line feed")
                                          : "a control character: " + in_quotes(text.substr(at, 1)),
                     .expected = "text, with lines that end in LF or CRLF",
                     .fix = lone_return ? "mac2unix, or remove it" : "remove it"}};
        }
        marks += c == ',' || c == '[' || c == '{' || c == '\n';
        if (marks > 2 * kMostValues) return {too_many(lines.place(at))};
        at += size;
    }
    return {};
}

}  // namespace saturate
