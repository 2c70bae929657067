// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>

#include "base/cache_folder.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "interrupt.h"
#include "probe/machine.h"
#include "report/tuning_text.h"
#include "serve_child.h"
#include "trial_command.h"
#include "trial_process.h"
#include "tune.h"
#include "tune_lock.h"
#include "tune_progress.h"
#include "tuning/command.h"
#include "tuning/pauses.h"
#include "tuning/trial_cache.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

constexpr double kLeastBudgetSeconds = 20;
constexpr int kProofRuns = 10;         // five pairs
constexpr double kGuardSteps = 8;      // of one run of the loss guard, at least
constexpr double kStartSeconds = 2.5;  // of a process that was not seen yet
constexpr double kReserveMost = 0.45;  // share of the budget that guard and proof may claim
constexpr double kOverrun = 0.1;       // share of the budget, ...
constexpr double kOverrunLeast = 30;   // ... or seconds: then the proof ends with what it has

class Tuner {
  public:
    explicit Tuner(const TuneRequest& request)
        : request_(request),
          lock_(request.device),
          cache_(request.fresh ? fs::path() : user_cache_folder() / "trials") {
        start_ns_ = now_ns();
        fs::path self = fs::read_symlink("/proc/self/exe");
        fs::path engine = self.parent_path() / "saturate-engine";
        struct stat program = {};
        if (::stat(engine.c_str(), &program) != 0) ::stat(self.c_str(), &program);
        identity_ = fmt::format("{} {} | {} x {} | {}", program.st_size, program.st_mtime,
                                probe_cpu().model, probe_cpu().cores_usable, request.device);
        if (!request.config.empty())
            identity_ += " | " + read_file(request.config, 16u << 20, "a configuration");
    }

    TuneAnswer run() {
        TuneAnswer answer;
        answer.search = search(search_settings(), [this](const TrialRequest& wanted) {
            return trial(wanted, "search");
        });
        if (answer.search.baseline) {
            follow_batch(answer.search);
            if (std::ranges::any_of(answer.search.best,
                                    [](const auto& entry) { return is_interval(entry.first); }))
                answer.search.notes.emplace_back(
                    "the proof is of the steps: what longer intervals save comes on top");
            if (!answer.search.best.empty() && !stopped()) guard(answer);
            if (!answer.search.best.empty() && !stopped()) prove_it(answer);
        } else if (!stopped()) {
            throw_no_baseline(answer.search);
        }
        answer.interrupted = stopped();
        answer.seconds = seconds();
        write_file_whole(request_.folder / "tune.json", to_json(answer).pretty() + "\n");
        return answer;
    }

  private:
    [[nodiscard]] double seconds() const { return static_cast<double>(now_ns() - start_ns_) / 1e9; }
    [[nodiscard]] bool stopped() const { return interrupts_.stop_signal() != 0; }
    [[nodiscard]] bool is_simulated() const { return request_.device.starts_with("sim:"); }

    [[nodiscard]] SearchSettings search_settings() {
        SearchSettings settings{
            .facts = request_.facts, .start = request_.start, .batch = request_.batch};
        if (request_.config.empty()) {
            settings.tunable = tunable_settings(request_.command, request_.facts.on_cpu);
            settings.can_leave_loader_out = false;
        }
        settings.can_measure_pauses = !request_.config.empty() && !is_simulated();
        settings.trial_seconds = std::clamp(request_.budget_seconds / 60, 0.4, 10.0);
        settings.is_stopped = [this] { return stopped(); };
        settings.seconds_left = [this] { return request_.budget_seconds - reserve() - seconds(); };
        settings.on_trial = [this](const Tried& tried) {
            progress_.line(trial_line(++shown_, tried));
        };
        return settings;
    }

    // Measured time of one run of the proof.
    [[nodiscard]] double proof_seconds() const {
        return std::clamp(request_.budget_seconds / 40, 0.5, 4.0);
    }

    // ... and of the loss guard.
    [[nodiscard]] double guard_seconds() const {
        return std::clamp(request_.budget_seconds / 40, 0.5, 8.0);
    }

