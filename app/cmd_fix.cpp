// SPDX-License-Identifier: Apache-2.0
// fix: shows why the user's job is slow, tries changes of its files and writes a proven patch.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "arguments.h"
#include "base/error.h"
#include "base/file.h"
#include "base/output_file.h"
#include "base/text.h"
#include "batch_range.h"
#include "commands.h"
#include "exit_code.h"
#include "fix_show.h"
#include "probe/machine.h"
#include "process/device_lock.h"
#include "process/fix_trials.h"
#include "process/fix_write.h"
#include "process/gpus.h"
#include "process/how_to_start.h"
#include "process/mortal_folder.h"
#include "process/page_server.h"
#include "process/run_folder.h"
#include "process/scratch_tree.h"
#include "progress.h"
#include "project/fix_answer.h"
#include "remedies/catalogue.h"
#include "report/fix_run_text.h"
#include "report/fix_text.h"
#include "show.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

struct MachineHere {
    FixMachine facts;
    bool has_gpu = false;
    std::uint64_t device_memory_bytes = 0;
};

MachineHere this_machine(Level level) {
    GpuSurvey survey = survey_gpus();
    std::optional<GpuFacts> gpu = first_gpu(survey);
    Facts facts = machine_facts(probe_cpu(), probe_memory(), gpu, level);
    MachineHere out{.facts = {.workers = worker_count(facts),
                              .has_bf16 = !gpu || gpu->has_bf16,
                              .cores = facts.cores}};
    if (const GpuIdentity* here = survey.first()) {
        out.has_gpu = true;
        out.device_memory_bytes = here->memory_total_bytes.value_or(0);
    }
    return out;
}

