// SPDX-License-Identifier: Apache-2.0
// Translates the program's text into the reader's language. The sources are in English; a table
// (zh/*.txt) has each sentence in Chinese, with {} for numbers and names. Text is translated only
// when it is shown: records, JSON and files stay English, and text from an older run or from Python
// is translated like any other. Called by app/shared/show.h and by the pages of report/. Pure
// functions, callable from any thread. For English the table is not even loaded.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace saturate {

enum class Language { english, chinese };

// Returns the language of `--lang` if given ("en", "zh"), else of the locale ("zh_CN.UTF-8").
[[nodiscard]] Language language_of(std::string_view option, std::string_view locale);

// Translates one or more lines. Sentences that are not in the table stay English; patches stay
// unchanged.
[[nodiscard]] std::string translated(std::string_view english, Language language);

// The same as a list of lines with their English originals. A sentence that was broken into several
// English lines becomes one entry.
struct ShownLine {
    std::string_view english;  // its first line; a view into the given text
    std::string text;
    bool is_patch = false;       // for programs to read: neither translated nor broken
    std::size_t patch_from = 0;  // where the text of the patch begins in the line
};
[[nodiscard]] std::vector<ShownLine> translated_lines(std::string_view english, Language language);

// A row of the table, for tests.
struct Sentence {
    std::string english, chinese;
};
[[nodiscard]] std::vector<Sentence> all_sentences();

}  // namespace saturate
