// SPDX-License-Identifier: Apache-2.0
// Keeps the settings in force during a search and decides whether a candidate beats them by more
// than the noise. Used by tuning/search, single-threaded.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tuning/search.h"

namespace saturate {

struct How {
    bool without_loader = false;
    bool again = false;
    bool may_be_hopeless = false;
    bool with_pauses = false;
};

class Contest {
  public:
    Contest(const SearchSettings& settings, const RunTrial& run, SearchAnswer& answer)
        : settings_(settings), run_(run), answer_(answer), start_(settings.start) {}

    // Puts the baseline in force.
    void begin(const TrialResult& baseline);
    // Adds a value that the running job reported. It does not replace one that is known.
    void learn(const std::string& key, const std::string& value) { start_.emplace(key, value); }

    [[nodiscard]] Assignment settings() const;
    [[nodiscard]] const Rate& rate() const { return *rate_; }
    [[nodiscard]] const TrialResult& result() const { return result_; }

    // Returns false and writes the reason into the answer if the search is over.
    bool may_go_on();
    [[nodiscard]] double seconds_left() const;

    TrialResult trial(const Assignment& change, How how = {});
    Tried& note(std::string cause, std::string reason, const Assignment& change,
                const TrialResult& result);
    void tell(const Tried& tried) const;

    // Tries the move. Returns true if it is better and now in force. A close call is left open.
    bool attempt(const Move& move);
    // Decides the open close calls, the most promising first. Returns true if one is now in force.
    bool settle();
    // True if the change measured as `tried` gains more than `least` and the noise. Decides a close
    // call by running both again.
    bool is_better(Tried& tried, double least);
    void put_in_force(Tried& tried, const TrialResult& result);

  private:
    enum class Verdict { better, close, no_better };
    struct CloseCall {
        Move move;
        std::size_t trial = 0;  // index in the answer's trials
        TrialResult result;
        Assignment best;  // the best settings at that time
    };
    Verdict judge(Tried& tried, double least);
    bool settle(const CloseCall& call);
    [[nodiscard]] double noise(const Rate& candidate) const;
    void compare_anew(Tried& tried);
    bool holds_again(Tried& tried, double least);

    const SearchSettings& settings_;
    const RunTrial& run_;
    SearchAnswer& answer_;
    Assignment start_;
    std::optional<Rate> rate_;
    TrialResult result_;
    std::vector<CloseCall> close_;
};

}  // namespace saturate
