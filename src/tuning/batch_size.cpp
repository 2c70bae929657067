// SPDX-License-Identifier: Apache-2.0
#include "tuning/batch_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace saturate {

namespace {

// A look at a larger size that gains this share of the best rate is worth another look.
constexpr double kStillGains = 0.01;

class BatchFinder {
  public:
    BatchFinder(std::int64_t start, const BatchLimits& limits, const Assignment& base,
                const RunTrial& run)
        : limits_(limits), base_(base), run_(run), start_(rounded(start)) {}

    BatchAnswer find() {
        // Probes down from the user's own size, which is known to run, to get points for two lines.
        // If four times the size has room, the third point comes from above instead.
        probe(start_);
        if (!limits_.climb_only || !best()) probe(part_of_start(2));
        if (!best() || (!limits_.climb_only && !has_room(4 * start_))) probe(part_of_start(4));
        while (!best() && can_probe() && smallest_tried() > limits_.min) {
            std::int64_t smaller = rounded(std::max(limits_.min, smallest_tried() / 4));
            if (smaller >= smallest_tried()) break;
            probe(smaller);
        }
        if (!best()) {
            answer_.why = answer_.probes.empty()
                              ? "no batch size could be tried"
                              : fmt::format("no size ran: {} at {}",
                                            outcome_name(answer_.probes.back().outcome),
                                            answer_.probes.back().size);
            return answer_;
        }
        climb();
        choose();
        return answer_;
    }

  private:
    // Rounds to a multiple of the step. If the effective batch is kept, to a size that divides it.
    [[nodiscard]] std::int64_t rounded(std::int64_t size) const {
        std::int64_t step = std::max<std::int64_t>(1, limits_.step);
        std::int64_t down = size >= step ? size / step * step : size;
        down = std::clamp(down, limits_.min, limits_.max);
        return limits_.effective_batch ? divisor_near(down, *limits_.effective_batch) : down;
    }
    // The largest divisor up to `size`, or the next one above it, within the limits. A range that
    // holds no divisor cannot keep the effective batch: then `size` itself.
    [[nodiscard]] std::int64_t divisor_near(std::int64_t size, std::int64_t whole) const {
        std::int64_t top = std::min(whole, limits_.max);
        for (std::int64_t at = std::min(size, top); at >= std::max<std::int64_t>(1, limits_.min);
             --at)
            if (whole % at == 0) return at;
        for (std::int64_t at = size + 1; at <= top; ++at)
            if (whole % at == 0) return at;
        return size;
    }
    [[nodiscard]] bool can_probe() const {
        return !over_ && static_cast<int>(answer_.probes.size()) < limits_.probes_max;
    }
    [[nodiscard]] bool was_tried(std::int64_t size) const {
        return std::ranges::find(answer_.probes, size, &BatchProbe::size) != answer_.probes.end();
    }
    [[nodiscard]] std::int64_t smallest_tried() const {
        return std::ranges::min(answer_.probes, {}, &BatchProbe::size).size;
    }
    [[nodiscard]] std::int64_t largest_good() const {
        std::int64_t out = 0;
        for (const BatchProbe& p : answer_.probes) {
            if (p.rate) out = std::max(out, p.size);
        }
        return out;
    }
    [[nodiscard]] const BatchProbe* best() const {
        const BatchProbe* out = nullptr;
        for (const BatchProbe& p : answer_.probes) {
            if (p.rate && (!out || p.rate->per_second > out->rate->per_second)) out = &p;
        }
        return out;
    }

    [[nodiscard]] std::int64_t part_of_start(std::int64_t part) const {
        return rounded(std::max<std::int64_t>(1, start_ / part));
    }
    // True if the memory line predicts at most half of the allowed share. A line through two points
    // is trusted that far.
    [[nodiscard]] bool has_room(std::int64_t size) const {
        return answer_.memory && memory_limit_ && answer_.memory->per_unit > 0 &&
               answer_.memory->at(static_cast<double>(size)) <=
                   0.5 * limits_.memory_share * static_cast<double>(*memory_limit_);
    }

