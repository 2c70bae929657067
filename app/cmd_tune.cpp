// SPDX-License-Identifier: Apache-2.0
// tune: only the measured search, for a configuration of `train` or any command.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "arguments.h"
#include "base/error.h"
#include "base/file.h"
#include "base/output_file.h"
#include "base/text.h"
#include "batch_range.h"
#include "commands.h"
#include "config/settings.h"
#include "exit_code.h"
#include "probe/machine.h"
#include "process/gpus.h"
#include "process/run_folder.h"
#include "remedies/facts.h"
#include "report/tuning_text.h"
#include "show.h"
#include "tune_show.h"
#include "tuning/command.h"
#include "tuning/proven.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

std::optional<GpuFacts> gpu_of(const std::string& device) {
    if (device == "cpu") return std::nullopt;
    if (device.starts_with("sim:")) return simulated_gpu(device);
    return first_gpu(survey_gpus());
}

BatchLimits batch_limits(const Arguments& arguments) {
    BatchLimits limits = batch_range(arguments, {});
    limits.memory_share = *arguments.number("--memory-share", 0.05, 1);
    limits.target_busy_percent = arguments.number("--target-util", 1, 100);
    limits.effective_batch = arguments.whole("--effective-batch", 1, kMostBatch);
    return limits;
}

Assignment start_values(const Arguments& arguments) {
    Assignment start;
    for (const std::string& text : arguments.all("--set")) {
        std::size_t equals = text.find('=');
        std::string key = text.substr(0, equals);
        if (equals == std::string::npos || key.empty()) {
            throw UserError({.found = fmt::format("--set is {}", in_quotes(text)),
                             .expected = "KEY=VALUE",
                             .fix = "--set batch_size=32"});
        }
        start[key] = text.substr(equals + 1);
    }
    return start;
}

// Checks that every {name} in the command has a start value.
void check_placeholders(const std::vector<std::string>& command, const Assignment& start) {
    for (const std::string& name : placeholders(command)) {
        if (start.contains(name)) continue;
        throw UserError(
            {.found = fmt::format("{{{}}} in the command has no value to start from", name),
             .expected = "one --set for each placeholder",
             .fix = fmt::format("--set {}=32", name)});
    }
}

// Refuses a file of another framework, which does not say how to run it.
void refuse_without_job(const std::string& config) {
    Document document = Document::read(config);
    Settings settings = Settings::read(document);
    if (settings.get(Setting::job)) return;
    throw UserError(
        {.where = {config},
         .found = "the file has no job: key, so saturate cannot tell which program runs it",
         .expected = "the command that reads the file, with {config} in its place",
         .fix = fmt::format("add -- python train.py --config {{config}} (the command "
                            "that you start it with)")});
}

void check_config_word(const std::vector<std::string>& command) {
    if (std::ranges::any_of(command, [](const std::string& word) {
            return word.find(kConfigWord) != std::string::npos;
        }))
        return;
    throw UserError({.found = fmt::format("the command {} does not contain {}",
                                          in_quotes(join(command, " ")), kConfigWord),
                     .expected = "{config} in place of the configuration file: each trial reads a "
                                 "copy with other values",
                     .fix = "-- python train.py --config {config}"});
}

std::string as_text(const TuneRequest& request, const TuneAnswer& answer) {
    if (!answer.search.baseline) return "Interrupted before anything was measured.\n";
    std::string out = "\n" + search_text(answer.search);
    ProvenSettings proven = proven_settings(request, answer);
    bool is_proven = proven.why.empty();
    if (std::string kept = kept_text(answer.search, request.start, is_proven); !kept.empty())
        out += "\n" + kept;
    if (answer.proof) out += "\n" + proof_text(*answer.proof);
    if (answer.search.best.empty()) {
        out += "\nNothing that was tried is faster than the current settings.\n";
    } else {
        out += is_proven ? "\nSettings:" : fmt::format("\nNot proven ({}):", proven.why);
        for (const auto& [key, value] : answer.search.best)
            out += fmt::format(" --set {}={}", key, value);
        out += "\n";
        if (!request.job.command.empty()) {
            CommandWords words =
                command_words(request.job.command, request.start, answer.search.best);
            out += fmt::format("To run with these settings: saturate run{}{} -- {}\n",
                               words.apply.empty() ? "" : " --apply ", words.apply,
                               join(words.words, " "));
        }
    }
    return out +
           fmt::format("Trials, tune.json and proof.json are in {}\n", request.folder.string());
}

}  // namespace

TuneRequest tune_request(const std::string& config, const std::string& device, Level level) {
    TuneRequest request{.job = {.config = config}, .device = device};
    std::optional<GpuFacts> gpu = gpu_of(device);
    if (device == "auto") request.device = gpu ? "cuda" : "cpu";
    Document document = Document::read(config);
    Settings settings = Settings::read(document);
    request.start = values_in_force(settings);
    request.facts = machine_facts(probe_cpu(), probe_memory(), gpu, level);
    add_settings(request.facts, settings);
    // The model of a user's own job is unknown, so try which layout it prefers.
    if (settings.get(Setting::job) && !request.facts.shape) request.facts.has_images = true;
    request.facts.busy_is_exact = device.starts_with("sim:");
    return request;
}

TuneRequest tune_request(const Arguments& arguments) {
    auto config = arguments.text("--config");
    if (!config && arguments.command.empty()) {
        throw UserError(Problem{.found = "nothing to tune",
                                .expected = "--config FILE, -- COMMAND, or both",
                                .fix = "saturate tune -- python train.py"});
    }
    std::string device = *arguments.text("--device");
    Level level = level_named(*arguments.text("--level"));
    TuneRequest request;
    if (config && arguments.command.empty()) {
        refuse_without_job(*config);
        request = tune_request(*config, device, level);
    } else if (config) {
        request = tune_request(*config, device, level);
        request.job.command = arguments.command;
        request.file.emplace(read_file(*config, 16u << 20, "a configuration"), *config);
        request.facts.can_compile = false;
        check_config_word(request.job.command);
    } else {
        request.job.command = arguments.command;
        request.start = start_values(arguments);
        check_placeholders(request.job.command, request.start);
        std::optional<GpuFacts> gpu = gpu_of(device);
        request.device = device != "auto" ? device : gpu ? "cuda" : "cpu";
        request.facts = {.cores = probe_cpu().cores_usable,
                         .on_cpu = !gpu,
                         .can_compile = false,
                         .level = level};
    }
    request.budget_seconds = *arguments.seconds("--budget", 1, 7 * 86400);
    request.batch = batch_limits(arguments);
    request.fresh = arguments.has("--fresh");
    return request;
}

int cmd_tune(const Arguments& arguments) {
    TuneRequest request = tune_request(arguments);
    auto named = arguments.text("--output");
    request.folder = named ? output_folder(*named) : new_run_folder("tune");
    TuneAnswer answer = tune_and_show(request, arguments.has("--quiet"), arguments.text("--serve"));
    if (arguments.has("--json")) {
        Json out = Json::object(
            {{"schema", 1}, {"folder", request.folder.string()}, {"device", request.device}});
        Json told = to_json(answer);  // must outlive the loop over its members
        for (const auto& [key, value] : told.members()) out.set(key, value);
        fmt::print("{}\n", out.pretty());
    } else {
        show(stdout, "{}", as_text(request, answer));
    }
    if (answer.interrupted) return kInterrupted;
    return proven_settings(request, answer).settings.empty() ? kAnswerIsNo : kDone;
}

}  // namespace saturate
