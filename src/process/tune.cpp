// SPDX-License-Identifier: Apache-2.0
#include "process/tune.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include "base/cache_folder.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "probe/machine.h"
#include "process/device_lock.h"
#include "process/scratch_tree.h"
#include "process/signals.h"
#include "process/thread_wait.h"
#include "process/trial_command.h"
#include "process/trial_process.h"
#include "tuning/busy_machine.h"
#include "tuning/in_force.h"
#include "tuning/trial_cache.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kHalfSecondNs = 500'000'000;

// Runs trials as processes, one after another, and keeps the cache of their results.
class TrialMaker {
  public:
    TrialMaker(const TuneRequest& request, const TuneListener& listener)
        : request_(request),
          listener_(listener),
          lock_(request.device),
          cache_(request.fresh ? fs::path() : user_cache_folder() / "trials") {
        fs::path self = fs::read_symlink("/proc/self/exe");
        fs::path engine = self.parent_path() / "saturate-engine";
        struct stat program = {};
        if (::stat(engine.c_str(), &program) != 0) ::stat(self.c_str(), &program);
        CpuFacts cpu = probe_cpu();
        identity_ = fmt::format("{} {} | {} x {} | {}", program.st_size, program.st_mtime,
                                cpu.model, cpu.cores_usable, request.device);
        if (request.job.is_ours()) {
            // Read once: changes that the user saves during the search do not count.
            std::string text = read_file(request.job.config, 16u << 20, "a configuration");
            write_file_whole(config_snapshot(request), text);
            identity_ += " | " + text;
        }
    }

    [[nodiscard]] double seconds() const { return static_cast<double>(now_ns() - start_ns_) / 1e9; }
    [[nodiscard]] bool stopped() const { return interrupts_.stop_signal() != 0; }

    // Runs one trial. Only the search stage may use cached results.
    TrialResult run(const TrialRequest& wanted, std::string_view stage) {
        if (wanted.without_loader && !request_.job.is_ours())
            return {.outcome = TrialOutcome::failed,
                    .message = "only train can run without its loader"};
        std::string key = key_of(trial_command(request_, wanted, ""));
        // A user's own command may behave differently although its words are the same.
        bool is_kept = stage == "search" && request_.job.is_ours() && !wanted.with_pauses;
        bool may_use_cache = is_kept && !wanted.again;
        if (may_use_cache) {
            if (auto found = cache_.find(key)) return *found;
        }
        if (trials_ == 0) count_model();
        std::string what = trial_name(wanted);
        what_ = fmt::format("{}: {}", stage, what);
        TrialProcess process = process_of(wanted, fmt::format("trial-{}", ++trials_));
        process.name = stage == "search" ? what : fmt::format("{}: {}", stage, what);
        std::optional<ScratchTree> tree;
        if (!request_.job.is_ours()) put_in_tree(tree, process, wanted);
        Assignment in_force = request_.start;
        for (const auto& [name, value] : wanted.settings) in_force[name] = value;
        process.skip_first_epoch = !wanted.without_loader && value_of(in_force, "cache") != "off";
        TrialResult result = run_trial_process(process);
        if (request_.facts.on_cpu) result.memory_limit_bytes = probe_memory().usable_bytes();
        if (request_.facts.device_memory_bytes > 0)
            result.memory_limit_bytes = request_.facts.device_memory_bytes;
        refuse_what_was_not_followed(result);
        if (!request_.job.is_ours() && result.ok()) {
            if (auto why = not_in_force(wanted.settings, result.record)) {
                result.outcome = TrialOutcome::not_in_force;
                result.message = *why;
            }
        }
        if (!stopped() && is_kept) cache_.keep(key, result);
        return result;
    }