    // What guard and proof will take, by the slowest job in force so far.
    [[nodiscard]] double reserve() const {
        double one = start_seconds_ + std::max(proof_seconds(), 3 * step_seconds_) + 0.5;
        double all = kProofRuns * one;
        if (guards())
            all += 3 * (start_seconds_ + std::max(guard_seconds(), kGuardSteps * step_seconds_));
        return std::min(all, kReserveMost * request_.budget_seconds);
    }

    [[noreturn]] void throw_no_baseline(const SearchAnswer& found) const {
        std::string log = (request_.folder / "trial-1.log").string();
        if (!found.trials.empty() && found.trials[0].outcome == TrialOutcome::too_slow) {
            throw UserError(
                {.where = {request_.config},
                 .found = fmt::format("--budget is {:.0f} s, and the first trial made {}",
                                      request_.budget_seconds, found.trials[0].message),
                 .expected = "time for at least five steps in each of a dozen trials",
                 .fix = "--budget 30m, or a smaller batch_size"});
        }
        throw UserError({.where = {request_.config},
                         .found = found.ended,
                         .expected = "a job that runs as it stands",
                         .fix = fmt::format("read {}", log)});
    }

    [[nodiscard]] Assignment in_force(const Assignment& over) const {
        Assignment out = request_.start;
        for (const auto& [key, value] : over) out[key] = value;
        return out;
    }

    // `stage` says what it is for; only the search may use what was measured before.
    TrialResult trial(const TrialRequest& wanted, std::string_view stage) {
        if (wanted.without_loader && request_.config.empty())
            return {.outcome = TrialOutcome::failed,
                    .message = "only train can leave its loader out"};
        std::string key = key_of(trial_command(request_, wanted, ""));
        // What a command of the user's does may have changed without its words.
        bool is_kept = stage == "search" && !request_.config.empty() && !wanted.with_pauses;
        bool may_use_cache = is_kept && !wanted.again;
        if (may_use_cache) {
            if (auto found = cache_.find(key)) {
                see(*found);
                return *found;
            }
        }
        if (trials_ == 0) count_model();
        progress_.working(fmt::format("{}: {}", stage, trial_name(wanted)), seconds());
        TrialProcess process = process_of(wanted, fmt::format("trial-{}", ++trials_));
        process.skip_first_epoch =
            !wanted.without_loader && value_of(in_force(wanted.settings), "cache") != "off";
        TrialResult result = run_trial_process(process);
        if (request_.facts.on_cpu) result.memory_limit_bytes = probe_memory().usable_bytes();
        if (request_.facts.device_memory_bytes > 0)
            result.memory_limit_bytes = request_.facts.device_memory_bytes;
        refuse_what_was_not_followed(result);
        see(result);
        if (!stopped() && is_kept) cache_.keep(key, result);
        return result;
    }

    [[nodiscard]] TrialProcess process_of(const TrialRequest& wanted, const std::string& name) {
        fs::path run = request_.folder / name;
        return {.command = trial_command(request_, wanted, run),
                .run_folder = run,
                .log = request_.folder / (name + ".log"),
                .seconds = wanted.seconds,
                .seconds_max = wanted.seconds_max,
                .hopeless_below = wanted.hopeless_below,
                .steps = trial_steps(wanted),
                .is_stopped = [this] { return stopped(); }};
    }

    // For a simulated device a model is counted once, on the CPU: apart from the first trial, and
    // without the workers that would be in its way. What goes wrong here goes wrong there, and is
    // said there.
    void count_model() {
        if (!is_simulated() || request_.config.empty()) return;
        progress_.working("counting the model", seconds());
        TrialRequest once{.settings = {{"num_workers", "0"}}, .without_loader = true, .steps = 1};
        once.seconds_max = 0.5 * request_.budget_seconds;
        (void)run_trial_process(process_of(once, "count"));
    }

    // How long a trial may take is no part of what it measures.
    [[nodiscard]] std::string key_of(const std::vector<std::string>& command) const {
        std::string key = identity_;
        for (std::size_t i = 0; i < command.size(); ++i) {
            bool is_limit = !request_.config.empty() && i > 0 && command[i - 1] == "--seconds";
            if (!is_limit) key += "\n" + command[i];
        }
        return key;
    }

