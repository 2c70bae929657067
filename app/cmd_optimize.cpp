// SPDX-License-Identifier: Apache-2.0
// optimize: reads a configuration, shows advice, and writes the file with only these bytes changed.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "arguments.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/output_file.h"
#include "base/text.h"
#include "commands.h"
#include "exit_code.h"
#include "optimize_benchmark.h"
#include "probe/machine.h"
#include "process/gpus.h"
#include "process/run_folder.h"
#include "project/config_use.h"
#include "remedies/advise.h"
#include "report/table.h"
#include "report/tuning_text.h"
#include "show.h"
#include "tune_show.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

// Assumed for another machine if only its GPU is given.
constexpr int kAssumedCores = 16;
constexpr double kGigabyte = 1024.0 * 1024 * 1024;

struct Aim {
    Facts facts;
    std::string text;  // "RTX 4090, 24.0 GiB; 16 cores (assumed; --cores N)"
};

[[noreturn]] void throw_unknown_gpu(const std::string& name) {
    Problem problem{.found = fmt::format("no GPU {} in the table", in_quotes(name)),
                    .expected =
                        "cpu, or a name of docs/gpus.md, such as RTX 4090, A100 80GB SXM4, "
                        "H100 SXM5 or MI300X"};
    std::vector<std::string> near = near_gpu_names(name);
    if (!near.empty()) problem.fix = fmt::format("--gpu \"{}\"", near[0]);
    throw UserError(problem);
}

std::optional<std::uint64_t> gigabytes(const Arguments& arguments, std::string_view option) {
    auto value = arguments.number(option, 0.1, 100000);
    if (!value) return std::nullopt;
    return static_cast<std::uint64_t>(*value * kGigabyte);
}

// Returns the GPU that is named, or the first one of this machine.
std::optional<GpuFacts> choose_gpu(const Arguments& arguments, const GpuSurvey& survey,
                                   std::string& how) {
    auto memory = gigabytes(arguments, "--gpu-memory");
    auto name = arguments.text("--gpu");
    // If a simulated device is used for measuring, advise for that device.
    std::string device = *arguments.text("--device");
    if (!name && device.starts_with("sim:")) name = device.substr(4);
    if (name) {
        if (lower(*name) == "cpu") return std::nullopt;
        auto match = match_gpu(*name, std::nullopt, memory);
        if (!match) throw_unknown_gpu(*name);
        if (match->how != "by name") how = match->how;
        return match->facts;
    }
    if (!survey.driver || survey.driver->gpus.empty()) return std::nullopt;
    const GpuIdentity& gpu = survey.driver->gpus[0];
    auto match = match_gpu(gpu.name, gpu.capability, memory ? memory : gpu.memory_total_bytes);
    // The table holds only NVIDIA's GPUs; for other vendors advise for the CPU.
    if (!match && !survey.absent_because.empty()) return std::nullopt;
    if (!match) {
        throw MachineError(
            {.found = fmt::format("the GPU {} is not in the table, and neither is a similar one",
                                  in_quotes(gpu.name)),
             .expected = "a GPU of capability 6.1 or newer",
             .fix = "name a similar one with --gpu"});
    }
    if (match->how != "by name") how = match->how;
    return match->facts;
}

Aim choose_target(const Arguments& arguments) {
    bool elsewhere = arguments.has("--gpu") && lower(*arguments.text("--gpu")) != "cpu";
    Aim aim;
    std::string how;
    GpuSurvey survey = arguments.has("--gpu") ? GpuSurvey{} : survey_gpus();
    CpuFacts cpu = probe_cpu();
    aim.facts = machine_facts(cpu, probe_memory(), choose_gpu(arguments, survey, how),
                              level_named(*arguments.text("--level")));
    Facts& facts = aim.facts;
    int found = survey.driver ? static_cast<int>(survey.driver->gpus.size()) : 1;
    facts.processes = static_cast<int>(arguments.whole("--gpus", 1, 100000).value_or(1));
    facts.cores = static_cast<int>(
        arguments.whole("--cores", 1, 100000)
            .value_or(elsewhere ? kAssumedCores * facts.processes : cpu.cores_usable));
    if (auto memory = gigabytes(arguments, "--memory")) facts.memory_available_bytes = *memory;
    if (auto workers = arguments.whole("--workers", 0, 1024))
        facts.workers_asked = static_cast<int>(*workers);
    facts.dataset_size = arguments.whole("--dataset-size", 1, 1L << 60).value_or(0);

    if (facts.gpu) {
        aim.text = fmt::format("{}{}, {}",
                               facts.processes > 1 ? fmt::format("{} x ", facts.processes) : "",
                               facts.gpu->name, bytes_text(facts.gpu->memory_bytes));
        if (!how.empty()) aim.text += fmt::format(" ({})", how);
        if (!elsewhere && found > facts.processes)
            aim.text += fmt::format(" (1 of {}; --gpus {} if the job uses all)", found, found);
    } else {
        aim.text = arguments.has("--gpu") ? "the CPU"
                                          : fmt::format(
                                                "the CPU, because there is no GPU here ({}); --gpu "
                                                "\"RTX 4090\" plans for another machine",
                                                survey.absent_because);
    }
    if (arguments.text("--device")->starts_with("sim:")) aim.text += " (simulated)";
    aim.text += fmt::format("; {} cores", facts.cores);
    if (elsewhere && !arguments.has("--cores")) aim.text += " (assumed; --cores N)";
    return aim;
}

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

