// SPDX-License-Identifier: Apache-2.0
// A sentence with holes: "{} samples, {:.1f} s". Matches finished text and yields what stands in
// the holes; fills a translation with it. Used by words.cpp alone.
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

    // What stands in each hole, if the whole text is this sentence.
    [[nodiscard]] std::optional<std::vector<std::string_view>> match(std::string_view text) const;
    // Letters outside holes: of two sentences that match, the one that says more is meant.
    [[nodiscard]] std::size_t weight() const { return weight_; }

    // A piece of the translation: text, or a hole: {}, {2}; {~} translates a single word in it too,
    // {!} leaves it out ("is" or "are", which Chinese has not).
    struct Piece {
        std::string text;
        int hole = -1;
        bool has_word = false;
    };
    [[nodiscard]] const std::vector<Piece>& translation() const { return translation_; }
    [[nodiscard]] bool is_same() const { return is_same_; }  // code, names: stays as it is

  private:
    struct Hole {
        bool is_number = false;
        bool is_ending = false;       // the s of a plural: letters or nothing
        bool is_behind_hole = false;  // of {}{} the first takes all
    };
    bool match_from(std::string_view text, std::size_t hole, std::vector<std::string_view>& found,
                    int& tries) const;

    std::vector<std::string> literals_;  // one more than holes
    std::vector<Hole> holes_;
    std::vector<Piece> translation_;
    std::size_t weight_ = 0;
    bool is_same_ = false;
};

}  // namespace saturate
