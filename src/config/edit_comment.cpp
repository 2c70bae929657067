// SPDX-License-Identifier: Apache-2.0
// Writes reasons as trailing comments: after the value, or after a comment that is there.
#include <algorithm>

#include "base/text.h"
#include "config/edit_plan.h"
#include "config/yaml_scan.h"

namespace saturate {

std::string one_line(const std::string& reason) {
    std::string out;
    for (std::size_t i = 0; i < reason.size(); ++i) {
        std::string_view rest = std::string_view(reason).substr(i);
        // Further line ends of YAML 1.1: NEL, and the two separators of Unicode.
        std::size_t size = rest.starts_with("\xC2\x85")                                      ? 2
                           : rest.starts_with("\xE2\x80\xA8")                                ? 3
                           : rest.starts_with("\xE2\x80\xA9")                                ? 3
                           : static_cast<unsigned char>(rest[0]) <= ' ' || rest[0] == '\x7F' ? 1
                                                                                             : 0;
        if (size == 0) {
            out += reason[i];
        } else {
            if (!out.empty() && out.back() != ' ') out += ' ';
            i += size - 1;
        }
    }
    return std::string(trim(out));
}

void Comments::add(const EditTarget& target, std::size_t end, const std::string& reason) {
    std::string line_text = one_line(reason);
    if (line_text.empty() || document_.format() == Format::json) return;
    const std::string& text = document_.text();
    std::size_t line_end = lines_.end(end);
    std::string_view line = std::string_view(text).substr(0, line_end);
    std::size_t rest = end;
    if (target.brackets != nullptr) {
        // If all brackets close in this line, after them; else after the commas that follow.
        bool closes = target.brackets->placed && target.brackets->end <= line_end;
        rest = closes ? std::max(end, target.brackets->end) : end;
        if (!closes) rest = std::min(line.find_first_not_of(" \t,]}", rest), line_end);
        while (rest > end && (line[rest - 1] == ' ' || line[rest - 1] == '\t')) --rest;
    }
    std::size_t hash = skip_blanks(line, rest);
    bool is_new = hash == line_end;
    if (!is_new && (line[hash] != '#' || hash == end)) return;
    std::size_t at = rest;
    if (!is_new) {
        std::string_view comment = trim(line.substr(hash));
        if (comment.ends_with(line_text)) return;  // the same comment is there already
        at = hash + comment.size();
    }
    auto known = std::ranges::find(comments_, at, &Comment::at);
    if (known == comments_.end()) {
        std::string_view before = is_new ? "  # " : at == hash + 1 ? " " : "; ";
        comments_.push_back({at, before, {line_text}});
    } else if (std::ranges::find(known->reasons, line_text) == known->reasons.end()) {
        known->reasons.push_back(line_text);
    }
}

void Comments::write(Patches& patches) const {
    for (const Comment& comment : comments_) {
        std::string text = std::string(comment.before) + join(comment.reasons, "; ");
        patches.add(comment.at, comment.at, std::move(text), Patches::Rank::comment);
    }
}

}  // namespace saturate
