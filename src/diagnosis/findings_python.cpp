// SPDX-License-Identifier: Apache-2.0
// Findings from the record of the shim inside a Python process (python.json), with the line and the
// edit that fixes it. F06, F11, F13, F14, F23, F28, F30. For its loaders see findings_loader.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "diagnosis/cure.h"
#include "diagnosis/diagnosis.h"
#include "diagnosis/patch.h"
#include "diagnosis/python_json.h"

namespace saturate {
namespace {

// Returns the reads of tensors on a device, for which the host waits. Records without the field
// `waits` hold only such reads.
Json reads_that_wait(const Json& python) {
    Json out = Json::array();
    for (const Json& read : python["reads"].items())
        if (read["waits"].integer().value_or(1) > 0) out.add(read);
    return out;
}

void reads(const Json& python, const MeanStep& times, std::vector<Finding>& findings) {
    double steps = std::max(1.0, python["steps"].number().value_or(1));
    double ns = 0;
    std::int64_t count = 0;
    Json waits = reads_that_wait(python);
    for (const Json& read : waits.items()) {
        ns += read["ns"].number().value_or(0);
        count += read["count"].integer().value_or(0);
    }
    double per_step = ns / steps;
    if (count == 0 || times.step <= 0 || per_step < 0.05 * times.step) return;
    Finding finding{
        .id = "F06", .count = count, .confidence = Confidence::low, .sources = {"run record"}};
    finding.share_percent = std::min(100.0, 100.0 * per_step / times.step);
    finding.ms_per_step = per_step / 1e6;
    const Json& first = waits.items()[0];
    finding.where = where_of(first["site"]);
    finding.evidence = fmt::format(
        "{:.1f} reads per step hold the host up for {:.1f} % of the step; most by .{}()",
        static_cast<double>(count) / steps, finding.share_percent,
        first["call"].string().value_or("?"));
    for (const Json& read : waits.items()) {
        if (finding.examples.size() == 3) break;
        finding.examples.push_back(
            {.text = fmt::format(".{}() {} times, {:.1f} ms", read["call"].string().value_or("?"),
                                 read["count"].integer().value_or(0),
                                 read["ns"].number().value_or(0) / 1e6),
             .source = where_of(read["site"])});
    }
    // While the host waits, the device works: only the host's lead is lost. After 2954 reads of a
    // segmentation job an A100 idled for 11 % of the read time. In a small model it was 3 to 74 %;
    // the shorter the kernels, the more.
    constexpr double kIdlesBehind = 0.1;
    finding.gain = {1.0, 1.0 + kIdlesBehind * finding.share_percent / 100.0,
                    1.0 / std::max(0.5, 1.0 - finding.share_percent / 100.0)};
    finding.assumes =
        "the device idles for 10 % of the time that the reads take, as seen in one trace";
    finding.surer = "a trace shows whether the device idles after them";
    findings.push_back(finding);
}

void collections(const Json& python, const MeanStep& times, std::vector<Finding>& findings) {
    double ns = python["gc"]["ns"].number().value_or(0);
    double total = times.step * std::max(1.0, python["steps"].number().value_or(1));
    // One long collection cleans up after the code before the loop; the loop does not repeat it.
    double longest = python["gc"]["longest_in_step_ns"].number().value_or(0);
    if (total <= 0 || ns - longest < 0.03 * total) return;
    Finding finding{
        .id = "F11", .count = times.n, .confidence = Confidence::high, .sources = {"run record"}};
    finding.share_percent = 100.0 * ns / total;
    finding.ms_per_step = finding.share_percent / 100.0 * times.step / 1e6;
    finding.evidence = fmt::format(
        "Python's garbage collector takes {:.1f} % of the time, up to {:.1f} ms in one step",
        finding.share_percent, longest / 1e6);
    finding.fix = "gc.collect(); gc.freeze() before the loop, gc.disable() in it";
    double bound = total / (total - ns);
    finding.gain = gain_of(1.0 + 0.8 * (bound - 1.0), bound);
    finding.assumes = "80 % of it is saved (estimate): collecting once per epoch costs the rest";
    findings.push_back(finding);
}

void optimizers(const RunRecord& record, std::vector<Finding>& findings) {
    const Json& python = record.python;
    for (const Json& optimizer : python["optimizers"].items()) {
        bool is_single = optimizer["foreach"].boolean() == false &&
                         !optimizer["fused"].boolean().value_or(false);
        if (!is_on_gpu(python) || !is_single || optimizer["tensors"].integer().value_or(0) < 50)
            continue;
        Finding finding{.id = "F13",
                        .count = optimizer["tensors"].integer().value_or(0),
                        .optional = true,
                        .sources = {"run record"}};
        finding.where = where_of(optimizer["site"]);
        finding.evidence = fmt::format("foreach=False: {} updates {} tensors one by one",
                                       optimizer["type"].string().value_or("it"), finding.count);
        finding.settings = cures("F13", record_facts(record));
        finding.patch = keyword_patch(optimizer["site"], optimizer["call"], {{"foreach", "True"}});
        findings.push_back(finding);
        return;
    }
}

void zero_grads(const RunRecord& record, std::vector<Finding>& findings) {
    const Json& python = record.python;
    const Json& zero = python["zero_grad"];
    if (zero["to_zero"].integer().value_or(0) < 2 || zero["site"].is_null()) return;
    Finding finding{.id = "F14",
                    .count = *zero["to_zero"].integer(),
                    .optional = !is_on_gpu(python),
                    .sources = {"run record"}};
    finding.where = where_of(zero["site"]);
    finding.evidence =
        "gradients are filled with zeros, then added to; None lets backward write them";
    finding.optional = true;  // its time is not known without a trace
    // The training stays the same only if every parameter has a gradient in every step: weight
    // decay and momentum move a parameter with a zero gradient, but not one without a gradient.
    // Only a run shows which case it is.
    finding.surer =
        "saturate run --apply set_to_none takes the change back if a parameter has no gradient in "
        "a step; otherwise it shows the edit";
    findings.push_back(finding);
}

void pauses(const Json& python, std::vector<Finding>& findings) {
    Finding* pause = found(findings, "F23");
    if (!pause) return;
    double longest = 0;
    for (const Json& save : python["saves"].items()) {
        if (double ns = save["ns"].number().value_or(0); ns > longest) {
            longest = ns;
            pause->where = where_of(save["site"]);
        }
    }
}

void parallel(const Json& python, std::vector<Finding>& findings) {
    if (!is_on_gpu(python) || python["parallel"]["DataParallel"].integer().value_or(0) == 0) return;
    Finding finding{.id = "F28", .count = 1, .optional = true, .sources = {"run record"}};
    finding.evidence =
        "the model is in DataParallel: one process drives all GPUs and copies the model at every "
        "step";
    findings.push_back(finding);
}

// More threads than cores, in several processes or in a single one.
void threads(const Json& python, std::vector<Finding>& findings) {
    double world = python["world_size"].number().value_or(1);
    double each = python["flags"]["threads"].number().value_or(1),
           cores = python["flags"]["cores"].number().value_or(0);
    if (cores <= 0 || world * each <= cores || found(findings, "F30")) return;
    if (world < 2 && is_on_gpu(python)) return;
    Finding finding{.id = "F30",
                    .count = static_cast<std::int64_t>(world),
                    .confidence = Confidence::medium,
                    .sources = {"run record"}};
    finding.evidence = world < 2 ? fmt::format("{} threads compute on {} cores", each, cores)
                                 : fmt::format("{} processes of {} threads each share {} cores",
                                               world, each, cores);
    finding.fix = fmt::format("OMP_NUM_THREADS={}, or torch.set_num_threads",
                              std::max(1.0, std::floor(cores / world)));
    finding.optional = is_on_gpu(python);
    if (finding.optional) {
        finding.gain = {1.0, 1.5, 6.0};
        finding.assumes = "1.5 times as fast (estimate)";
    } else {
        // Every operator waits for the threads that have no core. Steps of 4 ms on 2 cores took 11
        // and 17 times as long with 3 threads, and 11 times and more with 16.
        finding.gain = {1.5, 6.0, 12.0};
        finding.assumes = "many short operators: 6 to 12 times was measured on small models";
    }
    findings.push_back(finding);
}

}  // namespace

void python_findings(const RunRecord& record, std::vector<Finding>& findings) {
    const Json& python = record.python;
    if (!python.is_object()) return;
    MeanStep times = times_of(record);
    loader_findings(record, times, findings);
    reads(python, times, findings);
    collections(python, times, findings);
    optimizers(record, findings);
    zero_grads(record, findings);
    pauses(python, findings);
    parallel(python, findings);
    threads(python, findings);
}

}  // namespace saturate
