// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "interrupt.h"
#include "probe/machine.h"
#include "report/tuning_text.h"
#include "serve_child.h"
#include "trial_process.h"
#include "tune.h"
#include "tuning/trial_cache.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

// Shares of the budget: the proof takes ten runs and the guard three.
constexpr double kSearchShare = 0.6;
constexpr double kLeastBudgetSeconds = 20;
constexpr double kProofSeconds = 4;  // measured time of one run of the proof

fs::path cache_folder() {
    if (const char* own = std::getenv("SATURATE_CACHE"); own && *own) return own;
    if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg)
        return fs::path(xdg) / "saturate";
    if (const char* home = std::getenv("HOME"); home && *home)
        return fs::path(home) / ".cache/saturate";
    return fs::temp_directory_path() / "saturate";
}

// Two searches on one device would measure each other.
class DeviceLock {
  public:
    explicit DeviceLock(const std::string& device) {
        fs::path folder = cache_folder();
        std::error_code ignored;
        fs::create_directories(folder, ignored);
        std::string name = device;
        std::ranges::replace_if(
            name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '-');
        fs::path file = folder / ("tune-" + name + ".lock");
        fd_ = ::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
        if (fd_ < 0) return;  // a cache that cannot be written is no reason to stop
        if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) return;
        ::close(fd_);
        fd_ = -1;
        throw UserError({.where = {file.string()},
                         .found = fmt::format("another search is measuring on {}", device),
                         .expected = "one at a time: two would measure each other",
                         .fix = "wait for it, or name another --device"});
    }
    ~DeviceLock() {
        if (fd_ >= 0) ::close(fd_);
    }
    DeviceLock(const DeviceLock&) = delete;
    DeviceLock& operator=(const DeviceLock&) = delete;

  private:
    int fd_ = -1;
};

fs::path self() { return fs::read_symlink("/proc/self/exe"); }

class Tuner {
  public:
    explicit Tuner(const TuneRequest& request)
        : request_(request),
          lock_(request.device),
          cache_(request.fresh ? fs::path() : cache_folder() / "trials") {
        start_ns_ = now_ns();
        std::string engine = (self().parent_path() / "saturate-engine").string();
        struct stat program = {};
        if (::stat(engine.c_str(), &program) != 0) ::stat(self().c_str(), &program);
        identity_ = fmt::format("{} {} | {} x {} | {}", program.st_size, program.st_mtime,
                                probe_cpu().model, probe_cpu().cores_usable, request.device);
        if (!request.config.empty())
            identity_ += " | " + read_file(request.config, 16u << 20, "a configuration");
    }

    TuneAnswer run() {
        TuneAnswer answer;
        SearchSettings settings{
            .facts = request_.facts, .start = request_.start, .batch = request_.batch};
        settings.budget_seconds = kSearchShare * request_.budget_seconds;
        settings.trial_seconds = std::clamp(request_.budget_seconds / 40, 2.0, 10.0);
        settings.is_stopped = [this] { return interrupts_.stop_signal() != 0; };
        settings.seconds_since_start = [this] { return seconds(); };
        int number = 0;
        settings.on_trial = [&](const Tried& tried) {
            if (!request_.quiet) fmt::print(stderr, "{}\n", trial_line(number, tried));
            ++number;
        };
        answer.search =
            search(settings, [this](const TrialRequest& wanted) { return trial(wanted, true); });
        if (!answer.search.baseline) {
            throw UserError(
                {.where = {request_.config},
                 .found = answer.search.ended,
                 .expected = "a job that runs as it stands",
                 .fix = fmt::format("read {}", (request_.folder / "trial-1.log").string())});
        }
        follow_batch(answer.search);
        if (!answer.search.best.empty() && !stopped()) {
            guard(answer);
            if (!answer.search.best.empty()) prove_it(answer);
        }
        answer.interrupted = stopped();
        write_file_whole(request_.folder / "tune.json", to_json(answer).pretty() + "\n");
        return answer;
    }

  private:
    [[nodiscard]] double seconds() const { return static_cast<double>(now_ns() - start_ns_) / 1e9; }
    [[nodiscard]] bool stopped() const { return interrupts_.stop_signal() != 0; }

    [[nodiscard]] std::vector<std::string> command_of(const TrialRequest& wanted,
                                                      const fs::path& run) const {
        if (!request_.config.empty()) {
            std::vector<std::string> out{self().string(), "train",    "--config",
                                         request_.config, "--device", request_.device,
                                         "--quiet",       "-o",       run.string()};
            for (const auto& [key, value] : wanted.settings) {
                out.push_back("--set");
                out.push_back(key + "=" + value);
            }
            if (wanted.seed) {
                out.push_back("--set");
                out.push_back(fmt::format("seed={}", *wanted.seed));
            }
            if (wanted.without_loader) out.push_back("--one-batch");
            if (wanted.steps > 0) {
                out.push_back("--steps");
                out.push_back(std::to_string(wanted.steps));
            } else {
                // The watching ends it; this is for a search that was killed.
                out.push_back("--seconds");
                out.push_back(fmt::format("{:.0f}", 10 * wanted.seconds + 300));
            }
            return out;
        }
        std::vector<std::string> out{self().string(), "run", "--profile", "off", "-o",
                                     run.string(),    "--"};
        for (std::string word : request_.command) {
            for (const auto& [key, value] : in_force(wanted.settings))
                replace_all(word, "{" + key + "}", value);
            out.push_back(word);
        }
        return out;
    }

