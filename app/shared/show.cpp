// SPDX-License-Identifier: Apache-2.0
#include "show.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "base/text.h"
#include "words/terminal.h"

namespace saturate {

namespace {

Language language = Language::english;

bool is_terminal(std::FILE* file) { return ::isatty(::fileno(file)) == 1; }

}  // namespace

void set_language(Language chosen) { language = chosen; }
Language shown_language() { return language; }

std::string shown(std::string_view text) { return translated(text, language); }

bool wants_colour(std::FILE* to) {
    const char* no_colour = std::getenv("NO_COLOR");
    const char* kind = std::getenv("TERM");
    return is_terminal(to) && (!no_colour || *no_colour == '\0') &&
           !(kind && std::string_view(kind) == "dumb");
}

bool wants_coloured_words(std::FILE* to) {
    return wants_colour(to) && language == Language::english;
}

bool has_broken_lines(std::FILE* to) { return !is_terminal(to) && language == Language::english; }

std::size_t columns_of(std::FILE* to) {
    if (!is_terminal(to)) return 0;
    constexpr std::size_t kUsual = 80, kLeast = 20;
    winsize size{};
    if (::ioctl(::fileno(to), TIOCGWINSZ, &size) == 0 && size.ws_col >= kLeast) return size.ws_col;
    const char* columns = std::getenv("COLUMNS");
    auto given = parse_integer(columns ? columns : "");
    return given && *given >= static_cast<std::int64_t>(kLeast) ? static_cast<std::size_t>(*given)
                                                                : kUsual;
}

void show(std::FILE* to, std::string_view text) {
    std::size_t columns = columns_of(to);
    std::string out;
    if (columns == 0) {
        out = shown(text);
    } else {
        bool colour = wants_colour(to);
        for (const ShownLine& line : translated_lines(text, language)) {
            std::string fit = line.is_patch ? line.text : fitted(line.text, columns);
            out += !colour         ? fit
                   : line.is_patch ? coloured_patch(fit, line.patch_from)
                                   : coloured(fit, line.english);
            out += '\n';
        }
        out.pop_back();
    }
    std::fwrite(out.data(), 1, out.size(), to);
}

}  // namespace saturate
