// SPDX-License-Identifier: Apache-2.0
// Translates the text of HTML pages into the reader's language and escapes it for HTML.
#pragma once

#include <string>
#include <string_view>

#include "report/timeline_html.h"
#include "words/words.h"

namespace saturate {

class PageWords {
  public:
    explicit PageWords(Language language) : language_(language) {}
    [[nodiscard]] std::string operator()(std::string_view english) const {
        return html_text(translated(english, language_));
    }
    [[nodiscard]] std::string_view code() const {  // for <html lang>
        return language_ == Language::chinese ? "zh-CN" : "en";
    }

  private:
    Language language_;
};

}  // namespace saturate
