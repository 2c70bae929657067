// SPDX-License-Identifier: Apache-2.0
#include "words/clauses.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace saturate {

namespace {

constexpr std::string_view kExpected = "expected: ";

struct ClausePart {
    std::string_view before;  // punctuation and blanks before the part
    std::size_t start = 0, end = 0;
};

bool is_mark(char c) {
    return c == ',' || c == ';' || c == ':' || c == '.' || c == '?' || c == '!';
}

// Returns the length of the separating punctuation at `at`, or 0.
std::size_t separator(std::string_view line, std::size_t at) {
    std::string_view rest = line.substr(at);
    if (rest == "..." || rest == " ...") return rest.size();
    if (rest.starts_with("  ")) return std::min(rest.find_first_not_of(' '), rest.size());
    if (rest.starts_with(" -> ") || rest.starts_with(" <- ")) return 4;
    if (at == 0 && (rest.starts_with("-> ") || rest.starts_with("<- "))) return 3;
    if (at == 0 && rest.starts_with("- ")) return 2;
    if ((at == 0 || line[at - 1] == ' ') && rest.starts_with('(')) return 1;
    if (rest.starts_with(" (")) return 2;
    char c = rest[0];
    bool is_end = rest.size() == 1 || rest[1] == ' ' || is_mark(rest[1]) || rest[1] == ')';
    bool is_name = at == 0 || line[at - 1] == ' ';  // "." is a folder
    if (rest.starts_with("..") || (c == '.' && at > 0 && line[at - 1] == '.')) return 0;
    if ((c == ')' || (is_mark(c) && c != '?' && c != '!' && !is_name)) && is_end) return 1;
    bool follows = at > 0 && (is_mark(line[at - 1]) || line[at - 1] == ')');
    return c == ' ' && follows ? 1 : 0;
}

std::vector<ClausePart> parts_of(std::string_view line) {
    std::vector<ClausePart> parts(1);
    for (std::size_t at = 0; at < line.size();) {
        std::size_t length = separator(line, at);
        if (length == 0) {
            parts.back().end = ++at;
            continue;
        }
        std::size_t start = at;
        while (at < line.size() && (length = separator(line, at)) > 0) at += length;
        if (parts.back().end > parts.back().start || parts.size() > 1 || start > 0)
            parts.emplace_back();
        parts.back().before = line.substr(start, at - start);
        parts.back().start = parts.back().end = at;
    }
    return parts;
}

// Writes the punctuation between clauses, in Chinese form if it belongs to a translated clause.
class Marks {
  public:
    void add(std::string& out, std::string_view marks, bool left, bool right) {
        for (std::size_t i = 0; i < marks.size(); ++i) {
            char c = marks[i];
            bool blank_follows = i + 1 < marks.size() && marks[i + 1] == ' ';
            if (c == ' ' && i + 1 < marks.size() && marks[i + 1] == '(') continue;
            if (c == '(') {
                wide_.push_back(right);
                out += right ? "（" : out.empty() ? "(" : " (";
            } else if (c == ')') {
                bool wide = !wide_.empty() && wide_.back();
                if (!wide_.empty()) wide_.pop_back();
                out += wide ? "）" : ")";
                if (wide && blank_follows) ++i;
            } else if (const char* wide = left ? wide_mark(c, marks.substr(i)) : nullptr) {
                out += wide;
                if (blank_follows) ++i;
            } else {
                out += c;
            }
        }
    }