// Creates a new folder, or accepts an empty one: fix never overwrites files.
fs::path make_folder(const Arguments& arguments) {
    auto named = arguments.text("--output");
    fs::path folder = named ? output_folder(*named) : new_run_folder("fix");
    std::error_code error;
    if (fs::exists(folder, error) && !fs::is_empty(folder, error)) {
        throw UserError({.where = {folder.string()},
                         .found = "the folder exists and is not empty",
                         .expected = "a new folder",
                         .fix = "name another one with -o"});
    }
    fs::create_directories(folder, error);
    if (error) {
        throw UserError({.where = {folder.string()},
                         .found = fmt::format("cannot create the folder: {}", error.message()),
                         .expected = "a folder that you can write to",
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

// The command line that the user gave, with another budget. Its output folder is taken by now.
std::string command_with_budget(const Arguments& arguments, const std::string& budget) {
    std::vector<std::string> out = {"saturate", "fix", "--budget", budget};
    for (std::size_t i = 0; i < arguments.words.size(); ++i) {
        const std::string& word = arguments.words[i];
        bool is_replaced = is_one_of(word, {"--budget", "-o", "--output"});
        if (word == "--") {
            out.insert(out.end(), arguments.words.begin() + static_cast<std::ptrdiff_t>(i),
                       arguments.words.end());
            break;
        }
        if (is_replaced)
            ++i;
        else if (!word.starts_with("--budget=") && !word.starts_with("--output="))
            out.push_back(word);
    }
    return shell_words(out);
}

// Writes the patch, if anything is to be changed, and notes its path in the answer.
void write_patch(FixAnswer& answer, const fs::path& folder) {
    std::string patch = answer.patch.text();
    if (patch.empty()) return;
    answer.patch_file = (folder / "fix.patch").string();
    write_file_whole(answer.patch_file, patch);
}

void write_json(const Arguments& arguments, const Json& json, const fs::path& folder) {
    write_file_whole(folder / "fix.json", json.pretty() + "\n");
    if (arguments.has("--json")) fmt::print("{}\n", json.pretty());
}

// Tries the changes of the plan and proves those that gain; puts the kept ones into the answer.
FixTrials run_trials(const Arguments& arguments, FixAnswer& answer, ProjectReader& reader,
                     const FixQuestion& question, const fs::path& folder,
                     const MachineHere& machine) {
    double budget = *arguments.seconds("--budget", 10, 7 * 86400);
    SearchProgress progress(false, budget);
    FixTrialSettings settings{
        .job = {.config = {}, .command = arguments.command, .project = question.folder},
        .output = folder,
        .budget_seconds = budget,
        .machine = machine.facts,
        .has_gpu = machine.has_gpu,
        .device_memory_bytes = machine.device_memory_bytes,
        .batch = batch_range(arguments, FixTrialSettings{}.batch),
        .on_line = [&](const std::string& line) { progress.line(line); },
        .on_working = [&](const std::string& what,
                          double seconds) { progress.working(what, seconds); }};
    if (auto address = arguments.text("--serve"))
        show(stderr, "the live page is {}\n", start_page_server(folder, *address));
    return try_fixes(answer, reader, question, settings);
}

// Returns the exit code.
int try_and_prove(const Arguments& arguments, FixAnswer& answer, ProjectReader& reader,
                  const FixQuestion& question, const fs::path& folder, const MachineHere& machine) {
    FixTrials tried = run_trials(arguments, answer, reader, question, folder, machine);
    write_patch(answer, folder);
    TriedFix fix{.answer = answer,
                 .tried = tried,
                 .command = join(arguments.command, " "),
                 .page = folder / "report.html"};
    if (tried.baseline.ok())
        fix.with_more_time = with_more_time_text(
            answer, fix.proof(),
            [&](const std::string& budget) { return command_with_budget(arguments, budget); });
    write_file_whole(fix.page, fix_page(fix));
    write_json(arguments, fix_json(fix), folder);
    // If the job does not run, nothing was tried, and its own error is the answer.
    if (!tried.baseline.ok() && !tried.is_stopped) {
        show_failed_job(tried, machine.has_gpu);
        return kJobFailed;
    }
    if (!arguments.has("--json")) show_fix(fix, arguments.has("--all"));
    bool is_proven =
        tried.proof && tried.proof->verdict == Verdict::faster && !answer.patch_file.empty();
    if (is_proven && arguments.has("--write")) {
        write_fixes(answer.patch, question, folder / "before");
        show(stderr, "written; the old files are in {}\n", (folder / "before").string());
    }
    if (tried.is_stopped) return kInterrupted;
    return is_proven ? kDone : kAnswerIsNo;
}

// --dry-run: the patch of all proposals, untried. Returns the exit code.
int propose(const Arguments& arguments, FixAnswer& answer, ProjectReader& reader,
            const FixQuestion& question, const fs::path& folder) {
    std::vector<const FixProposal*> all;
    for (const FixProposal& proposal : answer.plan.proposals) all.push_back(&proposal);
    answer.patch = make_patch(reader, answer.facts, question, all);
    SATURATE_CHECK(answer.patch.problem.empty(), "what was kept can be made together");
    write_patch(answer, folder);
    write_json(arguments, to_json(answer), folder);
    if (!arguments.has("--json"))
        show(stdout, "{}",
             fix_text(answer, {.colour = wants_coloured_words(stdout),
                               .is_broken = has_broken_lines(stdout),
                               .all = arguments.has("--all")}));
    return answer.patch_file.empty() ? kAnswerIsNo : kDone;
}

// Returns the error for a program that is missing, unreadable or not Python.
Problem why_no_program(const ProjectFacts& facts) {
    const std::string& problem = facts.command_problem;
    const FactSource* script = facts.file(facts.script);
    if (script && !script->problem.empty())
        return {.found = problem,
                .expected = fmt::format("a script that Python {} can read", facts.python),
                .fix = script->problem.starts_with("cannot ")
                           ? "check the permissions of the file"
                           : "correct the file, or use the Python that it was written for"};
    bool is_missing = problem.find("no such") != std::string::npos;
    return {
        .found = problem,
        .expected = "a command that starts a Python program",
        .fix = is_missing
                   ? fmt::format(
                         "check the name, or change to the folder you start it from; this is {}",
                         fs::current_path().string())
                   : std::string("saturate fix -- python train.py")};
}

}  // namespace

int cmd_fix(const Arguments& arguments) {
    check_command(arguments);
    FixQuestion question{.level = level_named(*arguments.text("--level"))};
    // Temporary files of this process and of the trials are deleted at the end.
    std::optional<MortalFolder> temporary;
    if (!arguments.has("--dry-run")) {
        temporary.emplace(temporary_beside(guarded_around(question.folder)));
        ::setenv("TMPDIR", temporary->path().c_str(), 1);
    }
    ProjectReader reader({arguments.command, arguments.all("--config"), question.folder});
    FixAnswer answer{.facts = reader.read(), .level = question.level};
    if (!answer.facts.command_problem.empty()) throw UserError(why_no_program(answer.facts));
    if (!arguments.has("--dry-run")) check_can_start(arguments.command);
    MachineHere machine = this_machine(question.level);
    answer.plan = plan_fixes(answer.facts, machine.facts, question);
    keep_exact(reader, answer.facts, question, answer.plan);
    std::optional<DeviceLock> lock;
    if (!arguments.has("--dry-run")) lock.emplace(machine.has_gpu ? "cuda:0" : "cpu");
    fs::path folder = make_folder(arguments);
    if (arguments.has("--dry-run")) return propose(arguments, answer, reader, question, folder);
    return try_and_prove(arguments, answer, reader, question, folder, machine);
}

}  // namespace saturate
