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
#include "probe/gpu_table.h"
#include "probe/machine.h"
#include "process/device_lock.h"
#include "process/fix_trials.h"
#include "process/fix_write.h"
#include "process/gpus.h"
#include "process/mortal_folder.h"
#include "process/page_server.h"
#include "process/run_folder.h"
#include "process/scratch_tree.h"
#include "progress.h"
#include "project/fix_answer.h"
#include "remedies/catalogue.h"
#include "report/fix_html.h"
#include "report/fix_run_text.h"
#include "report/fix_text.h"
#include "report/tuning_text.h"
#include "show.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kManyFiles = 100;

struct MachineHere {
    FixMachine facts;
    bool has_gpu = false;
    std::uint64_t device_memory_bytes = 0;
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
    return {
        {.workers = worker_count(facts), .has_bf16 = !gpu || gpu->has_bf16, .cores = facts.cores},
        has_gpu,
        has_gpu ? survey.driver->gpus[0].memory_total_bytes.value_or(0) : 0};
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

Json baseline_json(const FixTrials& tried) {
    if (!tried.baseline.samples_per_second) return {};
    const Rate& rate = *tried.baseline.samples_per_second;
    Json findings = Json::array();
    for (const Finding& finding : tried.findings) {
        findings.add(Json::object({{"id", finding.id},
                                   {"name", std::string(finding.name())},
                                   {"share_percent", finding.share_percent},
                                   {"evidence", finding.evidence},
                                   {"where", finding.where.empty() ? Json() : Json(finding.where)},
                                   {"fix", finding.fix_text()}}));
    }
    return Json::object(
        {{"samples_per_second", rate.per_second},
         {"busy_percent", rate.device_busy_share ? Json(100 * *rate.device_busy_share) : Json()},
         {"input_wait_percent", 100 * rate.input_wait_share},
         {"step_ms", 1e3 * rate.step_seconds},
         {"findings", findings}});
}

Json curve_json(const LossCurve& curve) {
    Json out = Json::array();
    for (const LossPoint& point : curve)
        out.add(Json::array({Json(point.samples), Json(point.loss)}));
    return out;
}

// Tries and proves changes and prints the result. Returns the exit code.
int try_and_prove(const Arguments& arguments, FixAnswer& answer, ProjectReader& reader,
                  const FixQuestion& question, const fs::path& folder, const MachineHere& machine) {
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
    FixTrials tried = try_fixes(answer, reader, question, settings);
    progress.end();
    std::string patch = answer.patch.text();
    if (!patch.empty()) {
        answer.patch_file = (folder / "fix.patch").string();
        write_file_whole(answer.patch_file, patch);
    }
    Json json = to_json(answer);
    json.set("baseline", baseline_json(tried));
    if (tried.proof) {
        json.set("proof", to_json(*tried.proof));
        json.set("loss_guard", tried.proof->loss_guard);
    }
    json.set("trials", tried.trials);
    json.set("seconds", tried.seconds);
    json.set("written_outside", Json::array_of(tried.outside));
    json.set("losses", Json::object({{"before", curve_json(tried.losses_before)},
                                     {"after", curve_json(tried.losses_after)}}));
    const Proof* proof = tried.proof ? &*tried.proof : nullptr;
    std::string with_more_time =
        tried.baseline.ok() ? with_more_time_text(answer, proof,
                                                  [&](const std::string& longer) {
                                                      return command_with_budget(arguments, longer);
                                                  })
                            : "";
    fs::path page = folder / "report.html";
    write_file_whole(page, fix_html({.answer = answer,
                                     .command = join(arguments.command, " "),
                                     .baseline = tried.baseline.samples_per_second,
                                     .findings = tried.findings,
                                     .proof = proof,
                                     .losses_before = tried.losses_before,
                                     .losses_after = tried.losses_after,
                                     .trials = tried.trials,
                                     .seconds = tried.seconds,
                                     .busy = tried.busy,
                                     .with_more_time = with_more_time,
                                     .language = shown_language()}));
    json.set("report", page.string());
    write_file_whole(folder / "fix.json", json.pretty() + "\n");
    bool is_proven = tried.proof && tried.proof->verdict == Verdict::faster && !patch.empty();
    if (arguments.has("--json")) fmt::print("{}\n", json.pretty());
    // If the job does not run, nothing was tried, and its own error is the answer.
    if (!tried.baseline.ok() && !tried.is_stopped) {
        show(stderr, "{}",
             fix_failure_text(tried.baseline, read_if_there(tried.baseline_log), machine.has_gpu));
        bool was_slow = tried.baseline.outcome == TrialOutcome::hang ||
                        tried.baseline.outcome == TrialOutcome::too_slow;
        if (was_slow && !tried.busy.empty()) show(stderr, "note: {}\n", tried.busy);
        show(stderr, "nothing was tried; --dry-run shows what reading alone finds\n");
        return kJobFailed;
    }
    if (!arguments.has("--json")) {
        const auto& rate = tried.baseline.samples_per_second;
        show(stdout, "{}",
             fix_text(answer, {.colour = wants_coloured_words(stdout),
                               .is_broken = has_broken_lines(stdout),
                               .all = arguments.has("--all"),
                               .was_run = true,
                               .on_gpu = tried.is_on_gpu,
                               .why = rate ? fix_why_text(*rate, tried.findings) : ""}));
        if (tried.proof) show(stdout, "\n{}", proof_text(*tried.proof));
        if (tried.baseline.ok())
            show(stdout, "\nYour job: {}. {} run{} in {:.0f} s; page: {}\n",
                 fix_verdict(answer, proof), tried.trials, tried.trials == 1 ? "" : "s",
                 tried.seconds, page.string());
        show(stdout, "{}", with_more_time);
        if (!tried.busy.empty()) show(stdout, "note: {}\n", tried.busy);
        if (!tried.unguarded.empty()) show(stdout, "note: {}\n", tried.unguarded);
        if (!tried.outside.empty())
            show(stdout, "note: your job writes outside its folder, and so do the trials: {}\n",
                 join(tried.outside, ", "));
        if (tried.files_made.count >= kManyFiles)
            show(stdout,
                 "note: your job made {} files, most of them in {}; trials leave none behind, so "
                 "each one makes them again. If they are data, let your script make them once "
                 "beforehand\n",
                 tried.files_made.count, tried.files_made.folder);
    }
    if (is_proven && arguments.has("--write")) {
        write_fixes(answer.patch, question, folder / "before");
        show(stderr, "written; the old files are in {}\n", (folder / "before").string());
    }
    if (tried.is_stopped) return kInterrupted;
    return is_proven ? kDone : kAnswerIsNo;
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
    MachineHere machine = this_machine(question.level);
    answer.plan = plan_fixes(answer.facts, machine.facts, question);
    keep_exact(reader, answer.facts, question, answer.plan);
    std::optional<DeviceLock> lock;
    if (!arguments.has("--dry-run")) lock.emplace(machine.has_gpu ? "cuda:0" : "cpu");
    fs::path folder = make_folder(arguments);
    if (!arguments.has("--dry-run"))
        return try_and_prove(arguments, answer, reader, question, folder, machine);

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
        show(stdout, "{}",
             fix_text(answer, {.colour = wants_coloured_words(stdout),
                               .is_broken = has_broken_lines(stdout),
                               .all = arguments.has("--all")}));
    return patch.empty() ? kAnswerIsNo : kDone;
}

}  // namespace saturate
