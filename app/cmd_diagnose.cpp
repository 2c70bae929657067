// SPDX-License-Identifier: Apache-2.0
// diagnose: sorts its operands into traces, run records and configurations, prints the diagnosis,
// and applies settings if asked to.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "arguments.h"
#include "base/error.h"
#include "base/file.h"
#include "base/output_file.h"
#include "commands.h"
#include "config/settings.h"
#include "diagnose_project.h"
#include "diagnosis/diagnosis.h"
#include "diagnosis/trace_read.h"
#include "exit_code.h"
#include "probe/machine.h"
#include "process/gpus.h"
#include "remedies/advise.h"
#include "report/diagnosis_text.h"
#include "report/timeline_html.h"
#include "show.h"
#include "telemetry/run_gather.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

bool has_extension(const fs::path& path, std::initializer_list<std::string_view> extensions) {
    std::string name = path.filename().string();
    return std::ranges::any_of(extensions,
                               [&](std::string_view end) { return name.ends_with(end); });
}

bool is_trace_name(const fs::path& path) {
    return has_extension(
        path, {".json", ".json.gz", ".json.zst", ".sqlite", ".sqlite.gz", ".sqlite.zst"});
}
bool is_config_name(const fs::path& path) {
    return has_extension(path, {".yaml", ".yml", ".toml"});
}

bool has_traces(const fs::path& folder) {
    return std::ranges::any_of(fs::directory_iterator(folder), [](const fs::directory_entry& one) {
        return one.is_regular_file() && is_trace_name(one.path());
    });
}

// Returns the program or folder of sources among the operands. It must be the only operand.
std::optional<fs::path> project_among(const std::vector<std::string>& operands) {
    for (const std::string& operand : operands) {
        bool is_other =
            fs::is_directory(operand) && (is_run_record(operand) || has_traces(operand));
        if (is_other || !is_project(operand)) continue;
        if (operands.size() > 1) {
            throw UserError({.where = {operand},
                             .found = "a program together with other inputs",
                             .expected = "the program alone, or traces, records and configurations",
                             .fix = fmt::format("saturate diagnose {}", operand)});
        }
        return operand;
    }
    return std::nullopt;
}

struct Inputs {
    std::vector<fs::path> traces;
    std::vector<fs::path> runs;
    std::vector<fs::path> configs;
};

Inputs sort_inputs(const std::vector<std::string>& operands) {
    Inputs inputs;
    for (const std::string& operand : operands) {
        fs::path path = operand;
        if (!fs::is_directory(path)) {
            (is_config_name(path) ? inputs.configs : inputs.traces).push_back(path);
        } else if (is_run_record(path)) {
            inputs.runs.push_back(path);
        } else {
            std::vector<fs::path> found;
            for (const auto& entry : fs::directory_iterator(path)) {
                if (entry.is_regular_file() && is_trace_name(entry.path()))
                    found.push_back(entry.path());
            }
            if (found.empty()) {
                throw UserError(
                    {.where = {operand},
                     .found = "a folder without traces",
                     .expected =
                         "a run record, or *.json, *.json.gz, *.json.zst or *.sqlite of one job's "
                         "ranks"});
            }
            std::ranges::sort(found);
            inputs.traces.insert(inputs.traces.end(), found.begin(), found.end());
        }
    }
    return inputs;
}

// Returns the facts of this machine, like optimize.
Facts here() {
    return machine_facts(probe_cpu(), probe_memory(), first_gpu(survey_gpus()), Level::training);
}

// Diagnoses the file alone, plus the keys that no program near it reads.
Diagnosis config_diagnosis(const Document& document) {
    Diagnosis out = diagnose_config(document, here());
    std::vector<Finding> unread = unread_keys(document);
    if (unread.empty()) return out;
    out.verdict = fmt::format("{} of the file {} no effect; {}",
                              unread.size() == 1 ? "a key" : fmt::format("{} keys", unread.size()),
                              unread.size() == 1 ? "has" : "have", out.verdict);
    for (Finding& finding : unread) out.findings.push_back(std::move(finding));
    out.findings = merged(std::move(out.findings));
    return out;
}

void add_findings(std::vector<Finding> more, Diagnosis& answer) {
    if (more.empty()) return;  // keep the order: a late rank comes first, whatever its gain
    for (Finding& finding : more) answer.findings.push_back(std::move(finding));
    answer.findings = merged(std::move(answer.findings));
}

// Adds settings of the file that were not in force in the run.
void join_settings(const RunRecord& record, const Document& document, Diagnosis& answer) {
    if (record.info.settings_source == document.file()) return;  // already reported with the record
    std::vector<Finding> found;
    settings_in_force(record, document, found);
    add_findings(std::move(found), answer);
}

// Diagnoses all operands. Keeps the traces in `kept`, if given, so that the caller can draw them.
Diagnosis diagnose(const std::vector<std::string>& operands, const TraceOptions& options,
                   std::vector<Trace>* kept = nullptr) {
    Inputs inputs = sort_inputs(operands);
    std::optional<Diagnosis> answer;
    auto join = [&](Diagnosis other) {
        answer = answer ? joined(std::move(*answer), std::move(other)) : std::move(other);
    };
    auto join_traces = [&](const std::vector<fs::path>& paths) {
        std::vector<Trace> traces = read_traces(paths, options);
        join(diagnose_traces(traces));
        if (kept) *kept = std::move(traces);
    };
    if (!inputs.traces.empty()) join_traces(inputs.traces);
    for (const fs::path& run : inputs.runs) {
        if (kept && inputs.traces.empty() && fs::is_regular_file(run / "trace.json.gz"))
            join_traces({run / "trace.json.gz"});  // to draw it
        RunRecord record = gather_run(run);
        std::vector<Finding> unused;
        if (inputs.configs.empty() && record.info.kind == "run")
            unused = settings_without_effect(record);
        join(inputs.traces.empty() && !kept ? diagnose_run_folder(run, std::move(record))
                                            : diagnose_run(record, run.string()));
        add_findings(std::move(unused), *answer);
    }
    for (const fs::path& config : inputs.configs) {
        Document document = Document::read(config.string());
        join(config_diagnosis(document));
        for (const fs::path& run : inputs.runs) join_settings(gather_run(run), document, *answer);
    }
    return std::move(*answer);
}

