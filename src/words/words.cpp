// SPDX-License-Identifier: Apache-2.0
#include "words/words.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <span>
#include <unordered_map>

#include "base/embedded.h"
#include "base/text.h"
#include "words/clauses.h"
#include "words/pattern.h"

namespace saturate {

std::span<const EmbeddedFile> embedded_zh();

namespace {

constexpr int kDeepest = 4;  // nesting of sentences within sentences

std::size_t letters_in(std::string_view text) {
    return static_cast<std::size_t>(std::ranges::count_if(
        text, [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }));
}

// True if the text has words that should be translated, and is not just a name or a list of names.
bool has_prose(std::string_view text) {
    int words = 0;
    for (std::string_view word : split(text, ' ')) {
        while (!word.empty() && std::ispunct(static_cast<unsigned char>(word.back())))
            word.remove_suffix(1);
        bool is_plain = word.size() > 1 &&
                        std::ranges::all_of(word, [](char c) { return c >= 'a' && c <= 'z'; });
        if (is_plain && ++words > 1) return true;
    }
    return false;
}

// Where the name begins behind the number of a finding, "F02 " or "H1 "; 0: there is none.
std::size_t behind_id(std::string_view text) {
    if (text.empty() || (text[0] != 'F' && text[0] != 'H')) return 0;
    std::size_t end = text.find_first_not_of("0123456789", 1);
    bool is_id = end != std::string_view::npos && end > 1 && text[end] == ' ';
    return is_id ? end + 1 : 0;
}

struct SentenceTable {
    SentenceTable() {
        for (const Sentence& sentence : all_sentences()) {
            Pattern pattern(sentence.english, sentence.chinese);
            if (sentence.english.find('}') == std::string::npos)  // no hole
                exact.emplace(sentence.english, sentence.chinese);
            else if (pattern.weight() > (pattern.is_same() ? 6 : 0))
                patterns.push_back(std::move(pattern));
        }
        std::ranges::stable_sort(patterns, std::ranges::greater(), &Pattern::weight);
    }
    std::unordered_map<std::string, std::string> exact;
    std::vector<Pattern> patterns;  // the largest weight first
};

const SentenceTable& chinese() {
    static const SentenceTable kTable;
    return kTable;
}

// Translates one text; caches its parts, which come up again and again.
class Translator {
  public:
    struct Found {
        std::string text;
        std::size_t weight = 0;   // number of letters that the table covers
        bool is_complete = true;  // no prose stays English
    };

    // Translates `text` if it is one sentence of the table, together with the text in its holes.
    std::optional<Found> whole(const std::string& text, int depth) {
        if (letters_in(text) == 0) return std::nullopt;
        if (auto known = chinese().exact.find(text); known != chinese().exact.end())
            return Found{known->second == "=" ? text : known->second, letters_in(text)};
        if (auto seen = seen_.find(text); seen != seen_.end()) return seen->second;
        std::optional<Found> out, part;  // complete and partial translation
        for (const Pattern& pattern : chinese().patterns) {
            auto holes = pattern.match(text);
            if (!holes) continue;
            if (pattern.is_same() && std::ranges::any_of(*holes, has_prose)) continue;
            Found found =
                pattern.is_same() ? Found{text, pattern.weight()} : filled(pattern, *holes, depth);
            constexpr std::size_t kSure = 10, kWeak = 8;
            // "{} is {}" matches nearly everything, so its holes must make sense too.
            if (found.is_complete && (pattern.weight() >= kWeak || are_plain(*holes, depth))) {
                out = found;
                break;
            }
            if (pattern.weight() >= kSure && !part) part = found;
        }
        return seen_[text] = out ? out : part;
    }

    // Translates a line without its indentation, as one sentence or clause by clause.
    Found line(const std::string& text, int depth) {
        // The lines of an error (base/error.h): the text after the label is a separate sentence and
        // stays aligned with the other lines.
        for (std::string_view label : {"error: ", "expected: ", "fix:      "}) {
            if (!text.starts_with(label)) continue;
            std::string name = chinese().exact.at(std::string(label.substr(0, label.find(':'))));
            std::string out = name + "：";
            bool is_first = label == "error: ";
            if (!is_first) out += std::string(label.size() - display_width(out), ' ');
            Found rest = line(text.substr(label.size()), depth);
            return {out + rest.text, label.size() + rest.weight, rest.is_complete};
        }
        // "also: F02 loader runs ...": neither the label nor the number is part of the sentence.
        constexpr std::string_view kAlso = "also: ";
        if (text.starts_with(kAlso)) {
            Found rest = line(text.substr(kAlso.size()), depth);
            return {"另外：" + rest.text, kAlso.size() + rest.weight, rest.is_complete};
        }
        // The point at the end is no part of what the table has.
        if (text.ends_with('.') && !text.ends_with("..")) {
            if (auto found = whole(text.substr(0, text.size() - 1), depth))
                return {found->text + "。", found->weight, found->is_complete};
        }
        if (auto found = whole(text, depth)) return *found;
        if (std::size_t name = behind_id(text); name > 0) {
            Found rest = line(text.substr(name), depth);
            return {text.substr(0, name) + rest.text, rest.weight, rest.is_complete};
        }
        bool is_complete = true;
        Clause out = joined_clauses(text, [&](std::string_view clause) {
            auto found = whole(std::string(clause), depth);
            if (found && !found->is_complete) is_complete = false;
            return found ? std::optional(Clause{found->text, found->weight}) : std::nullopt;
        });
        // Text that stays unchanged is a name, or a sentence that is not in the table.
        return {out.translation, out.weight, is_complete && !has_prose(out.translation)};
    }

