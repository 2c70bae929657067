// SPDX-License-Identifier: Apache-2.0
// optimize: reads a configuration, shows advice, and writes the file with only these bytes changed.
#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "arguments.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/output_file.h"
#include "commands.h"
#include "exit_code.h"
#include "optimize_benchmark.h"
#include "optimize_plan.h"
#include "optimize_show.h"
#include "process/run_folder.h"
#include "report/tuning_text.h"
#include "show.h"
#include "tune_show.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

// Returns the output file, or nullopt with --in-place, which replaces the input and keeps a backup.
std::optional<OutputFile> output_of(const Arguments& arguments, const fs::path& input) {
    if (arguments.has("--in-place")) {
        if (arguments.has("--output")) {
            throw UserError(
                Problem{.found = "--in-place and --output together", .expected = "one of the two"});
        }
        return std::nullopt;
    }
    fs::path output = input.parent_path() /
                      (input.stem().string() + "_gpu_optimized" + input.extension().string());
    if (auto named = arguments.text("--output")) output = *named;
    std::error_code ignored;
    if (fs::equivalent(input, output, ignored)) {
        throw UserError({.where = {output.string()},
                         .found = "the output is the input",
                         .expected = "another file",
                         .fix = "--in-place rewrites the input and leaves a backup"});
    }
    if (output == "-" && arguments.has("--json")) {
        throw UserError(Problem{.found = "--json and --output - together",
                                .expected = "one answer on standard output"});
    }
    // With --dry-run nothing is written, so nothing can be lost.
    bool force = arguments.has("--force") || arguments.has("--dry-run");
    return OutputFile(output, {.inputs = {input}, .force = force});
}

struct MeasuredPlan {
    TuneAnswer answer;
    Benchmarked proven;
    fs::path folder;  // of the search

    [[nodiscard]] bool has_nothing() const { return answer.interrupted && !answer.search.baseline; }
};

// Searches by measuring, and puts in place of the plan's advice what is proven.
MeasuredPlan measure(const Arguments& arguments, OptimizePlan& plan, std::FILE* talk) {
    TuneRequest request = tune_request(arguments);
    request.folder = new_run_folder("tune");
    std::set<int> unused;
    for (const FactWithoutEffect& one : plan.use.without_effect()) unused.insert(one.line);
    if (request.file)
        for (const std::string& key : request.file->leave_out(unused)) request.start.erase(key);
    MeasuredPlan out{.answer = tune_and_show(request, arguments.has("--quiet")),
                     .folder = request.folder};
    if (out.has_nothing()) return out;
    if (!arguments.has("--json")) show(talk, "\n{}\n", search_text(out.answer.search));
    out.proven = benchmarked(plan.document, plan.settings, std::move(plan.advice), request,
                             out.answer, arguments.has("--unproven"));
    plan.advice = out.proven.advice;
    return out;
}

struct Written {
    std::string where;
    fs::path backup;  // empty: none
};

// Takes changes that cannot be written exactly out of the advice. Without changes, writes the
// output only if -o was given.
std::optional<Written> write_result(const Arguments& arguments, OptimizePlan& plan,
                                    const std::optional<OutputFile>& output) {
    std::string text = apply_changes(plan.document, plan.advice);
    if (arguments.has("--dry-run")) return std::nullopt;
    if (plan.advice.changes.empty() && !arguments.has("--output")) return std::nullopt;
    if (!output) {
        const std::string& input = plan.document.file();
        fs::path backup = keep_backup(input, plan.document.text());
        write_file_whole(input, text);
        return Written{input, backup};
    }
    if (output->is_stdout()) {
        fmt::print("{}", text);
        return Written{"standard output", {}};
    }
    output->write(text);
    return Written{output->path().string(), {}};
}

void add_measured(const MeasuredPlan& measured, const Advice& advice, Json& out) {
    Json told = to_json(measured.answer);  // must outlive the loop over its members
    for (const auto& [key, value] : told.members()) {
        if (key != "notes") out.set(key, value);
    }
    std::vector<std::string> notes = advice.notes;
    for (const std::string& note : measured.answer.search.notes) notes.push_back(note);
    out.set("notes", Json::array_of(notes));
    out.set("unproven", unproven_json(measured.proven));
}

std::string last_line(const OptimizePlan& plan, const std::optional<MeasuredPlan>& measured,
                      const std::optional<Written>& written) {
    std::size_t changes = plan.advice.changes.size();
    std::string counted = fmt::format("{} change{}", changes, changes == 1 ? "" : "s");
    if (written)
        return fmt::format("{} written to {}{}\n", counted, written->where,
                           written->backup.empty()
                               ? ""
                               : fmt::format("; the old file is {}", written->backup.string()));
    if (changes > 0) return fmt::format("{}; nothing written (--dry-run)\n", counted);
    bool has_more = measured && !measured->proven.rest.empty();
    return has_more ? "Nothing is written.\n" : "Nothing to change.\n";
}

}  // namespace

int cmd_optimize(const Arguments& arguments) {
    if (arguments.has("--benchmark") && arguments.has("--gpu")) {
        throw UserError(
            {.found = "--benchmark measures on this machine, and --gpu names another",
             .expected = "one of the two",
             .fix = fmt::format("--device \"sim:{}\" simulates it", *arguments.text("--gpu"))});
    }
    fs::path input = *arguments.text("--config");
    Document document = Document::read(input.string());
    std::optional<OutputFile> output = output_of(arguments, input);
    std::FILE* talk = output && output->is_stdout() ? stderr : stdout;
    OptimizePlan plan = plan_optimize(arguments, std::move(document));
    std::optional<MeasuredPlan> measured;
    if (arguments.has("--benchmark")) {
        measured = measure(arguments, plan, talk);
        if (measured->has_nothing()) {
            show(stderr, "interrupted before anything was measured; nothing written\n");
            return kInterrupted;
        }
    }
    std::optional<Written> written = write_result(arguments, plan, output);
    if (arguments.has("--json")) {
        Json out = optimize_json(plan, written ? written->where : "");
        if (measured) add_measured(*measured, plan.advice, out);
        fmt::print("{}\n", out.pretty());
    } else {
        show(talk, "{}", optimize_text(plan));
        if (measured)
            show(talk, "{}", measured_text(measured->answer, measured->proven, measured->folder));
        show(talk, "{}", last_line(plan, measured, written));
    }
    if (!measured) return kDone;
    if (measured->answer.interrupted) return kInterrupted;
    return measured->proven.advice.changes.empty() ? kAnswerIsNo : kDone;
}

}  // namespace saturate
