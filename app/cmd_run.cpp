// SPDX-License-Identifier: Apache-2.0
// run: watches any command. Its output and exit status stay unchanged; our text follows on stderr.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "arguments.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/output_file.h"
#include "base/system_error.h"
#include "base/text.h"
#include "commands.h"
#include "diagnose_project.h"
#include "diagnosis/diagnosis.h"
#include "exit_code.h"
#include "process/child.h"
#include "process/page_server.h"
#include "process/run_folder.h"
#include "process/run_job.h"
#include "remedies/catalogue.h"
#include "report/run_text.h"
#include "show.h"
#include "telemetry/run_gather.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGroups[] = {"safe", "numerics", "auto"};

// Returns the remedy with this name in the shim, or null if the shim has no such change.
const Remedy* change_of(std::string_view name) {
    for (const Remedy& remedy : remedies()) {
        if (!name.empty() && remedy.shim.name == name) return &remedy;
    }
    return nullptr;
}

void check_part(std::string_view part) {
    std::size_t equals = part.find('=');
    std::string name(trim(part.substr(0, equals)));
    bool has_value = equals != std::string_view::npos;
    std::vector<std::string> all(std::begin(kGroups), std::end(kGroups));
    for (const Remedy& remedy : remedies()) {
        if (!remedy.shim.name.empty()) all.emplace_back(remedy.shim.name);
    }
    if (std::ranges::find(all, name) == all.end()) {
        Problem problem{.found = fmt::format("--apply does not know {}", in_quotes(name)),
                        .expected = join(all, ", ")};
        if (auto meant = closest(name, all)) problem.fix = fmt::format("--apply {}", *meant);
        throw UserError(problem);
    }
    if (!has_value) return;
    const Remedy* change = change_of(name);
    bool is_count = change && change->shim.has_value;
    auto count = parse_integer(trim(part.substr(equals + 1)));
    if (is_count && count && *count >= (name == "num_workers" ? 0 : 1) && *count <= 4096) return;
    throw UserError({.found = fmt::format("--apply has {}", in_quotes(part)),
                     .expected = is_count ? fmt::format("{}=N, a whole number", name)
                                          : fmt::format("{} without a value", name)});
}

std::string checked_apply(const std::string& list) {
    for (std::string_view part : split(list, ',')) check_part(part);
    return list;
}

// Returns an outcome for each requested change; "unknown" if no process reported any.
Json outcomes(const RunJobSettings& settings, const RunJobResult& result) {
    if (settings.apply.empty() || result.python["changes"].is_array())
        return result.python["changes"];
    Json out = Json::array();
    for (std::string_view part : split(settings.apply, ',')) {
        out.add(Json::object({{"name", std::string(trim(part))},
                              {"state", "unknown"},
                              {"text", "no training step was seen from inside"}}));
    }
    return out;
}

RunJobSettings run_settings(const Arguments& arguments) {
    RunJobSettings out{.command = arguments.command};
    if (out.command.empty()) {
        throw UserError({.found = "run needs a command",
                         .expected = "saturate run [OPTIONS] -- COMMAND...",
                         .fix = "saturate run -- python train.py"});
    }
    if (auto list = arguments.text("--apply")) out.apply = checked_apply(*list);
    out.with_losses = arguments.has("--losses");
    std::string profile = *arguments.text("--profile");
    if (profile == "off") {
        out.with_profile = false;
    } else if (profile != "auto") {
        auto steps = parse_integer(profile);
        if (!steps || *steps < 1 || *steps > 100000) {
            throw UserError({.found = fmt::format("--profile is {}", in_quotes(profile)),
                             .expected = "auto, off, or the steps to record, 1 to 100000"});
        }
        out.profile_steps = static_cast<int>(*steps);
    }
    out.seconds = arguments.number("--seconds", 0.1, 366.0 * 24 * 3600).value_or(0);
    out.steps = arguments.whole("--steps", 1, 1L << 40).value_or(0);
    out.output_to_stderr = arguments.has("--json");
    auto folder = arguments.text("--output");
    out.folder = folder ? output_folder(*folder) : new_run_folder("run");
    return out;
}

int status_of(const RunJobResult& result) {
    constexpr int kTimedOut = 124;
    return result.is_limited ? kTimedOut : result.status;
}

// If a signal ended the command, ends this process with the same signal, for its parent to see.
void die_alike(int number) {
    rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::signal(number, SIG_DFL);
    ::raise(number);
}

// Removes the record if the command did not start, so that the next try can use the same folder. A
// folder that the user created stays, empty as before.
RunJobResult run_or_leave_nothing(const RunJobSettings& settings, bool is_users_folder) {
    try {
        return run_job(settings);
    } catch (const ChildNotStarted&) {
        std::error_code ignored;
        if (!is_users_folder) fs::remove_all(settings.folder, ignored);
        for (fs::directory_iterator entry(settings.folder, ignored), end; entry != end;
             entry.increment(ignored))
            fs::remove_all(entry->path(), ignored);
        throw;
    }
}

// Diagnoses the record. If the record is missing or incomplete, only adds a note, so that the
// status of the command is not lost.
Diagnosis diagnosis_of(const RunJobSettings& settings, std::vector<std::string>& notes) {
    try {
        RunRecord record = gather_run(settings.folder);
        std::vector<Finding> unused = settings_without_effect(record);
        Diagnosis out = diagnose_run_folder(settings.folder, std::move(record));
        for (Finding& finding : unused) out.findings.push_back(std::move(finding));
        return out;
    } catch (const Failure& error) {
        notes.push_back("no diagnosis: " + error.problems().front().found);
        return {};
    }
}

int run(const Arguments& arguments) {
    RunJobSettings settings = run_settings(arguments);
    std::error_code ignored;
    bool is_users_folder = arguments.has("--output") && fs::exists(settings.folder, ignored);
    if (auto address = arguments.text("--serve"))
        show(stderr, "saturate: the live page is {}\n",
             start_page_server(settings.folder, *address));
    RunJobResult result = run_or_leave_nothing(settings, is_users_folder);
    ::signal(SIGPIPE, SIG_IGN);
    Diagnosis diagnosis = diagnosis_of(settings, result.notes);
    RunAnswer view{.command = settings.command,
                   .folder = fs::current_path(ignored).string(),
                   .result = result.run,
                   .steps = result.steps,
                   .summary = result.summary,
                   .diagnosis = diagnosis,
                   .changes = outcomes(settings, result),
                   .permanent = permanent_edits(result.python),
                   .torch = result.torch,
                   .is_limited = result.is_limited,
                   .notes = result.notes};
    for (const fs::path& record : result.records) {
        view.records.push_back(record.string());
        if (result.records.size() > 1 && is_run_record(record))
            view.ranks.push_back(visit_run(record, {}));
    }
    if (arguments.has("--json"))
        fmt::print("{}\n", run_json(view).pretty());
    else
        show(stderr, "{}", run_text(view));
    std::fflush(stdout);
    std::fflush(stderr);
    if (result.signal != 0 && !result.is_limited) die_alike(result.signal);
    return status_of(result);
}

}  // namespace

int cmd_run(const Arguments& arguments) {
    try {
        return run(arguments);
    } catch (const ChildNotStarted& error) {
        show(stderr, "{}\n", error.what());
        return error.error() == ENOENT ? 127 : 126;
    } catch (const Failure& error) {
        show(stderr, "{}\n", error.what());
        return kRunFailed;
    } catch (const std::system_error& error) {
        show(stderr, "{}\n", system_problem(error).text());
        return kRunFailed;
    }
}

}  // namespace saturate