    void probe(std::int64_t size) {
        if (was_tried(size) || !can_probe()) return;
        TrialRequest request{.settings = base_};
        request.settings["batch_size"] = std::to_string(size);
        TrialResult result = run_(request);
        if (result.outcome == TrialOutcome::not_run) {
            over_ = true;
            return;
        }
        BatchProbe probe{.size = size, .outcome = result.outcome, .seconds = result.seconds};
        if (result.ok()) probe.rate = result.samples_per_second;
        probe.memory_bytes = result.memory_peak_bytes;
        if (result.record.summary) probe.busy_percent = result.record.summary->busy_percent;
        if (result.memory_limit_bytes) memory_limit_ = result.memory_limit_bytes;
        if (result.outcome == TrialOutcome::out_of_memory ||
            result.outcome == TrialOutcome::out_of_host_memory) {
            answer_.failed_at = std::min(answer_.failed_at.value_or(size), size);
        }
        answer_.probes.push_back(probe);
        // The job ignores the size; it would ignore another size too.
        if (result.outcome == TrialOutcome::not_in_force) over_ = true;
        fit();
    }

    void fit() {
        std::vector<Point> memory, time;
        for (const BatchProbe& p : answer_.probes) {
            if (!p.rate) continue;
            double size = static_cast<double>(p.size);
            time.push_back({size, size / p.rate->per_second});
            if (p.memory_bytes) memory.push_back({size, static_cast<double>(*p.memory_bytes)});
        }
        answer_.time = fit_line(time);
        answer_.memory = fit_line(memory);
        answer_.memory_bound.reset();
        if (answer_.memory && memory_limit_ && answer_.memory->per_unit > 0) {
            double room = limits_.memory_share * static_cast<double>(*memory_limit_) -
                          answer_.memory->at_zero;
            answer_.memory_bound = std::max<std::int64_t>(
                0, static_cast<std::int64_t>(room / answer_.memory->per_unit));
        }
    }

    [[nodiscard]] std::int64_t most() const {
        std::int64_t out = limits_.max;
        if (limits_.effective_batch) out = std::min(out, *limits_.effective_batch);
        if (answer_.memory_bound) out = std::min(out, *answer_.memory_bound);
        if (answer_.failed_at) out = std::min(out, *answer_.failed_at - 1);
        return std::max(limits_.min, out);
    }

    // Climbs to at most four times the largest measured size, because the lines are straight near
    // the probes only. Looks above once in any case, and again while a look gains. Each new probe
    // improves the fit. A falling rate ends the climb.
    void climb() {
        std::int64_t look = 4 * start_;
        while (can_probe()) {
            std::int64_t top = rounded(most());
            std::int64_t wish = top;
            if (answer_.time && !limits_.target_busy_percent) {
                double at = knee(*answer_.time, static_cast<double>(top), limits_.knee_share);
                wish = std::min(top, std::max(rounded_up(at), rounded(look)));
            }
            std::int64_t next = std::min(wish, rounded(4 * largest_good()));
            if (next <= largest_good() || was_tried(next)) break;
            std::size_t before = answer_.probes.size();
            double best_before = best()->rate->per_second;
            probe(next);
            if (answer_.probes.size() == before) break;
            const BatchProbe last = answer_.probes.back();
            if (last.outcome == TrialOutcome::too_slow) break;
            if (!last.rate) {
                // Too large: try half way between the largest size that ran and this one.
                std::int64_t middle = rounded((largest_good() + last.size) / 2);
                if (middle <= largest_good() || was_tried(middle)) break;
                before = answer_.probes.size();
                probe(middle);
                if (answer_.probes.size() == before || !answer_.probes.back().rate) break;
                continue;
            }
            if (limits_.target_busy_percent &&
                last.busy_percent.value_or(0) >= *limits_.target_busy_percent)
                break;
            if (last.rate->per_second < best_before * (1 - limits_.knee_share)) break;
            bool gained = last.rate->per_second > best_before * (1 + kStillGains);
            look = gained ? 2 * last.size : 0;
        }
    }