  private:
    static const char* wide_mark(char c, std::string_view rest) {
        if (rest.starts_with("..")) return nullptr;
        switch (c) {
            case ',':
                return "，";
            case ';':
                return "；";
            case ':':
                return "：";
            case '.':
                return "。";
            default:
                return nullptr;
        }
    }
    std::vector<bool> wide_;
};

struct ClauseChoice {
    std::size_t score = 0, last = 0;
    std::size_t closing = 0;  // parentheses after the last part that belong to the clause
    std::optional<std::string> translation;
};

// Returns, for each part, the clause that starts there in the best translation of the rest.
std::vector<ClauseChoice> choose(
    std::string_view line, const std::vector<ClausePart>& parts,
    const std::function<std::optional<Clause>(std::string_view)>& look) {
    constexpr std::size_t kMostParts = 16;  // per clause
    std::vector<ClauseChoice> best(parts.size() + 1);
    for (std::size_t i = parts.size(); i-- > 0;) {
        best[i] = {
            .score = best[i + 1].score, .last = i, .closing = 0, .translation = std::nullopt};
        for (std::size_t j = std::min(parts.size(), i + kMostParts); j-- > i;) {
            if (parts[j].end <= parts[i].start) continue;
            // A single word in a list is a name.
            bool is_listed = j + 1 < parts.size() && parts[j + 1].before.starts_with(", ");
            bool is_value = i > 0 && parts[i].before == ": ";  // "tf32: high"
            if (i == j && (is_listed || is_value) &&
                line.substr(parts[i].start, parts[i].end - parts[i].start).find(' ') ==
                    std::string_view::npos)
                continue;
            std::string_view text = line.substr(parts[i].start, parts[j].end - parts[i].start);
            std::size_t closing = j + 1 < parts.size() && parts[j + 1].before.starts_with(')') &&
                                  std::ranges::count(text, '(') > std::ranges::count(text, ')');
            auto clause = look(line.substr(parts[i].start, text.size() + closing));
            if (!clause || clause->weight + best[j + 1].score <= best[i].score) continue;
            best[i] = {.score = clause->weight + best[j + 1].score,
                       .last = j,
                       .closing = closing,
                       .translation = clause->translation};
        }
    }
    return best;
}

}  // namespace

Clause joined_clauses(std::string_view line,
                      const std::function<std::optional<Clause>(std::string_view)>& look) {
    std::vector<ClausePart> parts = parts_of(line);
    std::vector<ClauseChoice> best = choose(line, parts, look);
    if (best[0].score == 0) return {std::string(line), 0};
    std::string out;
    Marks marks;
    bool left = false;
    std::size_t closed = 0;
    for (std::size_t i = 0; i < parts.size(); i = best[i].last + 1) {
        std::string_view before = parts[i].before.substr(closed);
        closed = best[i].closing;
        std::size_t column = before.find("  ");
        // The longest label of the three lines of an error (base/error.h) has one blank after it.
        if (parts[i].start == kExpected.size() && line.starts_with(kExpected)) column = 1;
        marks.add(out, before.substr(0, column), left, best[i].translation.has_value());
        if (column != std::string_view::npos) {
            std::size_t wanted = display_width(line.substr(0, parts[i].start));
            // The blanks, and a parenthesis that opens behind them.
            std::string_view behind =
                before.substr(std::min(before.find_first_not_of(' ', column), before.size()));
            wanted -= std::min(wanted, behind.size());
            out += std::string(std::max(display_width(out) + 2, wanted) - display_width(out), ' ');
            marks.add(out, behind, false, best[i].translation.has_value());
        }
        const ClausePart& last = parts[best[i].last];
        left = best[i].translation.has_value();
        out += left ? *best[i].translation
                    : std::string(line.substr(parts[i].start, last.end - parts[i].start));
    }
    return {out, best[0].score};
}

bool PatchLines::holds(std::string_view line, std::string_view next) {
    std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    if (!inside_) {
        inside_ = line.substr(indent).starts_with("--- ") && trim(next).starts_with("+++ ");
        indent_ = indent;
        return inside_;
    }
    std::string_view text = line.size() >= indent_ ? line.substr(indent_) : "";
    inside_ = !text.empty() && std::string_view(" +-@\\").find(text[0]) != std::string_view::npos;
    return inside_;
}

}  // namespace saturate
