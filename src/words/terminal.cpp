// SPDX-License-Identifier: Apache-2.0
#include "words/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace saturate {

namespace {

// Returns the display width without escape sequences.
std::size_t shown_width(std::string_view text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\x1b') {
            i = std::min(text.find('m', i), text.size());
            continue;
        }
        plain += text[i];
    }
    return display_width(plain);
}

bool is_wide(std::string_view character) { return character.size() >= 3; }

// Returns the end of a bracket such as "[4.69, 6.25]" or "[-o DIR]" that starts at `at`, or npos if
// there is none or it is too long.
std::size_t end_of_bracket(std::string_view line, std::size_t at) {
    constexpr std::size_t kLongest = 40;
    if (at >= line.size() || line[at] != '[') return std::string_view::npos;
    std::size_t end = line.find(']', at);
    return end == std::string_view::npos || end - at > kLongest ? std::string_view::npos : end + 1;
}

// Splits the line into pieces that stay whole: a word with the blanks before it, a short bracket,
// or a Chinese character with the marks that must not start a line.
std::vector<std::string_view> pieces_of(std::string_view line) {
    std::vector<std::string_view> out;
    auto next = [&](std::size_t at) {
        std::size_t end = at + 1;
        while (end < line.size() && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) ++end;
        return end;
    };
    constexpr std::string_view kNeverFirst = "，。；：、）”！？";
    for (std::size_t at = 0; at < line.size();) {
        std::size_t end = std::min(line.find_first_not_of(' ', at), line.size());
        if (std::size_t after = end_of_bracket(line, end); after != std::string_view::npos)
            end = after;
        while (end < line.size() && line[end] != ' ') {
            std::string_view one = line.substr(end, next(end) - end);
            bool was_wide = is_wide(one);
            end += one.size();
            if (end >= line.size() || line[end] == ' ') break;
            std::string_view following = line.substr(end, next(end) - end);
            if (is_wide(following) && kNeverFirst.find(following) != std::string_view::npos)
                continue;
            if (following == "/" || one == "/") continue;  // "样本/秒"
            if (was_wide && one != "（" && one != "“") break;
            if (is_wide(following)) break;
        }
        out.push_back(line.substr(at, end - at));
        at = end;
    }
    return out;
}

// Returns the indentation of continued lines: the last column of a table if that leaves enough
// room, else two more than the line.
std::size_t hanging_indent(std::string_view line, std::size_t columns) {
    std::size_t first = std::min(line.find_first_not_of(' '), line.size());
    constexpr std::string_view kLabel = "expected: ";  // of an error; other labels are padded
    if (line.substr(first).starts_with(kLabel)) return first + kLabel.size();
    std::size_t gap = line.rfind("  ");
    if (gap != std::string_view::npos && gap >= first) {
        std::size_t column = shown_width(line.substr(0, gap + 2));
        constexpr std::size_t kEnough = 20;  // columns for the text
        if (column * 5 <= columns * 3 || column + kEnough <= columns) return column;
    }
    return first + 2;
}

// Returns where a command to copy begins, "fix: saturate run -- python train.py", or npos.
std::size_t command_in(std::string_view line) {
    constexpr std::string_view kProgram = "saturate ";
    for (std::size_t at = line.find(kProgram); at != std::string_view::npos;
         at = line.find(kProgram, at + 1)) {
        std::string_view before = line.substr(0, at);
        before = before.substr(0, before.find_last_not_of(' ') + 1);
        if (before.size() < at && (before.ends_with(':') || before.ends_with("："))) return at;
        if (before.ends_with("：")) return at;
    }
    return std::string_view::npos;
}

constexpr const char *kBold = "\x1b[1m", *kRed = "\x1b[1;31m", *kGreen = "\x1b[32m",
                     *kYellow = "\x1b[33m", *kFaint = "\x1b[2m";

struct LineTone {
    std::string_view start;  // start of the line, after its indentation
    const char* code;
};

// The first match counts.
constexpr LineTone kTones[] = {
    {"error:", kRed},
    {"warning:", kYellow},
    {"note:", kFaint},
    {"regression:", kRed},
    {"FAILED", kRed},
    {"Verdict faster", kGreen},
    {"Verdict: good", kGreen},
    {"Verdict slower", kRed},
    {"Verdict: low", kRed},
    {"Verdict", kYellow},
    {"gain:", kGreen},
    {"all fixes together:", kGreen},
    {"the fixes below", kGreen},
    {"the GPU is busy", kBold},
    {"The claimed speed-up is reached", kGreen},
    {"Faster", kGreen},
    {"Your job does not run", kRed},
    {"biggest cause:", kBold},
};

}  // namespace

std::string fitted(std::string_view line, std::size_t columns) {
    if (shown_width(line) <= columns) return std::string(line);
    std::string indent(hanging_indent(line, columns), ' ');
    std::string out;
    std::size_t used = 0, command = command_in(line), end = 0;
    for (std::string_view piece : pieces_of(line)) {
        std::size_t width = shown_width(piece);
        // The shell reads a broken command as one if its lines end in a backslash.
        bool is_command = command < end;
        end += piece.size();
        std::size_t room = columns - (command < end && end < line.size() ? 2 : 0);
        if (used > indent.size() && used + width > room) {
            piece.remove_prefix(std::min(piece.find_first_not_of(' '), piece.size()));
            if (is_command) out += " \\";
            out += "\n" + indent;
            used = indent.size();
            width = shown_width(piece);
        }
        out += piece;
        used += width;
    }
    return out;
}

std::string coloured(std::string_view text, std::string_view english) {
    if (text.find('\x1b') != std::string_view::npos) return std::string(text);
    // `run` marks its lines, because the command writes to the same terminal.
    constexpr std::string_view kOurs = "saturate: ";
    std::string_view start = english.starts_with(kOurs) ? english.substr(kOurs.size()) : english;
    start.remove_prefix(std::min(start.find_first_not_of(' '), start.size()));
    const LineTone* tone = std::ranges::find_if(
        kTones, [&](const LineTone& one) { return start.starts_with(one.start); });
    if (tone == std::end(kTones)) return std::string(text);
    std::string out;
    for (std::string_view line : split(text, '\n')) {
        if (!out.empty()) out += '\n';
        out.append(tone->code).append(line).append("\x1b[0m");
    }
    return out;
}

std::string coloured_patch(std::string_view line, std::size_t from) {
    constexpr const char *kRemoved = "\x1b[31m", *kPlace = "\x1b[36m";
    std::string_view text = line.substr(std::min(from, line.size()));
    const char* code = text.starts_with("--- ") || text.starts_with("+++ ") ? kBold
                       : text.starts_with('-')                              ? kRemoved
                       : text.starts_with('+')                              ? kGreen
                       : text.starts_with("@@")                             ? kPlace
                                                                            : nullptr;
    if (!code) return std::string(line);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return fmt::format("{}{}\x1b[0m", code, line);
}

}  // namespace saturate