  private:
    void working() const {
        if (listener_.on_working) listener_.on_working(what_, seconds());
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
                .is_stopped = [this] {
                    working();
                    return stopped();
                }};
    }

    // Runs a user's own command in an overlay, so that nothing it writes remains. Without overlays
    // it runs in place: a tree of links lacks files that a command may name. The command finds the
    // settings at the path of its configuration. A configuration outside of the project is read
    // from the copy next to the record.
    void put_in_tree(std::optional<ScratchTree>& tree, TrialProcess& process,
                     const TrialRequest& wanted) {
        std::string text, copy, own = request_.job.config;
        if (request_.file) {
            text = request_.file->with(wanted.settings);
            copy = trial_config(request_, process.run_folder).string();
            write_file_whole(copy, text);
        }
        if (!can_overlay()) return;
        fs::path guarded = guarded_around("."), here = fs::canonical(".");
        std::vector<ScratchFile> edited;
        if (request_.file) {
            fs::path real = fs::canonical(own);
            if (*real.lexically_relative(guarded).begin() != "..")
                edited.push_back({real.lexically_relative(here), text});
            else
                own = fs::absolute(copy);
        }
        tree.emplace(ScratchSettings{.folder = guarded,
                                     .inside = here.lexically_relative(guarded),
                                     .parent = {},
                                     .edited = edited,
                                     .writable = fs::absolute(request_.folder)});
        auto end = std::ranges::find(process.command, "--") + 1;
        std::vector<std::string> command(end, process.command.end());
        process.command.erase(end, process.command.end());
        for (std::string& word : command)
            if (std::size_t at = word.find(copy); !copy.empty() && at != std::string::npos)
                word.replace(at, copy.size(), own);
        for (const std::string& word : command_in_tree(*tree, command))
            process.command.push_back(word);
        process.guard = tree->guard();
    }

    // Counts the operations of a model once on the CPU for a simulated device. It is a run of its
    // own, without workers, which would disturb it. A failure here repeats in the first trial and
    // is reported there.
    void count_model() {
        if (!request_.is_simulated() || !request_.job.is_ours()) return;
        what_ = "counting the model's operations";
        TrialRequest once{.settings = {{"num_workers", "0"}}, .without_loader = true, .steps = 1};
        once.seconds_max = 0.5 * request_.budget_seconds;
        (void)run_trial_process(process_of(once, "count"));
    }

    // Leaves out the time limit, which does not affect the result, and the path of the
    // configuration's copy, whose text is in the key already.
    [[nodiscard]] std::string key_of(const std::vector<std::string>& command) const {
        std::string key = identity_;
        for (std::size_t i = 0; i < command.size(); ++i) {
            bool is_apart = request_.job.is_ours() && i > 0 &&
                            (command[i - 1] == "--seconds" || command[i - 1] == "--snapshot");
            if (!is_apart) key += "\n" + command[i];
        }
        return key;
    }

    const TuneRequest& request_;
    const TuneListener& listener_;
    DeviceLock lock_;
    TrialCache cache_;
    Signals interrupts_{Signals::Role::stop};
    std::string identity_;
    std::int64_t start_ns_ = now_ns();
    int trials_ = 0;    // processes started
    std::string what_;  // goes on now
};

}  // namespace

void make_tune_folder(const TuneRequest& request) {
    std::error_code error;
    fs::create_directories(request.folder, error);
    if (!error && fs::is_empty(request.folder, error) && !error) return;
    throw UserError({.where = {request.folder.string()},
                     .found = error ? error.message() : "the folder is not empty",
                     .expected = "a new folder for the trials",
                     .fix = "choose another with -o"});
}

TuneAnswer tune(const TuneRequest& request, const TuneListener& listener) {
    check_budget(request.budget_seconds);
    TrialMaker maker(request, listener);
    TuneWorld world{.run = [&](const TrialRequest& wanted,
                               std::string_view stage) { return maker.run(wanted, stage); },
                    .seconds = [&] { return maker.seconds(); },
                    .is_stopped = [&] { return maker.stopped(); },
                    .on_trial =
                        [&](int number, const Tried& tried) {
                            if (listener.on_trial) listener.on_trial(number, tried);
                        },
                    .on_line =
                        [&](const std::string& text) {
                            if (listener.on_line) listener.on_line(text);
                        }};
    world.busy = [] { return busy_machine(resting_machine(kHalfSecondNs)); };
    TuneAnswer answer = conduct(request, world);
    if (answer.proof)
        write_file_whole(request.folder / "proof.json", to_json(*answer.proof).pretty() + "\n");
    write_file_whole(request.folder / "tune.json", to_json(answer).pretty() + "\n");
    return answer;
}

}  // namespace saturate
