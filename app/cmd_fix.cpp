// SPDX-License-Identifier: Apache-2.0
// fix: the user's own job: why it is slow, what to change in its files, and the proof.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "arguments.h"
#include "base/error.h"
#include "base/file.h"
#include "base/output_file.h"
#include "base/text.h"
#include "commands.h"
#include "exit_code.h"
#include "probe/gpu_table.h"
#include "probe/machine.h"
#include "process/fix_trials.h"
#include "process/gpus.h"
#include "process/run_folder.h"
#include "project/fix_answer.h"
#include "remedies/catalogue.h"
#include "report/fix_text.h"
#include "report/tuning_text.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

Level level_of(const Arguments& arguments) {
    std::string name = arguments.text("--level").value_or("numerics");
    return name == "safe" ? Level::safe : name == "training" ? Level::training : Level::numerics;
}

struct MachineHere {
    FixMachine facts;
    bool has_gpu = false;
};

MachineHere this_machine(Level level) {
    GpuSurvey survey = survey_gpus();
    std::optional<GpuFacts> gpu;
    bool has_gpu = survey.driver && !survey.driver->gpus.empty();
    if (has_gpu) {
        const GpuIdentity& first = survey.driver->gpus[0];
        auto match = match_gpu(first.name, first.capability, first.memory_total_bytes);
        if (match) gpu = match->facts;
    }
    Facts facts = machine_facts(probe_cpu(), probe_memory(), gpu, level);
    return {{.workers = worker_count(facts), .has_bf16 = !gpu || gpu->has_bf16}, has_gpu};
}

bool wants_colour() {
    const char* no_colour = std::getenv("NO_COLOR");
    return ::isatty(STDOUT_FILENO) && !(no_colour && *no_colour);
}

// A folder that is not there yet, or is empty: nothing is ever overwritten.
fs::path make_folder(const Arguments& arguments) {
    auto named = arguments.text("--output");
    fs::path folder = named ? output_folder(*named) : new_run_folder("fix");
    std::error_code error;
    if (fs::exists(folder, error) && !fs::is_empty(folder, error)) {
        throw UserError({.where = {folder.string()},
                         .found = "the folder is there and not empty",
                         .expected = "a new folder",
                         .fix = "name another one with -o"});
    }
    fs::create_directories(folder, error);
    if (error) {
        throw UserError({.where = {folder.string()},
                         .found = fmt::format("the folder cannot be made: {}", error.message()),
                         .expected = "a place to write to",
                         .fix = "name another one with -o"});
    }
    return folder;
}

void check_command(const Arguments& arguments) {
    if (!arguments.command.empty()) return;
    throw UserError({.found = "no command is given",
                     .expected = "the command that starts your training",
                     .fix = "saturate fix -- python train.py"});
}

// "90s", "10m", "1h".
double budget_of(const Arguments& arguments) {
    std::string text = arguments.text("--budget").value_or("10m");
    double unit = text.ends_with('h') ? 3600 : text.ends_with('m') ? 60 : 1;
    std::string_view number = text;
    if (!number.empty() && std::string_view("smh").find(number.back()) != std::string_view::npos)
        number.remove_suffix(1);
    auto value = parse_number(number);
    if (!value || !(*value * unit >= 10) || !(*value * unit <= 7 * 86400)) {
        throw UserError({.found = fmt::format("--budget is {}", saturate::quoted(text)),
                         .expected = "10s to 168h: 90s, 10m or 1h"});
    }
    return *value * unit;
}

std::string last_lines(const std::string& file, std::size_t count) {
    std::string text = read_if_there(file), out;
    std::vector<std::string_view> lines = split(trim(text), '\n');
    std::size_t first = lines.size() > count ? lines.size() - count : 0;
    for (std::size_t i = first; i < lines.size(); ++i) out += fmt::format("    {}\n", lines[i]);
    return out;
}

Json baseline_json(const TrialResult& baseline) {
    if (!baseline.samples_per_second) return {};
    auto busy = baseline.samples_per_second->device_busy_share;
    return Json::object({{"samples_per_second", baseline.samples_per_second->per_second},
                         {"busy_percent", busy ? Json(100 * *busy) : Json()},
                         {"findings", Json::array()}});
}

