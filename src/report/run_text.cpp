// SPDX-License-Identifier: Apache-2.0
#include "report/run_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/text.h"
#include "report/diagnosis_text.h"
#include "telemetry/record_json.h"
#include "telemetry/summary_text.h"

namespace saturate {
namespace {

// The name of a part of a step, and the findings about it.
struct PartRow {
    StepPart part;
    const char* name;
    std::vector<std::string_view> findings;
};

const std::vector<PartRow>& part_rows() {
    static const std::vector<PartRow> rows = {
        {StepPart::input_wait, "waiting for data", {"F01", "F02", "F05"}},
        {StepPart::copy, "copying to the device", {"F03", "F04"}},
        {StepPart::forward, "forward pass", {}},
        {StepPart::backward, "backward pass", {}},
        {StepPart::optimizer, "optimizer step", {"F13", "F14"}},
        {StepPart::communication, "communication", {"F15", "F16"}},
        {StepPart::synchronisation, "waiting for the GPU", {"F06", "F07", "F08"}},
        {StepPart::log, "writing logs", {}},
    };
    return rows;
}

// Returns how the time of a step divides up, the largest part first, with the cause marked.
std::string tree_text(const StepSums& steps, std::string_view cause) {
    struct Line {
        std::string name;
        double seconds;
        bool is_cause;
    };
    double rest = steps.seconds;
    std::vector<Line> lines;
    for (const PartRow& row : part_rows()) {
        if (steps.told(row.part) == 0) continue;
        double seconds = std::min(steps.sum(row.part), rest);
        rest -= seconds;
        bool is_cause = std::ranges::find(row.findings, cause) != row.findings.end();
        lines.push_back({row.name, seconds, is_cause});
    }
    bool has_forward = steps.told(StepPart::forward) > 0;
    lines.push_back({has_forward ? "everything else" : "forward pass and the rest", rest, false});
    std::ranges::stable_sort(lines, std::greater{}, &Line::seconds);
    double step_ms = 1e3 * steps.step_seconds();
    int digits = step_ms < 10 ? 2 : 1;
    std::string out = fmt::format("  a step takes {:.{}f} ms:\n", step_ms, digits);
    for (const Line& line : lines) {
        double share = line.seconds / steps.seconds;
        if (share < 0.005) continue;
        constexpr double kBarWidth = 10;  // all of it in 80 columns, behind our mark
        std::string bar(static_cast<std::size_t>(std::lround(kBarWidth * share)), '#');
        std::string ms = fmt::format("{:.{}f} ms", share * step_ms, digits);
        std::string text =
            fmt::format("    {:<25}  {:>10}  {:>3.0f} %  {}", line.name, ms, 100 * share, bar);
        while (text.ends_with(' ')) text.pop_back();
        out += text + (line.is_cause ? " <- cause" : "") + "\n";
    }
    return out;
}

// Returns the next steps: the fix of the first finding, and the command that tries it.
std::string next_text(const RunAnswer& view, const std::vector<Finding>& shown) {
    if (shown.empty()) return "";
    std::string out = fmt::format("  next: {}\n", shown[0].fix_text());
    if (!shown[0].where.empty()) out += fmt::format("  at:   {}\n", shown[0].where);
    constexpr std::size_t kLongest = 160;
    std::string command = shell_words(view.command);
    if (command.empty() || command.size() > kLongest) command = "COMMAND";
    return out + fmt::format(
                     "  or:   saturate fix -- {}\n"
                     "        tries this, proves the gain and writes a patch\n",
                     command);
}

std::string steps_text(const RunSummary& run) {
    std::string out = fmt::format("{} training steps in {:.1f} s", run.steps.value_or(0),
                                  static_cast<double>(run.duration_ns) / 1e9);
    if (run.step_p50_ms)
        out += fmt::format(", median {:.2f} ms, p99 {:.2f} ms", *run.step_p50_ms,
                           run.step_p99_ms.value_or(0));
    if (const auto& rate = run.samples_per_second) {
        out += fmt::format(", {:.0f} samples/s", rate->rate);
        if (rate->n > 1)
            out += fmt::format(" (n={}, {:.0f}..{:.0f})", rate->n, rate->low, rate->high);
    }
    return out + "\n";
}

std::string ranks_text(const std::vector<RunRecord>& ranks) {
    std::string out;
    for (const RunRecord& record : ranks) {
        if (!record.summary || !record.summary->steps) continue;
        double wait = 0;
        for (const auto& [name, percent] : record.summary->stall_percent) {
            if (name == "input_wait") wait = percent;
        }
        out += fmt::format("  rank {:<3} {:6} steps of {:8.2f} ms, {:5.1f} % waiting for data\n",
                           record.info.rank, *record.summary->steps,
                           record.summary->step_p50_ms.value_or(0), wait);
    }
    return out;
}

std::string changes_text(const Json& changes) {
    std::string out;
    for (const Json& change : changes.items()) {
        std::string state = change["state"].string().value_or("");
        std::string name = change["name"].string().value_or("");
        if (auto level = change["level"].string()) name += fmt::format(" ({})", *level);
        out += fmt::format("  {:<10} {}: {}\n", state, name, change["text"].string().value_or(""));
    }
    return out;
}

std::string permanent_text(const std::vector<PermanentEdit>& edits) {
    std::string out;
    for (const PermanentEdit& edit : edits) {
        out += edit.where.empty() ? fmt::format("  {}\n", edit.line)
                                  : fmt::format("  {}: {}\n", edit.where, edit.line);
        for (std::string_view line : split(edit.patch, '\n')) {
            if (!line.empty()) out += fmt::format("    {}\n", line);
        }
    }
    return out;
}

Json permanent_json(const std::vector<PermanentEdit>& edits) {
    Json out = Json::array();
    for (const PermanentEdit& edit : edits) {
        out.add(Json::object({{"names", Json::array_of(edit.names)},
                              {"where", edit.where},
                              {"line", edit.line},
                              {"patch", edit.patch}}));
    }
    return out;
}

// Why no training step was seen.
std::string why_no_steps(const RunAnswer& view) {
    if (!view.torch.empty() && view.is_limited)
        return fmt::format(
            "PyTorch {} was imported, but the time was up before a PyTorch optimizer made a step",
            view.torch);
    if (!view.torch.empty())
        return fmt::format(
            "PyTorch {} was imported, but the command ended before a PyTorch optimizer made a step",
            view.torch);
    if (view.is_limited) return "the time was up before it trained";
    // The command has reported its failure; a guess that it is not PyTorch would not help.
    if (view.result.exit_status.value_or(0) != 0) return "it ended before it trained";
    return "not Python 3.9 or newer with PyTorch 1.8 or newer, or python -I, -E or -S, or "
           "something replaced "
           "PYTHONPATH on the way";
}

// Files below the folder are named from there, as the user types them.
std::string seen_from(const std::string& folder, const std::string& text) {
    if (folder.empty()) return text;
    std::string out, prefix = folder.ends_with('/') ? folder : folder + '/';
    constexpr std::string_view kBefore = " \n\"'(";
    std::size_t at = 0;
    for (std::size_t next; (next = text.find(prefix, at)) != std::string::npos;) {
        bool is_whole = next == 0 || kBefore.find(text[next - 1]) != std::string_view::npos;
        std::size_t end = next + prefix.size();
        out += text.substr(at, (is_whole ? next : end) - at);
        at = end;
    }
    return out + text.substr(at);
}

// Marks each line as ours, because the command prints to the same terminal.
std::string marked(const std::string& text) {
    std::string out;
    for (std::string_view line : split(text, '\n'))
        out += line.empty() ? "\n" : fmt::format("saturate: {}\n", line);
    while (out.ends_with("\n\n")) out.pop_back();
    return out;
}

}  // namespace

std::string run_text(const RunAnswer& view) {
    std::string out;
    bool has_steps = view.result.steps.value_or(0) > 0;
    bool has_failed = view.result.exit_status.value_or(0) != 0;
    if (has_steps) {
        // The answer comes first, the figures behind it follow.
        std::vector<Finding> shown = view.diagnosis.shown(5, false);
        out += verdict_lines(view.diagnosis.verdict) + "\n";
        if (view.steps.seconds > 0)
            out += tree_text(view.steps, shown.empty() ? "" : shown[0].id) + "\n";
        if (std::string next = next_text(view, shown); !next.empty()) out += next + "\n";
        out += steps_text(view.result);
    } else {
        out += fmt::format("{:.1f} s, status {}; no training step seen from inside: {}\n",
                           static_cast<double>(view.result.duration_ns) / 1e9,
                           view.result.exit_status.value_or(0), why_no_steps(view));
    }
    out += ranks_text(view.ranks);
    if (view.changes.is_array() && !view.changes.items().empty())
        out += "--apply:\n" + changes_text(view.changes);
    if (!view.permanent.empty()) out += "to keep these changes:\n" + permanent_text(view.permanent);
    bool has_gpu = !view.summary.gpus.empty();
    if (has_gpu || (!has_steps && !has_failed)) out += summary_text(view.summary, {});
    if (has_steps) out += "\n" + diagnosis_text(view.diagnosis, {.with_answer = false});
    for (const std::string& note : view.notes) out += fmt::format("note: {}\n", note);
    out += fmt::format("the record is {}\n", view.records.empty() ? "-" : view.records[0]);
    return marked(seen_from(view.folder, out));
}

Json run_json(const RunAnswer& view) {
    return Json::object({{"schema", 1},
                         {"run", view.records.empty() ? "" : view.records[0]},
                         {"records", Json::array_of(view.records)},
                         {"summary", summary_json(view.result)},
                         {"changes", view.changes.is_null() ? Json::array() : view.changes},
                         {"permanent", permanent_json(view.permanent)},
                         {"diagnosis", to_json(view.diagnosis, 5, false)},
                         {"notes", Json::array_of(view.notes)}});
}

}  // namespace saturate
