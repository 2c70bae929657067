// SPDX-License-Identifier: Apache-2.0
#include "words/pattern.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace saturate {

namespace {

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

bool is_number(std::string_view text) {
    bool has_digit = false;
    for (char c : text) {
        if (c >= '0' && c <= '9')
            has_digit = true;
        else if (std::string_view("+-.,e ").find(c) == std::string_view::npos)
            return false;
    }
    return has_digit || text == "-" || text == "inf" || text == "nan";
}

// True if a hole may hold this text: no gap between columns, no second sentence, no unbalanced
// parenthesis.
bool may_be_inside(std::string_view text) {
    text = trim(text);
    for (std::string_view end : {"  ", "; "})
        if (text.find(end) != std::string_view::npos) return false;
    for (std::size_t at = text.find(". "); at != std::string_view::npos;
         at = text.find(". ", at + 1))
        if (at > 0 && text[at - 1] != '.') return false;
    int depth = 0;
    for (char c : text) {
        if (c == '(') ++depth;
        if (c == ')' && --depth < 0) return false;
    }
    return depth == 0;
}

// Returns the position after the '}' that belongs to the '{' at `at`; a width may be another {}.
std::size_t hole_end(std::string_view text, std::size_t at) {
    int depth = 0;
    for (; at < text.size(); ++at) {
        if (text[at] == '{') ++depth;
        if (text[at] == '}' && --depth == 0) return at + 1;
    }
    return text.size();
}

}  // namespace

Pattern::Pattern(std::string_view english, std::string_view chinese) : is_same_(chinese == "=") {
    literals_.emplace_back();
    for (std::size_t at = 0; at < english.size();) {
        if (english.substr(at, 2) == "{{" || english.substr(at, 2) == "}}") {
            literals_.back() += english[at];
            at += 2;
        } else if (english[at] == '{') {
            std::size_t end = hole_end(english, at);
            std::string_view format = english.substr(at + 1, end - at - 2);
            char before = literals_.back().empty() ? ' ' : literals_.back().back();
            bool is_behind =
                !holes_.empty() && literals_.back().empty() && !holes_.back().is_ending;
            bool has_format = format.find(':') != std::string_view::npos;  // "{config}" is a text
            holes_.push_back(
                {.is_number = has_format && (format.ends_with('f') || format.ends_with('g')),
                 .is_ending = is_letter(before),
                 .is_behind_hole = is_behind});
            literals_.emplace_back();
            at = end;
        } else {
            literals_.back() += english[at++];
        }
    }
    for (const std::string& literal : literals_)
        weight_ += static_cast<std::size_t>(std::ranges::count_if(literal, is_letter));
    int next = 0;
    for (std::size_t at = 0; at < chinese.size() && !is_same_;) {
        if (chinese[at] == '{' && chinese.substr(at, 2) != "{{") {
            std::size_t end = hole_end(chinese, at);
            std::string_view inside = chinese.substr(at + 1, end - at - 2);
            Piece piece;
            if (inside.ends_with('~')) {
                piece.has_word = true;
                inside.remove_suffix(1);
            }
            bool is_dropped = inside.ends_with('!');
            if (is_dropped) inside.remove_suffix(1);
            auto number = parse_integer(inside);
            piece.hole = number ? static_cast<int>(*number) : next;
            next = piece.hole + 1;
            if (!is_dropped) translation_.push_back(piece);
            at = end;
        } else {
            if (translation_.empty() || translation_.back().hole >= 0) translation_.emplace_back();
            if (chinese.substr(at, 2) == "{{" || chinese.substr(at, 2) == "}}") ++at;
            translation_.back().text += chinese[at++];
        }
    }
}

bool Pattern::match_from(std::string_view text, std::size_t hole,
                         std::vector<std::string_view>& found, int& tries) const {
    if (hole == holes_.size()) return text.empty();
    const std::string& after = literals_[hole + 1];
    // "{} steps" does not begin with the label before it; two blanks are a column, and only a number
    // may be padded.
    bool is_first_word = hole == 0 && literals_[0].empty() && after.starts_with(' ');
    bool is_behind_blank = !literals_[hole].empty() && literals_[hole].back() == ' ';
    auto fits = [&](std::size_t length) {
        std::string_view inside = text.substr(0, length), rest = text.substr(length);
        if (is_behind_blank && inside.starts_with(' ') && !is_number(inside)) return false;
        if (is_first_word && inside.find(": ") != std::string_view::npos) return false;
        if (!rest.starts_with(after) || (holes_[hole].is_number && !is_number(inside)) ||
            !may_be_inside(inside))
            return false;
        found.push_back(inside);
        if (match_from(rest.substr(after.size()), hole + 1, found, tries)) return true;
        found.pop_back();
        return false;
    };
    if (holes_[hole].is_ending) {
        std::size_t letters = 0;
        while (letters < std::min<std::size_t>(text.size(), 3) && is_letter(text[letters]))
            ++letters;
        for (std::size_t length = letters + 1; length-- > 0;)
            if (--tries > 0 && fits(length)) return true;
        return false;
    }
    if (holes_[hole].is_behind_hole) return fits(0);
    bool is_last = hole + 1 == holes_.size();
    // A hole for an addition to the sentence may be empty: "...{}" and "{}the ...", but not "a {}".
    const std::string& before = literals_[hole];
    bool is_tail = is_last && after.empty() && !before.empty() && before.back() != ' ';
    bool is_head = hole == 0 && before.empty() && !after.empty() && is_letter(after[0]);
    bool is_behind_ending = hole > 0 && holes_[hole - 1].is_ending && before.empty();
    bool may_be_empty = is_tail || is_head || is_behind_ending;
    if (is_last && after.empty()) return (!text.empty() || may_be_empty) && fits(text.size());
    for (std::size_t at = may_be_empty ? 0 : 1; at <= text.size(); ++at) {
        // Another hole follows directly and takes nothing; search for the literal after it.
        if (after.empty()) {
            std::size_t next = hole + 1;
            while (next < holes_.size() && literals_[next + 1].empty()) ++next;
            if (next >= holes_.size()) return fits(text.size());
            at = text.find(literals_[next + 1], at);
            if (at == std::string_view::npos || --tries <= 0) return false;
            if (fits(at)) return true;
            continue;
        }
        at = text.find(after, at);
        if (at == std::string_view::npos || --tries <= 0) return false;
        if (fits(at)) return true;
    }
    return false;
}

std::optional<std::vector<std::string_view>> Pattern::match(std::string_view text) const {
    if (!text.starts_with(literals_.front()) || !text.ends_with(literals_.back()))
        return std::nullopt;
    std::vector<std::string_view> found;
    if (holes_.empty())
        return text.size() == literals_.front().size() ? std::optional(found) : std::nullopt;
    int tries = 2000;  // limit for text that nearly matches in very many ways
    if (!match_from(text.substr(literals_.front().size()), 0, found, tries)) return std::nullopt;
    return found;
}

}  // namespace saturate
