// SPDX-License-Identifier: Apache-2.0
#include "report/run_text.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/diagnosis_text.h"
#include "telemetry/record_json.h"
#include "telemetry/summary_text.h"

namespace saturate {
namespace {

std::string steps_text(const RunSummary& run) {
    std::string out = fmt::format("{} training steps in {:.1f} s", run.steps.value_or(0),
                                  static_cast<double>(run.duration_ns) / 1e9);
    if (run.step_p50_ms)
        out += fmt::format(", {:.2f} ms each (p99 {:.2f} ms)", *run.step_p50_ms,
                           run.step_p99_ms.value_or(0));
    if (const auto& rate = run.samples_per_second)
        out += fmt::format(", {:.0f} samples/s (n={}, {:.0f}..{:.0f})", rate->rate, rate->n,
                           rate->low, rate->high);
    for (const auto& [name, percent] : run.stall_percent) {
        if (percent >= 0.05)
            out += fmt::format(", {:.1f} % {}", percent,
                               name == "input_wait" ? "waiting for data" : name);
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

// Lines of another text, marked as ours: the command's own output is on the same terminal.
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
    if (has_steps) {
        out += steps_text(view.result);
    } else {
        std::string why =
            view.torch.empty()
                ? "not Python with PyTorch 2.0 or newer, or python -I, -E or -S"
                : fmt::format(
                      "PyTorch {} was imported, but the command ended before an optimizer "
                      "of torch's made a step",
                      view.torch);
        out += fmt::format("{:.1f} s, status {}; no training step seen from inside: {}\n",
                           static_cast<double>(view.result.duration_ns) / 1e9,
                           view.result.exit_status.value_or(0), why);
    }
    out += ranks_text(view.ranks);
    if (view.changes.is_array() && !view.changes.items().empty())
        out += "--apply:\n" + changes_text(view.changes);
    if (!view.permanent.empty()) out += "to make it last:\n" + permanent_text(view.permanent);
    bool has_gpu = !view.summary.gpus.empty();
    if (has_gpu || !has_steps) out += summary_text(view.summary, {});
    if (has_steps) out += "\n" + diagnosis_text(view.diagnosis, {});
    for (const std::string& note : view.notes) out += fmt::format("note: {}\n", note);
    out += fmt::format("the record is {}\n", view.records.empty() ? "-" : view.records[0]);
    return marked(out);
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