std::vector<std::string> programs_of(const ConfigUse& use) {
    std::vector<std::string> out;
    for (const ConfigUse::Program& program : use.programs) out.push_back(program.script);
    return out;
}

std::string as_text(const Document& document, const Settings& settings, const Aim& aim,
                    const Advice& advice, const ConfigUse& use) {
    std::string out =
        fmt::format("{} ({}) for {}\n", document.file(), settings.dialect().name, aim.text);
    if (use.is_known()) out += fmt::format("read by {}\n", join(programs_of(use), ", "));
    if (!advice.changes.empty()) {
        TextTable table({"setting", "before", "after", "level", "why, and what to expect"});
        for (const Change& change : advice.changes) {
            table.add({path_text(change.edit.path), or_dash(change.before), or_dash(change.after),
                       std::string(level_name(change.level)), change.reason});
            if (!change.effect.empty()) table.add_below(4, "-> " + change.effect);
        }
        out += "\n" + table.text();
    }
    if (!advice.warnings.empty()) out += "\nProblems in the file:\n";
    for (const Warning& warning : advice.warnings) {
        out += fmt::format("  {}: {}\n", warning.where.text(), warning.what);
        if (!warning.fix.empty()) out += fmt::format("      fix: {}\n", warning.fix);
    }
    if (!advice.additions.empty()) {
        std::vector<std::string> keys;
        for (const Addition& addition : advice.additions)
            keys.push_back(fmt::format("{}: {}", addition.key, addition.value));
        out += fmt::format(
            "\nNot in the file, and not added, because {} {}:\n  {}\n",
            use.is_known() ? "your program does not read" : "no program is known to read",
            keys.size() == 1 ? "it" : "them", join(keys, ", "));
    }
    if (!advice.notes.empty()) out += "\nLeft alone:\n";
    for (const std::string& note : advice.notes) out += fmt::format("  {}\n", note);
    return out + "\n";
}

Json as_json(const Document& document, const Settings& settings, const Aim& aim,
             const Advice& advice, const ConfigUse& use, const std::string& output) {
    Json changes = Json::array(), warnings = Json::array(), additions = Json::array();
    for (const Addition& addition : advice.additions) {
        additions.add(Json::object({{"key", addition.key},
                                    {"value", addition.value},
                                    {"level", level_name(addition.level)},
                                    {"reason", addition.reason}}));
    }
    for (const Change& change : advice.changes) {
        changes.add(Json::object({{"key", path_text(change.edit.path)},
                                  {"line", change.line > 0 ? Json(change.line) : Json()},
                                  {"before", change.before.empty() ? Json() : Json(change.before)},
                                  {"after", change.edit.remove ? Json() : Json(change.after)},
                                  {"level", level_name(change.level)},
                                  {"reason", change.reason},
                                  {"effect", change.effect}}));
    }
    for (const Warning& warning : advice.warnings) {
        warnings.add(Json::object({{"line", warning.where.line},
                                   {"column", warning.where.column},
                                   {"what", warning.what},
                                   {"fix", warning.fix}}));
    }
    const auto& gpu = aim.facts.gpu;
    return Json::object({{"schema", 1},
                         {"input", document.file()},
                         {"output", output.empty() ? Json() : Json(output)},
                         {"dialect", settings.dialect().name},
                         {"read_by", Json::array_of(programs_of(use))},
                         {"gpu", gpu ? Json(gpu->name) : Json()},
                         {"gpus", aim.facts.processes},
                         {"cores", aim.facts.cores},
                         {"changes", changes},
                         {"advice", additions},
                         {"warnings", warnings},
                         {"notes", Json::array_of(advice.notes)}});
}

// Returns the dialect that --dialect names, or null to recognise it.
const Dialect* named_dialect(const Arguments& arguments) {
    auto name = arguments.text("--dialect");
    if (!name) return nullptr;
    if (const Dialect* dialect = find_dialect(*name)) return dialect;
    std::vector<std::string> names;
    for (const Dialect& dialect : dialects()) names.push_back(dialect.name);
    Problem problem{.found = fmt::format("--dialect is {}", in_quotes(*name)),
                    .expected = join(names, ", ")};
    if (auto meant = closest(*name, names)) problem.fix = fmt::format("--dialect {}", *meant);
    throw UserError(problem);
}