    // How long a start and a step take: for the reserve.
    void see(const TrialResult& result) {
        if (!result.samples_per_second) return;
        const Rate& rate = *result.samples_per_second;
        if (shown_ == 0) step_seconds_ = rate.step_seconds;
        if (result.from_cache) return;
        double steps = static_cast<double>(rate.steps + rate.dropped) * rate.step_seconds;
        start_seconds_ = std::clamp(result.seconds - steps, 0.5, 20.0);
    }

    // A job that fell back to what it did before did not try the setting.
    static void refuse_what_was_not_followed(TrialResult& result) {
        constexpr std::string_view kRefused = "compile: not compiled: ";
        for (const EventRecord& event : result.record.events) {
            if (event.kind != EventKind::note || !event.text.starts_with(kRefused)) continue;
            result.outcome = TrialOutcome::failed;
            result.message = event.text.substr(kRefused.size());
        }
    }

    // Where the batch grew, the learning rate follows by the optimizer's rule.
    void follow_batch(SearchAnswer& found) const {
        auto size = found.best.find("batch_size");
        if (size == found.best.end() || found.best.contains("gradient_accumulation_steps")) return;
        auto old_rate = parse_number(value_of(request_.start, "learning_rate"));
        auto old_size = parse_number(value_of(request_.start, "batch_size"));
        LearningRateRule rule = rule_for(lower(value_of(request_.start, "optimizer")));
        if (!old_rate || !old_size || rule == LearningRateRule::none) return;
        double ratio = *parse_number(size->second) / *old_size;
        double rate = scaled_learning_rate(*old_rate, ratio, rule);
        found.best["learning_rate"] = fmt::format("{:.3g}", rate);
        found.notes.push_back(
            fmt::format("the learning rate follows the batch by the {} rule: {} -> {:.3g}",
                        rule_name(rule), *old_rate, rate));
    }

    // Intervals between pauses change no step.
    [[nodiscard]] static bool leaves_losses(const std::string& key) {
        const SettingInfo* info = find_setting(key);
        return info && (info->level == Level::safe || is_interval(key));
    }
    [[nodiscard]] static bool is_only_safe(const Assignment& change) {
        return std::ranges::all_of(change,
                                   [](const auto& entry) { return leaves_losses(entry.first); });
    }

    // A simulated device learns nothing, and a command keeps its losses to itself.
    [[nodiscard]] bool guards() const {
        return !request_.config.empty() && !is_simulated() && request_.facts.level > Level::safe;
    }

    // Over the same number of samples: twice as it was, once as it would be.
    void guard(TuneAnswer& answer) {
        if (!guards() || is_only_safe(answer.search.best)) return;
        double batch = parse_number(value_of(request_.start, "batch_size")).value_or(32);
        double samples =
            std::max(kGuardSteps * batch,
                     std::min(answer.search.baseline->median * guard_seconds(), 400 * batch));
        auto curve = [&](const Assignment& settings, std::uint64_t seed) {
            double size = parse_number(value_of(in_force(settings), "batch_size")).value_or(batch);
            TrialRequest wanted{.settings = settings,
                                .steps = std::max(4L, std::lround(samples / size))};
            wanted.seed = seed;
            wanted.settings["log_interval"] = "1";
            wanted.seconds_max = 0.15 * request_.budget_seconds;
            return loss_curve(trial(wanted, "loss").record.steps);
        };
        progress_.line(fmt::format("comparing losses over {:.0f} samples, three runs", samples));
        std::vector<LossCurve> baselines{curve({}, 1), curve({}, 2)};
        answer.guard = guard_loss(baselines, curve(answer.search.best, 1));
        if (answer.guard->verdict != GuardVerdict::differs &&
            answer.guard->verdict != GuardVerdict::nonfinite)
            return;
        // The path of the optimisation is the first to go back to what it was.
        Assignment kept;
        for (const auto& [key, value] : answer.search.best) {
            const SettingInfo* info = find_setting(key);
            if (info && (info->level <= Level::numerics || is_interval(key))) kept[key] = value;
        }
        if (kept.size() < answer.search.best.size()) {
            answer.search.notes.push_back(
                fmt::format("{}: {}", what_is_left_out(answer.search, kept), answer.guard->text));
            answer.search.best = kept;
            if (is_only_safe(kept)) return;
            answer.guard = guard_loss(baselines, curve(kept, 1));
            if (answer.guard->verdict == GuardVerdict::holds ||
                answer.guard->verdict == GuardVerdict::unknown)
                return;
        }
        answer.search.notes.push_back("numerics are left as they were: " + answer.guard->text);
        std::erase_if(answer.search.best,
                      [](const auto& entry) { return !leaves_losses(entry.first); });
    }