    [[nodiscard]] std::int64_t rounded_up(double size) const {
        double step = static_cast<double>(std::max<std::int64_t>(1, limits_.step));
        return rounded(static_cast<std::int64_t>(std::ceil(size / step) * step));
    }

    [[nodiscard]] bool fits_memory(const BatchProbe& p) const {
        return !memory_limit_ || !p.memory_bytes ||
               static_cast<double>(*p.memory_bytes) <=
                   limits_.memory_share * static_cast<double>(*memory_limit_);
    }

    void choose() {
        std::vector<const BatchProbe*> good;
        for (const BatchProbe& p : answer_.probes) {
            if (p.rate && fits_memory(p)) good.push_back(&p);
        }
        if (good.empty()) {
            answer_.why = fmt::format("every size that ran takes more than {:.0f} % of the memory",
                                      100 * limits_.memory_share);
            return;
        }
        std::ranges::sort(good, {}, &BatchProbe::size);
        double top = 0;
        for (const BatchProbe* p : good) top = std::max(top, p->rate->per_second);
        const BatchProbe* chosen = nullptr;
        for (const BatchProbe* p : good) {
            bool busy = !limits_.target_busy_percent ||
                        p->busy_percent.value_or(0) >= *limits_.target_busy_percent;
            if (!chosen && busy && p->rate->per_second >= (1 - limits_.knee_share) * top)
                chosen = p;
        }
        std::string short_of_target;
        if (!chosen) {
            chosen = *std::ranges::max_element(
                good, {}, [](const BatchProbe* p) { return p->rate->per_second; });
            short_of_target = fmt::format("; no size keeps the device {:.0f} % busy",
                                          *limits_.target_busy_percent);
        }
        answer_.size = chosen->size;
        if (limits_.effective_batch)
            answer_.accumulation =
                std::max<std::int64_t>(1, *limits_.effective_batch / chosen->size);
        answer_.why = fmt::format(
            "{} is the smallest size within {:.0f} % of the best rate measured "
            "({:.0f} of {:.0f} samples/s){}{}",
            chosen->size, 100 * limits_.knee_share, chosen->rate->per_second, top,
            answer_.failed_at ? fmt::format("; {} ran out of memory", *answer_.failed_at) : "",
            short_of_target);
    }

    const BatchLimits& limits_;
    const Assignment& base_;
    const RunTrial& run_;
    std::int64_t start_;
    std::optional<std::uint64_t> memory_limit_;
    bool over_ = false;  // no more trials
    BatchAnswer answer_;
};

}  // namespace

BatchAnswer find_batch_size(std::int64_t start, const BatchLimits& limits, const Assignment& base,
                            const RunTrial& run) {
    return BatchFinder(start, limits, base, run).find();
}

Json to_json(const BatchAnswer& answer) {
    auto line = [](const std::optional<StraightLine>& fit) {
        if (!fit) return Json();
        return Json::object(
            {{"at_zero", fit->at_zero}, {"per_sample", fit->per_unit}, {"error", fit->error}});
    };
    Json probes = Json::array();
    for (const BatchProbe& p : answer.probes) {
        Json row = Json::object({{"batch_size", p.size},
                                 {"outcome", std::string(outcome_name(p.outcome))},
                                 {"memory_bytes", p.memory_bytes},
                                 {"seconds", p.seconds}});
        if (p.rate) row.set("samples_per_second", p.rate->per_second);
        probes.add(row);
    }
    return Json::object({{"probes", probes},
                         {"memory_bytes", line(answer.memory)},
                         {"step_seconds", line(answer.time)},
                         {"memory_bound", answer.memory_bound},
                         {"failed_at", answer.failed_at},
                         {"batch_size", answer.size},
                         {"accumulation", answer.accumulation},
                         {"why", answer.why}});
}

}  // namespace saturate
