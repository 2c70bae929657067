// SPDX-License-Identifier: Apache-2.0
// Reads JSON with places (DeepSpeed's configurations). As strict as the programs that read such
// files: no comments, no trailing commas, keys in double quotes. Stops at the first syntax error.
#include <fmt/format.h>

#include "base/text.h"
#include "config/lines.h"
#include "config/reader.h"

namespace saturate {

namespace {

class JsonReader {
  public:
    JsonReader(std::string_view text, const std::string& file, std::vector<Problem>& problems)
        : text_(text), lines_(text, file), problems_(problems) {
        if (text.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
    }

    Node read() {
        skip();
        if (at_ == text_.size()) return {};
        Node root = value(0);
        skip();
        if (at_ < text_.size()) fail("text after the end of the object", "nothing", "remove it");
        return root;
    }

  private:
    [[noreturn]] void fail(const std::string& found, const std::string& expected,
                           const std::string& fix) {
        std::size_t end = std::min(text_.find_first_of("\r\n", at_), text_.size());
        std::string_view here = trim(text_.substr(at_, std::min<std::size_t>(end - at_, 200)));
        problems_.push_back({.where = lines_.place(at_),
                             .found = here.empty() ? found : found + ": " + in_quotes(here),
                             .expected = expected,
                             .fix = fix});
        throw StopReading();
    }

    [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    void skip() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

    Node value(std::size_t depth) {
        if (++values_ > kMostValues) {
            problems_.push_back(too_many(lines_.place(at_)));
            throw StopReading();
        }
        if (depth > kDeepest) {
            problems_.push_back(too_deep(lines_.place(at_)));
            throw StopReading();
        }
        Node node;
        node.place = lines_.place(at_);
        node.begin = at_;
        node.flow = true;
        if (peek() == '{') {
            map(node, depth);
        } else if (peek() == '[') {
            list(node, depth);
        } else if (peek() == '"') {
            node.kind = Node::Kind::scalar;
            node.quoted = true;
            node.text = string();
        } else {
            word(node);
        }
        node.end = at_;
        return node;
    }

    void map(Node& node, std::size_t depth) {
        node.kind = Node::Kind::map;
        ++at_;
        for (skip(); peek() != '}'; skip()) {
            if (!node.members.empty()) comma("}");
            if (peek() != '"')
                fail("a key without double quotes", "\"key\": value", "write it as \"key\"");
            Member member{.key = {}, .place = lines_.place(at_), .begin = at_};
            member.key = string();
            member.end = at_;
            skip();
            if (peek() != ':') fail("a key without a value", "\"key\": value", "add the colon");
            ++at_;
            skip();
            member.value = value(depth + 1);
            node.members.push_back(std::move(member));
        }
        ++at_;
        report_duplicates(node, problems_);
    }

    void list(Node& node, std::size_t depth) {
        node.kind = Node::Kind::sequence;
        ++at_;
        for (skip(); peek() != ']'; skip()) {
            if (!node.items.empty()) comma("]");
            node.items.push_back(value(depth + 1));
        }
        ++at_;
    }

    void comma(const char* closing) {
        if (at_ == text_.size())
            fail("the file ends too early", fmt::format("a closing {}", closing), "close it");
        if (peek() != ',') {
            fail("two values without a comma", fmt::format("a comma or {}", closing),
                 "write a comma between the values");
        }
        ++at_;
        skip();
        if (peek() == closing[0])
            fail("a comma before the closing bracket", "a value", "remove the comma");
    }

    // Reads numbers, true, false, null, and NaN and Infinity, which Python writes and reads.
    void word(Node& node) {
        std::size_t end = std::min(text_.find_first_of(" \t\r\n,]}:{[\"", at_), text_.size());
        std::string_view raw = text_.substr(at_, end - at_);
        bool is_literal = raw == "true" || raw == "false" || raw == "null" || raw == "NaN" ||
                          raw == "Infinity" || raw == "-Infinity";
        if (!is_literal && !is_number(raw)) {
            if (raw.empty()) fail("no value", "a value", "write one, or null");
            fail("a word without quotes", "a number, true, false, null or a text in double quotes",
                 fmt::format("\"{}\"", raw));
        }
        node.kind = raw == "null" ? Node::Kind::null : Node::Kind::scalar;
        if (raw != "null") node.text = raw;
        at_ = end;
    }

    static bool is_number(std::string_view raw) {
        std::size_t i = raw.starts_with('-') ? 1 : 0;
        auto digits = [&] {
            std::size_t first = i;
            while (i < raw.size() && raw[i] >= '0' && raw[i] <= '9') ++i;
            return i - first;
        };
        std::size_t whole = i;
        std::size_t count = digits();
        if (count == 0 || (count > 1 && raw[whole] == '0')) return false;
        if (i < raw.size() && raw[i] == '.') {
            ++i;
            if (digits() == 0) return false;
        }
        if (i < raw.size() && (raw[i] == 'e' || raw[i] == 'E')) {
            ++i;
            if (i < raw.size() && (raw[i] == '+' || raw[i] == '-')) ++i;
            if (digits() == 0) return false;
        }
        return i == raw.size();
    }

    std::string string() {
        std::string out;
        std::size_t begin = at_++;
        while (true) {
            if (at_ >= text_.size() || text_[at_] == '\n' || text_[at_] == '\r') {
                at_ = begin;
                fail("a quote that is not closed in its line", "a closing \"", "close the quote");
            }
            char c = text_[at_++];
            if (c == '"') return out;
            if (c == '\\') {
                escape(out);
            } else {
                out += c;
            }
        }
    }

    void escape(std::string& out) {
        static constexpr std::string_view kNames = "\"\\/bfnrt";
        static constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
        std::size_t known = kNames.find(peek());
        if (at_ < text_.size() && known != std::string_view::npos) {
            out += kMeant[known];
            ++at_;
            return;
        }
        char32_t c = hex();
        if (c >= 0xD800 && c < 0xDC00 && text_.substr(at_).starts_with("\\u")) {
            ++at_;
            char32_t low = hex();
            bool pair = low >= 0xDC00 && low < 0xE000;
            c = pair ? 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00) : 0xFFFD;
        }
        if (c >= 0xD800 && c < 0xE000) c = 0xFFFD;  // half of a surrogate pair has no meaning
        append_utf8(out, c);
    }

    char32_t hex() {
        std::string_view digits = text_.substr(std::min(at_ + 1, text_.size()), 4);
        bool good = peek() == 'u' && digits.size() == 4 &&
                    digits.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
        if (!good) {
            --at_;
            fail("an escape that JSON does not have", "\\n, \\t, \\\\, \\\" or \\u and 4 digits",
                 "write each backslash twice");
        }
        at_ += 5;
        return static_cast<char32_t>(std::stoul(std::string(digits), nullptr, 16));
    }

    static void append_utf8(std::string& out, char32_t c) {
        auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
        if (c < 0x80) {
            put(c);
        } else if (c < 0x800) {
            put(0xC0 | (c >> 6));
            put(0x80 | (c & 0x3F));
        } else if (c < 0x10000) {
            put(0xE0 | (c >> 12));
            put(0x80 | ((c >> 6) & 0x3F));
            put(0x80 | (c & 0x3F));
        } else {
            put(0xF0 | (c >> 18));
            put(0x80 | ((c >> 12) & 0x3F));
            put(0x80 | ((c >> 6) & 0x3F));
            put(0x80 | (c & 0x3F));
        }
    }

    std::string_view text_;
    Lines lines_;
    std::vector<Problem>& problems_;
    std::size_t at_ = 0;
    std::size_t values_ = 0;
};

}  // namespace

Node read_json(std::string_view text, const std::string& file, std::vector<Problem>& problems) {
    try {
        return JsonReader(text, file, problems).read();
    } catch (const StopReading&) {
        return {};
    }
}

}  // namespace saturate