    // "batch_size=512 is left out, though 1.66 times as fast"
    [[nodiscard]] static std::string what_is_left_out(const SearchAnswer& found,
                                                      const Assignment& kept) {
        std::string out;
        double ratio = 1;
        for (const KeptSetting& setting : kept_settings(found)) {
            if (kept.contains(setting.key)) continue;
            out += fmt::format("{}{}={}", out.empty() ? "" : ", ", setting.key, setting.value);
            ratio *= setting.ratio.value_or(1);
        }
        return fmt::format("{} is left out, though {:.2f} times as fast", out, ratio);
    }

    void prove_it(TuneAnswer& answer) {
        progress_.line("proving: before and after in turns, five pairs at least");
        auto measure = [this](const Assignment& settings, DeviceUse& use) -> std::optional<double> {
            TrialRequest wanted{.settings = settings, .seconds = proof_seconds()};
            wanted.seconds_max = 0.25 * request_.budget_seconds;
            TrialResult result = trial(wanted, "proof");
            if (!result.ok()) return std::nullopt;
            add_use(use, result.record, result.samples_per_second->dropped);
            return result.samples_per_second->median;
        };
        double end =
            request_.budget_seconds + std::max(kOverrun * request_.budget_seconds, kOverrunLeast);
        ProofSettings settings{.pairs_max = request_.proof_pairs_max};
        settings.is_time_up = [this] { return seconds() > 0.97 * request_.budget_seconds; };
        answer.proof = prove(
            settings, [&] { return measure({}, answer.before); },
            [&] { return measure(answer.search.best, answer.after); },
            [&] { return stopped() || seconds() > end; });
        if (answer.guard) answer.proof->loss_guard = answer.guard->text;
        if (is_simulated())
            answer.proof->loss_guard = "not compared: a simulated device learns nothing";
        write_file_whole(request_.folder / "proof.json", to_json(*answer.proof).pretty() + "\n");
    }

    const TuneRequest& request_;
    DeviceLock lock_;
    TrialCache cache_;
    Interrupts interrupts_;
    TuneProgress progress_{request_.quiet, request_.budget_seconds};
    std::string identity_;
    std::int64_t start_ns_ = 0;
    int trials_ = 0;  // processes started
    int shown_ = 0;   // lines of the search
    double step_seconds_ = 0, start_seconds_ = kStartSeconds;
};

}  // namespace

TuneAnswer tune(const TuneRequest& request) {
    if (request.budget_seconds < kLeastBudgetSeconds) {
        throw UserError({.found = fmt::format("--budget is {:.0f} s", request.budget_seconds),
                         .expected = fmt::format("{:.0f} s or more: a trial takes seconds",
                                                 kLeastBudgetSeconds),
                         .fix = "--budget 5m"});
    }
    std::error_code error;
    fs::create_directories(request.folder, error);
    if (error || !fs::is_empty(request.folder, error)) {
        throw UserError({.where = {request.folder.string()},
                         .found = error ? error.message() : "the folder is not empty",
                         .expected = "a new folder for the trials",
                         .fix = "-o names another"});
    }
    if (!request.config.empty()) make_missing_data(request.config, request.quiet);
    if (request.serve)
        fmt::print(stderr, "the live page is {}\n",
                   start_page_server(request.folder, *request.serve));
    return Tuner(request).run();
}

Json to_json(const TuneAnswer& answer) {
    Json out = to_json(answer.search);
    out.set("interrupted", answer.interrupted);
    out.set("seconds", answer.seconds);
    if (answer.guard) out.set("loss_guard", to_json(*answer.guard));
    if (answer.proof) {
        out.set("proof", to_json(*answer.proof));
        out.set("use", Json::object(
                           {{"before", to_json(answer.before)}, {"after", to_json(answer.after)}}));
    }
    return out;
}

}  // namespace saturate
