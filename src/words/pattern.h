// SPDX-License-Identifier: Apache-2.0
// A sentence with holes, such as "{} samples, {:.1f} s". Matches it against finished text and
// returns the text in the holes, for filling the translation. Used only by words.cpp.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saturate {

class Pattern {
  public:
    Pattern(std::string_view english, std::string_view chinese);

    // Returns the text in each hole if the whole text is this sentence, else nullopt.
    [[nodiscard]] std::optional<std::vector<std::string_view>> match(std::string_view text) const;
    // Returns the number of letters outside holes. If two sentences match, the one with more wins.
    [[nodiscard]] std::size_t weight() const { return weight_; }

    // A piece of the translation: text, or a hole, {} or {2}. {~} also translates a single word in
    // it; {!} leaves it out ("is" or "are", which Chinese does not need).
    struct Piece {
        std::string text;
        int hole = -1;
        bool has_word = false;
    };
    [[nodiscard]] const std::vector<Piece>& translation() const { return translation_; }
    [[nodiscard]] bool is_same() const { return is_same_; }  // code or names, which stay unchanged

  private:
    struct Hole {
        bool is_number = false;
        bool is_ending = false;       // a plural ending: letters or nothing
        bool is_behind_hole = false;  // in {}{} the first hole takes all
    };
    bool match_from(std::string_view text, std::size_t hole, std::vector<std::string_view>& found,
                    int& tries) const;

    std::vector<std::string> literals_;  // one more than there are holes
    std::vector<Hole> holes_;
    std::vector<Piece> translation_;
    std::size_t weight_ = 0;
    bool is_same_ = false;
};

}  // namespace saturate
