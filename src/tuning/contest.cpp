// SPDX-License-Identifier: Apache-2.0
#include "tuning/contest.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

namespace saturate {

namespace {

// A smaller gain is not worth another setting in the file.
constexpr double kLeastGain = 0.02;
// Two processes with the same settings differ by about this much, however steady each one is.
constexpr double kLeastNoise = 0.01;
// A gain beyond this many times the noise needs no second look.
constexpr double kSure = 2;
constexpr std::size_t kMostRuns = 3;  // of each side, in a close call
// Gives up a candidate if each of its windows stays below this share of the current best rate.
constexpr double kHopeless = 0.9;
// If rates vary by kNoisy within one run, a loss beyond kFarBelow is more likely a busy moment of
// the machine than the setting.
constexpr double kFarBelow = 0.3;
constexpr double kNoisy = 0.1;
constexpr double kNoEnd = 1e9;

// Sets the rate to the mean and range of several runs.
void take_all(Rate& rate, const std::vector<double>& runs) {
    if (runs.size() < 2) return;
    rate.per_second =
        std::accumulate(runs.begin(), runs.end(), 0.0) / static_cast<double>(runs.size());
    rate.low = std::ranges::min(runs);
    rate.high = std::ranges::max(runs);
    rate.n = static_cast<int>(runs.size());
}

}  // namespace

void Contest::begin(const TrialResult& baseline) {
    rate_ = answer_.baseline = *baseline.samples_per_second;
    result_ = baseline;
}

Assignment Contest::settings() const {
    Assignment out = start_;
    for (const auto& [key, value] : answer_.best) out[key] = value;
    return out;
}

bool Contest::may_go_on() {
    if (!answer_.ended.empty()) return false;
    if (settings_.is_stopped && settings_.is_stopped())
        answer_.ended = "stopped; this is the best so far";
    if (seconds_left() <= 0) answer_.ended = "the time budget is used up";
    return answer_.ended.empty();
}

double Contest::seconds_left() const {
    return settings_.seconds_left ? settings_.seconds_left() : kNoEnd;
}

TrialResult Contest::trial(const Assignment& change, How how) {
    TrialRequest request{.settings = answer_.best,
                         .without_loader = how.without_loader,
                         .seconds = settings_.trial_seconds,
                         .again = how.again,
                         .with_pauses = how.with_pauses};
    if (how.may_be_hopeless && rate_) request.hopeless_below = kHopeless * rate_->per_second;
    // One trial must not use up the time of the others. Without a baseline there are no others yet.
    request.seconds_max = std::clamp((rate_ ? 0.6 : 0.9) * seconds_left(), 20.0, 300.0);
    for (const auto& [key, value] : change) request.settings[key] = value;
    return run_(request);
}

Tried& Contest::note(std::string cause, std::string reason, const Assignment& change,
                     const TrialResult& result) {
    Tried tried{.cause = std::move(cause),
                .reason = std::move(reason),
                .change = change,
                .outcome = result.outcome,
                .message = result.message,
                .rate = result.samples_per_second,
                .from_cache = result.from_cache,
                .seconds = result.seconds};
    if (tried.rate && rate_) tried.ratio = tried.rate->per_second / rate_->per_second;
    answer_.trials.push_back(std::move(tried));
    return answer_.trials.back();
}

void Contest::tell(const Tried& tried) const {
    if (settings_.on_trial) settings_.on_trial(tried);
}

bool Contest::attempt(const Move& move) {
    TrialResult result = trial(move.change, {.may_be_hopeless = true});
    if (!may_go_on() && !result.ok()) return false;  // stopped in the middle of the trial
    Tried& tried = note(move.cause, move.reason, move.change, result);
    Verdict verdict = result.ok() ? judge(tried, kLeastGain) : Verdict::no_better;
    if (verdict == Verdict::better) put_in_force(tried, result);
    if (verdict == Verdict::close) {
        tried.open = true;
        close_.push_back({move, answer_.trials.size() - 1, result, answer_.best});
    }
    tell(tried);
    return tried.kept;
}

bool Contest::settle() {
    if (close_.empty() || !may_go_on()) return false;
    // If the best settings were measured at a bad moment, everything else looks close.
    TrialResult now = trial({}, {.again = true});
    tell(note("current best, measured again", "before close calls are decided", {}, now));
    if (now.ok() && now.samples_per_second->per_second > rate_->per_second) {
        rate_ = *now.samples_per_second;
        result_ = now;
    }
    auto looked = [this](const CloseCall& call) { return answer_.trials[call.trial].ratio; };
    std::ranges::stable_sort(close_, std::greater<>(), looked);
    bool changed = false;
    for (const CloseCall& call : std::exchange(close_, {})) changed = settle(call) || changed;
    return changed;
}

bool Contest::settle(const CloseCall& call) {
    // Another value of this setting may have been kept meanwhile.
    bool decided = std::ranges::any_of(
        call.move.change, [&](const auto& entry) { return answer_.best.contains(entry.first); });
    if (decided || !may_go_on()) return false;
    TrialResult result = call.result;
    if (call.best == answer_.best) {
        Tried again = answer_.trials[call.trial];
        again.seconds = 0;
        again.ratio = again.rate->per_second / rate_->per_second;
        answer_.trials.push_back(std::move(again));
    } else {
        result = trial(call.move.change, {.may_be_hopeless = true});
        if (!may_go_on() && !result.ok()) return false;
        note(call.move.cause, call.move.reason, call.move.change, result);
    }
    Tried& tried = answer_.trials.back();
    tried.open = false;
    if (result.ok() && is_better(tried, kLeastGain)) put_in_force(tried, result);
    tell(tried);
    return tried.kept;
}

bool Contest::is_better(Tried& tried, double least) {
    Verdict verdict = judge(tried, least);
    return verdict == Verdict::better ||
           (verdict == Verdict::close && may_go_on() && holds_again(tried, least));
}

Contest::Verdict Contest::judge(Tried& tried, double least) {
    least = std::max(least, kLeastGain);
    double noisy = noise(*tried.rate);
    bool is_far_below = tried.ratio < 1 - kFarBelow;
    bool is_doubtful = is_far_below ? noisy > kNoisy : settings_.facts.on_cpu && tried.ratio < 1;
    if (is_doubtful && may_go_on()) {
        compare_anew(tried);
        noisy = noise(*tried.rate);
    }
    double gain = tried.ratio - 1;
    if (gain > least + kSure * noisy && !is_doubtful) return Verdict::better;
    return gain > 0 && gain >= least - noisy ? Verdict::close : Verdict::no_better;
}

void Contest::put_in_force(Tried& tried, const TrialResult& result) {
    tried.kept = true;
    for (const auto& [key, value] : tried.change) answer_.best[key] = value;
    rate_ = *tried.rate;
    result_ = result;
}

double Contest::noise(const Rate& candidate) const {
    return std::max({kLeastNoise, rate_->spread(), candidate.spread()});
}

// On a shared machine the best settings may have been measured at a better moment. Measures them
// again before a candidate is called slower. On a CPU this is common.
void Contest::compare_anew(Tried& tried) {
    TrialResult old = trial({}, {.again = true});
    tried.seconds += old.seconds;
    if (old.ok()) {
        rate_ = *old.samples_per_second;
        result_ = old;
    }
    tried.ratio = tried.rate->per_second / rate_->per_second;
}

// Runs both again, in turns, up to three runs of each. Every run of the new settings must beat
// every run of the old; the first that does not ends the comparison. Two runs of each are enough if
// the gap between both sides is larger than the range within each.
bool Contest::holds_again(Tried& tried, double least) {
    least = std::max(least, kLeastGain);
    std::vector<double> before{rate_->per_second}, after{tried.rate->per_second};
    auto once_more = [&](const Assignment& change, std::vector<double>& runs) {
        TrialResult result = trial(change, {.again = true});
        tried.seconds += result.seconds;
        if (result.ok()) runs.push_back(result.samples_per_second->per_second);
        return result.ok() && std::ranges::min(after) > std::ranges::max(before);
    };
    bool is_apart = true, is_clear = false;
    while (is_apart && !is_clear && before.size() < kMostRuns && may_go_on()) {
        is_apart = once_more(tried.change, after) && once_more({}, before);
        auto [old_low, old_high] = std::ranges::minmax(before);
        auto [new_low, new_high] = std::ranges::minmax(after);
        is_clear = new_low - old_high > std::max(old_high - old_low, new_high - new_low);
    }
    take_all(*rate_, before);
    take_all(*tried.rate, after);
    tried.ratio = tried.rate->per_second / rate_->per_second;
    return is_apart && before.size() > 1 && tried.ratio > 1 + least;
}

}  // namespace saturate
