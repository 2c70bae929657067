// SPDX-License-Identifier: Apache-2.0
// Findings from a configuration alone: keys without effect, contradictions, and values that are too
// large for the machine. F02, F03, F06, F14, F30, F32. Their gain is not measured.
#include <fmt/format.h>

#include <algorithm>

#include "config/settings.h"
#include "diagnosis/cure.h"
#include "diagnosis/diagnosis.h"

namespace saturate {
namespace {

Finding finding_at(std::string id, const Place& place, std::string evidence) {
    Finding finding{.id = std::move(id),
                    .count = 1,
                    .confidence = Confidence::low,
                    .sources = {"configuration"}};
    finding.evidence = fmt::format("{}: {}", place.text(), evidence);
    finding.surer = "a trace or a run record shows what it costs";
    return finding;
}

// Sets the fix to the changed line of the file.
void set_line(Finding& finding, const Value& value, std::string_view key) {
    auto change = std::ranges::find(finding.settings, key, &SettingChange::key);
    if (change != finding.settings.end())
        finding.fix = fmt::format("{}: {}", path_text(value.path), change->value);
}

}  // namespace

std::vector<Finding> config_findings(const Document& document, Facts facts) {
    std::vector<Finding> out;
    Settings settings = Settings::read(document);
    add_settings(facts, settings);
    int cores = facts.cores_per_process();
    for (const Warning& warning : settings.warnings()) {
        Finding finding = finding_at("F32", warning.where, warning.what);
        finding.confidence = Confidence::high;
        finding.surer.clear();
        finding.fix = warning.fix;
        out.push_back(finding);
    }
    const Value* workers = settings.get(Setting::num_workers);
    if (workers && !workers->left_alone && !workers->numbers.empty()) {
        int count = static_cast<int>(workers->numbers[0]);
        if (count == 0) {
            Finding finding = finding_at("F02", workers->place,
                                         "the loader runs in the training process (0 workers)");
            finding.settings = cures("F02", facts);
            set_line(finding, *workers, "num_workers");
            out.push_back(finding);
        } else if (count > cores) {
            Finding finding = finding_at(
                "F30", workers->place, fmt::format("{} workers on {} usable cores", count, cores));
            finding.settings = cures("F30", facts);
            set_line(finding, *workers, "num_workers");
            out.push_back(finding);
        }
    }
    const Value* pin = settings.get(Setting::pin_memory);
    if (pin && pin->flag == false) {
        Finding finding = finding_at("F03", pin->place, "batches are copied from pageable memory");
        finding.settings = cures("F03", facts);
        set_line(finding, *pin, "pin_memory");
        out.push_back(finding);
    }
    const Value* none = settings.get(Setting::set_to_none);
    if (none && none->flag == false) {
        Finding finding = finding_at("F14", none->place, "gradients are set to zero by kernels");
        finding.settings = cures("F14", facts);
        set_line(finding, *none, "set_to_none");
        out.push_back(finding);
    }
    const Value* log = settings.get(Setting::log_interval);
    if (log && !log->numbers.empty() && log->numbers[0] == 1 &&
        log->convention != Convention::epochs) {
        Finding finding = finding_at("F06", log->place,
                                     "logging every step reads a value from the device every step");
        finding.settings = cures("F06", facts);
        set_line(finding, *log, "log_interval");
        out.push_back(finding);
    }
    return out;
}

Diagnosis diagnose_config(const Document& document, const Facts& facts) {
    Diagnosis out;
    out.inputs = {document.file()};
    out.findings = merged(config_findings(document, facts));
    out.split.unknown = 100;
    out.verdict =
        out.findings.empty()
            ? "the configuration alone shows no fault; a trace or a run record shows more"
            : fmt::format("the configuration shows {} fault{}; only a run can tell what they cost",
                          out.findings.size(), out.findings.size() == 1 ? "" : "s");
    return out;
}

}  // namespace saturate