[[noreturn]] void throw_no_training(const Document& document) {
    throw UserError(
        {.where = {document.file()},
         .found = "not a training configuration: it has none of the settings of docs/settings.md",
         .expected = "keys such as batch_size, num_workers or learning_rate",
         .fix = "name the file that your training reads"});
}

// Returns "the answer is no" if measuring proved nothing that could be written.
int status_of(const std::optional<TuneAnswer>& measured, const Benchmarked& proven) {
    if (!measured) return kDone;
    if (measured->interrupted) return kInterrupted;
    return proven.advice.changes.empty() ? kAnswerIsNo : kDone;
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
    Aim aim = choose_target(arguments);
    const Dialect* dialect = named_dialect(arguments);
    Settings settings = Settings::read(document, dialect);
    if (!settings.is_training()) throw_no_training(document);
    ConfigUse use;
    if (!settings.dialect().is_ours()) use = read_config_use(input, arguments.command);
    // A program that is only read must be Python; one that is measured may be anything.
    if (!use.problem.empty() && !arguments.command.empty() && !arguments.has("--benchmark")) {
        throw UserError({.found = use.problem,
                         .expected = "a command that starts a Python program",
                         .fix = "saturate optimize --config c.yaml -- python train.py"});
    }
    if (!dialect && (dialect = dialect_by_use(document, use)))
        settings = Settings::read(document, dialect);
    KeyReader reader = [&use](const KeyPath& path) {
        const FactKey* key = use.reads(path);
        return key ? key->place().text() : std::string();
    };
    Advice advice = advise(document, settings, aim.facts, reader);
    keep_what_is_read(document, use, advice);
    std::optional<TuneAnswer> measured;
    Benchmarked proven;
    fs::path folder;
    if (arguments.has("--benchmark")) {
        TuneRequest request = tune_request(arguments);
        request.folder = new_run_folder("tune");
        std::set<int> unused;
        for (const FactWithoutEffect& one : use.without_effect()) unused.insert(one.line);
        if (request.file)
            for (const std::string& key : request.file->leave_out(unused)) request.start.erase(key);
        measured = tune_and_show(request, arguments.has("--quiet"));
        if (measured->interrupted && !measured->search.baseline) {
            show(stderr, "interrupted before anything was measured; nothing written\n");
            return kInterrupted;
        }
        if (!arguments.has("--json"))
            show(output && output->is_stdout() ? stderr : stdout, "\n{}\n",
                 search_text(measured->search));
        folder = request.folder;
        proven = benchmarked(document, settings, std::move(advice), request, *measured,
                             arguments.has("--unproven"));
        advice = proven.advice;
    }
    std::string text = apply_changes(document, advice);

    // Without changes, write the output only if -o was given.
    std::size_t changes = advice.changes.size();
    std::string counted = fmt::format("{} change{}", changes, changes == 1 ? "" : "s");
    bool writes = !arguments.has("--dry-run") && (changes > 0 || arguments.has("--output"));
    fs::path backup;
    if (writes && !output) {
        backup = keep_backup(input, document.text());
        write_file_whole(input, text);
    }
    bool to_stdout = output && output->is_stdout();
    if (writes && to_stdout) fmt::print("{}", text);
    if (writes && output && !to_stdout) output->write(text);
    std::string written = output ? output->path().string() : input.string();
    std::FILE* talk = to_stdout ? stderr : stdout;

    if (arguments.has("--json")) {
        Json out = as_json(document, settings, aim, advice, use, writes ? written : "");
        if (measured) {
            Json told = to_json(*measured);  // must outlive the loop over its members
            for (const auto& [key, value] : told.members()) {
                if (key != "notes") out.set(key, value);
            }
            std::vector<std::string> notes = advice.notes;
            for (const std::string& note : measured->search.notes) notes.push_back(note);
            out.set("notes", Json::array_of(notes));
            out.set("unproven", unproven_json(proven));
        }
        fmt::print("{}\n", out.pretty());
        return status_of(measured, proven);
    }
    show(talk, "{}", as_text(document, settings, aim, advice, use));
    if (measured) show(talk, "{}", measured_text(*measured, proven, folder));
    if (writes) {
        show(talk, "{} written to {}{}\n", counted, to_stdout ? "standard output" : written,
             backup.empty() ? "" : fmt::format("; the old file is {}", backup.string()));
    } else if (changes == 0) {
        show(talk, "{}\n", proven.rest.empty() ? "Nothing to change." : "Nothing is written.");
    } else {
        show(talk, "{}; nothing written (--dry-run)\n", counted);
    }
    return status_of(measured, proven);
}

}  // namespace saturate
