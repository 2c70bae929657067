// SPDX-License-Identifier: Apache-2.0
#include "process/trial_command.h"

#include <fmt/format.h>

#include "base/host.h"
#include "tuning/command.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr std::int64_t kPauseSteps = 4;

Words train_command(const TuneRequest& request, const TrialRequest& wanted, const fs::path& run) {
    Words out{own_program(), "train",
              "--config",    request.job.config,
              "--snapshot",  config_snapshot(request).string(),
              "--device",    request.device,
              "--quiet",     "-o",
              run.string()};
    auto set = [&out](const std::string& entry) {
        out.emplace_back("--set");
        out.push_back(entry);
    };
    for (const auto& [key, value] : wanted.settings) set(key + "=" + value);
    if (wanted.seed) set(fmt::format("seed={}", *wanted.seed));
    // Other schedules need to know the length of the training. The schedule costs no time.
    if (request.start.contains("schedule")) set("schedule=constant");
    if (wanted.with_pauses) {
        // Two of each: the first one of a process is slower.
        set("eval_steps=2");
        set("checkpoint_steps=2");
    } else {
        out.emplace_back("--bare");
    }
    if (wanted.without_loader) out.emplace_back("--one-batch");
    if (std::int64_t steps = trial_steps(wanted); steps > 0) {
        out.emplace_back("--steps");
        out.push_back(std::to_string(steps));
    } else {
        // The watching process ends the trial; this limit is for a search that was killed.
        out.emplace_back("--seconds");
        out.push_back(fmt::format("{:.0f}", wanted.seconds_max + 60));
    }
    return out;
}

Words run_command(const TuneRequest& request, const TrialRequest& wanted, const fs::path& run) {
    CommandWords words = command_words(request.job.command, request.start, wanted.settings);
    if (request.file) {
        words.apply.clear();  // the file has all settings
        std::string copy = trial_config(request, run).string();
        for (std::string& word : words.words) {
            if (std::size_t at = word.find(kConfigWord); at != std::string::npos)
                word.replace(at, kConfigWord.size(), copy);
        }
    }
    Words out{own_program(), "run", "--profile", "off", "-o", run.string()};
    if (!request.facts.on_cpu) out.emplace_back("--losses");
    if (!words.apply.empty()) {
        out.emplace_back("--apply");
        out.push_back(words.apply);
    }
    out.emplace_back("--");
    out.insert(out.end(), words.words.begin(), words.words.end());
    return out;
}

}  // namespace

std::vector<std::string> trial_command(const TuneRequest& request, const TrialRequest& wanted,
                                       const fs::path& run) {
    return request.job.is_ours() ? train_command(request, wanted, run)
                                 : run_command(request, wanted, run);
}

std::vector<std::string> command_in_tree(const ScratchTree& tree, const Words& own) {
    // MLflow 3 refuses files unless it is told that they are wanted.
    Words out{"env", "WANDB_MODE=disabled", "COMET_MODE=disabled", "MLFLOW_ALLOW_FILE_STORE=true",
              fmt::format("MLFLOW_TRACKING_URI=file://{}/mlruns", tree.root().string())};
    Words inside = tree.command(own);
    out.insert(out.end(), inside.begin(), inside.end());
    return out;
}

fs::path trial_config(const TuneRequest& request, const fs::path& run) {
    return run.string() + fs::path(request.job.config).extension().string();
}

std::filesystem::path config_snapshot(const TuneRequest& request) {
    return request.folder / "config.snapshot";
}

std::int64_t trial_steps(const TrialRequest& wanted) {
    return wanted.with_pauses ? kPauseSteps : wanted.steps;
}

std::string trial_name(const TrialRequest& wanted) {
    if (wanted.without_loader) return "without the loader";
    if (wanted.with_pauses) return "evaluation and checkpoint";
    std::string out;
    for (const auto& [key, value] : wanted.settings)
        out += fmt::format("{}{}={}", out.empty() ? "" : " ", key, value);
    return out.empty() ? "unchanged" : out;
}

}  // namespace saturate