    [[nodiscard]] Assignment in_force(const Assignment& over) const {
        Assignment out = request_.start;
        for (const auto& [key, value] : over) out[key] = value;
        return out;
    }

    static void replace_all(std::string& text, const std::string& from, const std::string& to) {
        for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
            text.replace(at, from.size(), to);
    }

    TrialResult trial(const TrialRequest& wanted, bool may_use_cache) {
        if (wanted.without_loader && request_.config.empty())
            return {.outcome = TrialOutcome::failed,
                    .message = "only train can leave its loader out"};
        std::string key = identity_;
        for (const std::string& word : command_of(wanted, "")) key += "\n" + word;
        if (may_use_cache) {
            if (auto found = cache_.find(key)) return *found;
        }
        std::string name = fmt::format("trial-{}", ++trials_);
        TrialProcess process{.command = command_of(wanted, request_.folder / name),
                             .run_folder = request_.folder / name,
                             .log = request_.folder / (name + ".log"),
                             .seconds = wanted.seconds,
                             .steps = wanted.steps};
        process.is_stopped = [this] { return stopped(); };
        TrialResult result = run_trial_process(process);
        if (request_.facts.on_cpu) result.memory_limit_bytes = probe_memory().usable_bytes();
        if (!stopped()) cache_.keep(key, result);
        return result;
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

    [[nodiscard]] static bool is_only_safe(const Assignment& change) {
        return std::ranges::all_of(change, [](const auto& entry) {
            const SettingInfo* info = find_setting(entry.first);
            return info && info->level == Level::safe;
        });
    }

    // Three runs over the same number of samples: two as it was, one as it would be.
    void guard(TuneAnswer& answer) {
        if (request_.config.empty() || is_only_safe(answer.search.best)) return;
        double batch = parse_number(value_of(request_.start, "batch_size")).value_or(32);
        double samples =
            std::max(40 * batch, std::min(answer.search.baseline->median * 8, 400 * batch));
        auto curve = [&](const Assignment& settings, std::uint64_t seed) {
            double size = parse_number(value_of(in_force(settings), "batch_size")).value_or(batch);
            TrialRequest wanted{.settings = settings,
                                .steps = std::max(8L, std::lround(samples / size))};
            wanted.seed = seed;
            wanted.settings["log_interval"] = "1";
            return loss_curve(trial(wanted, false).record.steps);
        };
        if (!request_.quiet)
            fmt::print(stderr, "comparing losses over {:.0f} samples ...\n", samples);
        std::vector<LossCurve> baselines{curve({}, 1), curve({}, 2)};
        answer.guard = guard_loss(baselines, curve(answer.search.best, 1));
        if (answer.guard->verdict != GuardVerdict::differs &&
            answer.guard->verdict != GuardVerdict::nonfinite)
            return;
        // The path of the optimisation is the first to go back to what it was.
        Assignment kept;
        for (const auto& [key, value] : answer.search.best) {
            const SettingInfo* info = find_setting(key);
            if (info && info->level <= Level::numerics) kept[key] = value;
        }
        answer.search.notes.push_back("the batch size is left as it was: " + answer.guard->text);
        answer.search.best = kept;
        if (is_only_safe(kept)) return;
        answer.guard = guard_loss(baselines, curve(kept, 1));
        if (answer.guard->verdict == GuardVerdict::holds ||
            answer.guard->verdict == GuardVerdict::unknown)
            return;
        answer.search.notes.push_back("numerics are left as they were: " + answer.guard->text);
        std::erase_if(answer.search.best, [](const auto& entry) {
            const SettingInfo* info = find_setting(entry.first);
            return !info || info->level != Level::safe;
        });
    }

    void prove_it(TuneAnswer& answer) {
        if (!request_.quiet) fmt::print(stderr, "proving: before and after in turns ...\n");
        auto measure = [this](const Assignment& settings) -> std::optional<double> {
            TrialRequest wanted{.settings = settings, .seconds = kProofSeconds};
            TrialResult result = trial(wanted, false);
            if (!result.ok()) return std::nullopt;
            return result.samples_per_second->median;
        };
        auto is_stopped = [this] { return stopped() || seconds() > 1.5 * request_.budget_seconds; };
        answer.proof = prove(
            {}, [&] { return measure({}); }, [&] { return measure(answer.search.best); },
            is_stopped);
        if (answer.guard) answer.proof->loss_guard = answer.guard->text;
        write_file_whole(request_.folder / "proof.json", to_json(*answer.proof).pretty() + "\n");
    }

    const TuneRequest& request_;
    DeviceLock lock_;
    TrialCache cache_;
    Interrupts interrupts_;
    std::string identity_;
    std::int64_t start_ns_ = 0;
    int trials_ = 0;
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
    if (request.serve)
        fmt::print(stderr, "the live page is {}\n",
                   start_page_server(request.folder, *request.serve));
    return Tuner(request).run();
}

Json to_json(const TuneAnswer& answer) {
    Json out = to_json(answer.search);
    out.set("interrupted", answer.interrupted);
    if (answer.guard) out.set("loss_guard", to_json(*answer.guard));
    if (answer.proof) out.set("proof", to_json(*answer.proof));
    return out;
}

}  // namespace saturate
