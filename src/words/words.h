// SPDX-License-Identifier: Apache-2.0
// What the program says, in the reader's language. The sources are written in English; one table
// (zh/*.txt) has each sentence in Chinese, with {} where numbers and names stand. Sentences are
// translated where they are shown and nowhere else: records, JSON and files stay English, and text
// that was written by an older run or by Python is translated like any other.
// Called by app/shared/show.h and by the pages of report/; pure functions, from any thread. English
// costs nothing: the table is not even looked at.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace saturate {

enum class Language { english, chinese };

// `--lang` if given ("en", "zh"), else what the locale says ("zh_CN.UTF-8").
[[nodiscard]] Language language_of(std::string_view option, std::string_view locale);

// One line or many. What the table does not have stays English; patches stay as they are.
[[nodiscard]] std::string translated(std::string_view english, Language language);

// The same line by line, with what each was: a sentence that English had broken into several lines
// is one.
struct ShownLine {
    std::string_view english;  // its first line, a part of the text given
    std::string text;
    bool is_patch = false;  // for programs to read: neither translated nor broken
};
[[nodiscard]] std::vector<ShownLine> translated_lines(std::string_view english, Language language);

// A row of the table, for tests.
struct Sentence {
    std::string english, chinese;
};
[[nodiscard]] std::vector<Sentence> all_sentences();

}  // namespace saturate