// Tries, proves and says; the exit code.
int try_and_prove(const Arguments& arguments, FixAnswer& answer, ProjectReader& reader,
                  const FixQuestion& question, const fs::path& folder, bool has_gpu) {
    FixTrialSettings settings{
        .command = arguments.command,
        .output = folder,
        .budget_seconds = budget_of(arguments),
        .has_gpu = has_gpu,
        .on_line = [](const std::string& line) { fmt::print(stderr, "{}\n", line); }};
    FixTrials tried = try_fixes(answer, reader, question, settings);
    std::string patch = answer.patch.text();
    if (!patch.empty()) {
        answer.patch_file = (folder / "fix.patch").string();
        write_file_whole(answer.patch_file, patch);
    }
    Json json = to_json(answer);
    json.set("baseline", baseline_json(tried.baseline));
    if (tried.proof) {
        json.set("proof", to_json(*tried.proof));
        json.set("loss_guard", tried.proof->loss_guard);
    }
    json.set("trials", tried.trials);
    json.set("seconds", tried.seconds);
    write_file_whole(folder / "fix.json", json.pretty() + "\n");
    bool is_proven = tried.proof && tried.proof->verdict == Verdict::faster && !patch.empty();
    if (arguments.has("--json")) {
        fmt::print("{}\n", json.pretty());
    } else {
        fmt::print("{}", fix_text(answer, {.colour = wants_colour(),
                                           .all = arguments.has("--all"),
                                           .was_run = true}));
        if (tried.proof) fmt::print("\n{}", proof_text(*tried.proof));
        if (!tried.unguarded.empty()) fmt::print("note: {}\n", tried.unguarded);
    }
    if (!tried.baseline.ok() && !tried.is_stopped) {
        fmt::print(stderr, "Your job does not run as it is ({}: {}); its last lines:\n{}",
                   outcome_name(tried.baseline.outcome), tried.baseline.message,
                   last_lines(tried.baseline_log, 8));
        return kJobFailed;
    }
    if (is_proven && arguments.has("--write")) {
        write_fixes(answer.patch, question, folder / "before");
        fmt::print(stderr, "written; the files as they were: {}\n", (folder / "before").string());
    }
    if (tried.is_stopped) return kInterrupted;
    return is_proven ? kDone : kAnswerIsNo;
}

}  // namespace

int cmd_fix(const Arguments& arguments) {
    check_command(arguments);
    FixQuestion question{.level = level_of(arguments)};
    ProjectReader reader({arguments.command, arguments.all("--config"), question.folder});
    FixAnswer answer{.facts = reader.read(), .level = question.level};
    if (!answer.facts.command_problem.empty()) {
        throw UserError({.found = answer.facts.command_problem,
                         .expected = "a command that starts a Python program",
                         .fix = "saturate fix -- python train.py"});
    }
    MachineHere machine = this_machine(question.level);
    answer.plan = plan_fixes(answer.facts, machine.facts, question);
    keep_exact(reader, answer.facts, question, answer.plan);
    fs::path folder = make_folder(arguments);
    if (!arguments.has("--dry-run"))
        return try_and_prove(arguments, answer, reader, question, folder, machine.has_gpu);

    std::vector<const FixProposal*> all;
    for (const FixProposal& proposal : answer.plan.proposals) all.push_back(&proposal);
    answer.patch = make_patch(reader, answer.facts, question, all);
    SATURATE_CHECK(answer.patch.problem.empty(), "what was kept can be made together");
    std::string patch = answer.patch.text();
    if (!patch.empty()) {
        answer.patch_file = (folder / "fix.patch").string();
        write_file_whole(answer.patch_file, patch);
    }
    Json json = to_json(answer);
    write_file_whole(folder / "fix.json", json.pretty() + "\n");
    if (arguments.has("--json"))
        fmt::print("{}\n", json.pretty());
    else
        fmt::print("{}",
                   fix_text(answer, {.colour = wants_colour(), .all = arguments.has("--all")}));
    return patch.empty() ? kAnswerIsNo : kDone;
}

}  // namespace saturate