// Turns the settings of the findings into changes of the configuration in its dialect. Only for
// keys that the file has; optimize decides where new keys belong.
Advice advice_for(const Document& document, const std::vector<Finding>& findings) {
    Settings settings = Settings::read(document);
    std::vector<FoundValue> values;
    for (const Finding& finding : findings) {
        for (const SettingChange& change : finding.settings) {
            const SettingInfo* info = find_setting(change.key);
            if (!info || !settings.get(info->id)) continue;
            bool is_same = std::ranges::any_of(
                values, [&](const FoundValue& value) { return value.setting == info->id; });
            if (!is_same)
                values.push_back({.setting = info->id,
                                  .value = change.value,
                                  .reason = fmt::format("{} {}", finding.id, finding.name())});
        }
    }
    return advise_values(document, settings, values);
}

void apply(const std::vector<std::string>& operands, const Diagnosis& diagnosis, std::size_t most) {
    Inputs inputs = sort_inputs(operands);
    if (inputs.configs.size() != 1) {
        throw UserError({.found = fmt::format("--apply needs one configuration, and there are {}",
                                              inputs.configs.size()),
                         .expected = "one to edit, beside the trace or run record",
                         .fix = "saturate diagnose trace.json.gz job.yaml --apply"});
    }
    Document document = Document::read(inputs.configs[0].string());
    Advice advice = advice_for(document, diagnosis.shown(most, false));
    if (advice.changes.empty()) {
        show(stderr, "nothing to apply: no finding names a key of {}\n", document.file());
        return;
    }
    std::string text = apply_changes(document, advice);
    fs::path backup = keep_backup(document.file(), document.text());
    write_file_whole(document.file(), text);
    for (const Change& change : advice.changes)
        show(stderr, "{}: {} = {}  ({})\n", document.file(), path_text(change.edit.path),
             change.after, change.reason);
    show(stderr, "the old file is {}\n", backup.string());
}

std::optional<OutputFile> page_of(const Arguments& arguments) {
    auto name = arguments.text("--html");
    if (!name) return std::nullopt;
    if (name == "-" && arguments.has("--json")) {
        throw UserError(Problem{.found = "--json and --html - together",
                                .expected = "one answer on standard output"});
    }
    return OutputFile(*name, {.inputs = {arguments.operands.begin(), arguments.operands.end()},
                              .force = arguments.has("--force")});
}

int compare(const Arguments& arguments, const TraceOptions& options) {
    auto before = arguments.text("--before"), after = arguments.text("--after");
    if (!before || !after || !arguments.operands.empty()) {
        throw UserError(Problem{.found = "--before and --after go together, without other inputs",
                                .expected = "diagnose --before A --after B"});
    }
    Diagnosis old_one = diagnose({*before}, options), new_one = diagnose({*after}, options);
    if (arguments.has("--json"))
        fmt::print("{}\n", comparison_json(old_one, new_one).pretty());
    else
        show(stdout, "{}", comparison_text(old_one, new_one));
    return kDone;
}

}  // namespace

int cmd_diagnose(const Arguments& arguments) {
    if (arguments.has("--how")) {
        fmt::print("{}", how_text());
        return kDone;
    }
    TraceOptions options;
    options.limit_bytes =
        static_cast<std::uint64_t>(*arguments.number("--limit", 0.001, 100000) * 1e9);
    if (arguments.has("--before") || arguments.has("--after")) return compare(arguments, options);
    if (arguments.operands.empty()) {
        throw UserError({.found = "nothing to diagnose",
                         .expected = "a trace, a run record, a configuration or your program",
                         .fix = "saturate diagnose --how prints how to record a trace"});
    }
    if (auto project = project_among(arguments.operands))
        return diagnose_project(arguments, *project, here());
    auto most = static_cast<std::size_t>(*arguments.whole("--top", 1, 1000));
    std::optional<OutputFile> page = page_of(arguments);
    std::vector<Trace> traces;
    Diagnosis diagnosis = diagnose(arguments.operands, options, page ? &traces : nullptr);
    bool everything = arguments.has("--all");
    if (arguments.has("--json"))
        fmt::print("{}\n", to_json(diagnosis, most, everything).pretty());
    else
        show(page && page->is_stdout() ? stderr : stdout, "{}",
             diagnosis_text(diagnosis, {.most = most, .everything = everything}));
    if (page) {
        const Trace* drawn = trace_to_draw(diagnosis, traces);
        std::string text =
            diagnosis_page(diagnosis, drawn,
                           {.most = most, .everything = everything, .language = shown_language()});
        if (page->is_stdout()) {
            fmt::print("{}", text);
        } else {
            page->write(text);
            show(stderr, "the page is {}\n", page->path().string());
        }
    }
    if (arguments.has("--apply")) apply(arguments.operands, diagnosis, most);
    if (auto percent = arguments.number("--fail-on", 0, 100000)) {
        bool fails = std::ranges::any_of(diagnosis.shown(1000, false), [&](const Finding& finding) {
            return 100.0 * (finding.gain.likely - 1.0) >= *percent;
        });
        if (fails) return kAnswerIsNo;
    }
    return kDone;
}

}  // namespace saturate