  private:
    // True if all holes hold names, quoted texts or sentences of the table.
    bool are_plain(const std::vector<std::string_view>& holes, int depth) {
        return std::ranges::all_of(holes, [&](std::string_view hole) {
            if (hole.starts_with('"') || !has_prose(hole)) return true;
            if (depth >= kDeepest) return false;
            auto found = whole(std::string(hole), depth + 1);
            return found && found->is_complete;
        });
    }

    Found filled(const Pattern& pattern, const std::vector<std::string_view>& holes, int depth) {
        Found out{.text = "", .weight = pattern.weight()};
        for (const Pattern::Piece& piece : pattern.translation()) {
            if (piece.hole < 0) {
                out.text += piece.text;
                continue;
            }
            if (piece.hole >= static_cast<int>(holes.size())) continue;
            std::string inside(holes[static_cast<std::size_t>(piece.hole)]);
            // A single word is a name from the user, unless the translation marks the hole with ~.
            bool is_word = inside.find(' ') == std::string::npos;
            if (depth >= kDeepest || (is_word && !piece.has_word)) {
                out.text += inside;
                continue;
            }
            Found found = line(inside, depth + 1);
            out.text += found.text;
            out.weight += found.weight;
            out.is_complete = out.is_complete && found.is_complete;
        }
        return out;
    }

    std::unordered_map<std::string, std::optional<Found>> seen_;
};

std::size_t indent_of(std::string_view line) {
    return std::min(line.find_first_not_of(' '), line.size());
}

// Returns how many of the lines may be one broken sentence, joined in `whole`: lines with the same
// indentation, all long except the last.
std::size_t broken_lines(std::span<const std::string_view> lines, std::string& whole) {
    constexpr std::size_t kLong = 60, kMost = 8;
    std::size_t indent = indent_of(lines[0]), count = 1;
    whole = trim(lines[0]);
    while (count < std::min(lines.size(), kMost) && lines[count - 1].size() > kLong &&
           indent_of(lines[count]) == indent && lines[count].size() > indent) {
        whole += ' ';
        whole += trim(lines[count++]);
    }
    return count;
}

constexpr std::string_view kMark = "saturate: ";  // run puts it before each of its lines

std::string_view without_mark(std::string_view line) {
    return line.starts_with(kMark) ? line.substr(kMark.size()) : line;
}

// A line of a user's traceback: File "train.py", line 9, in main.
bool is_of_traceback(std::string_view line) {
    return trim(line).starts_with("File \"") && line.find("\", line ") != std::string_view::npos;
}

std::string translated_line(Translator& translator, std::string_view line) {
    if (is_of_traceback(line)) return std::string(line);
    std::string out(line.substr(0, indent_of(line)));
    line.remove_prefix(out.size());
    if (line.starts_with(kMark)) {
        std::size_t after = kMark.size() + indent_of(line.substr(kMark.size()));
        out += line.substr(0, after);
        line.remove_prefix(after);
    }
    return out + translator.line(std::string(line), 0).text;
}

}  // namespace

Language language_of(std::string_view option, std::string_view locale) {
    std::string_view chosen = option.empty() ? locale : option;
    return chosen.starts_with("zh") ? Language::chinese : Language::english;
}

std::string translated(std::string_view english, Language language) {
    if (language == Language::english) return std::string(english);
    std::string out;
    for (const ShownLine& line : translated_lines(english, language)) out += line.text + '\n';
    out.pop_back();
    return out;
}

std::vector<ShownLine> translated_lines(std::string_view english, Language language) {
    std::vector<std::string_view> lines = split(english, '\n');
    std::vector<ShownLine> out;
    PatchLines patch;
    Translator translator;
    for (std::size_t i = 0; i < lines.size();) {
        bool is_patch = patch.holds(without_mark(lines[i]),
                                    i + 1 < lines.size() ? without_mark(lines[i + 1]) : "");
        if (is_patch || language == Language::english) {
            std::size_t mark = lines[i].size() - without_mark(lines[i]).size();
            out.push_back(
                {lines[i], std::string(lines[i]), is_patch, is_patch ? mark + patch.indent() : 0});
            ++i;
            continue;
        }
        std::string sentence;
        std::size_t count = broken_lines(std::span(lines).subspan(i), sentence);
        std::optional<Translator::Found> found;
        constexpr std::size_t kSure = 25;  // a smaller match of joined lines may be chance
        if (count > 1) {                   // a line that is a sentence has not been broken
            auto alone = translator.whole(std::string(trim(lines[i])), 0);
            if (alone && alone->is_complete) count = 1;
        }
        while (count > 1) {
            found = translator.whole(sentence, 0);
            if (!found && sentence.ends_with('.')) {
                found = translator.whole(sentence.substr(0, sentence.size() - 1), 0);
                if (found) found->text += "。";
            }
            if (found && found->weight >= kSure && found->is_complete) break;
            found.reset();
            --count;
            sentence.resize(sentence.size() - trim(lines[i + count]).size() - 1);
        }
        out.push_back({lines[i], found ? std::string(indent_of(lines[i]), ' ') + found->text
                                       : translated_line(translator, lines[i])});
        i += count;
    }
    return out;
}

std::vector<Sentence> all_sentences() {
    std::vector<Sentence> out;
    for (const EmbeddedFile& file : embedded_zh()) {
        for (std::string_view line : split(file.text, '\n')) {
            if (line.empty() || line[0] == '#') continue;
            if (line[0] == ' ')
                out.back().chinese = trim(line);
            else
                out.push_back({std::string(line), ""});
        }
    }
    return out;
}

}  // namespace saturate
