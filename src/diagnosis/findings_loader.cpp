// SPDX-License-Identifier: Apache-2.0
// Findings about the data loaders of a Python process (python.json): why the loop waits, the line
// of the loader and the edit that fixes it. F01, F02, F03, F05.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/figures.h"
#include "base/text.h"
#include "diagnosis/core_use.h"
#include "diagnosis/cure.h"
#include "diagnosis/patch.h"
#include "diagnosis/python_json.h"
#include "remedies/catalogue.h"

namespace saturate {
namespace {

// Mean times to make one batch in the data set, in ns.
struct Fetch {
    double wall = 0;
    double core = 0;  // part of it on a core, or waiting for one
    double cpu = 0;   // part of it on a core
    std::int64_t batches = 0;
    double between = 0;  // from one batch of a worker to its next one, as they arrived
    [[nodiscard]] bool is_storage() const { return core < 0.5 * wall; }
};

Fetch fetch_of(const Json& python, std::int64_t loader) {
    double wall = 0, measured_wall = 0, cpu = 0, delay = 0;
    std::int64_t batches = 0;
    for (const Json& one : python["fetches"].items()) {
        if (one["loader"].integer() != loader % 8) continue;
        batches += one["batches"].integer().value_or(0);
        wall += one["wall_ns"].number().value_or(0);
        measured_wall += one["measured_wall_ns"].number().value_or(0);
        cpu += one["cpu_ns"].number().value_or(0);
        delay += one["delay_ns"].number().value_or(0);
    }
    if (batches == 0) return {};
    double mean = wall / static_cast<double>(batches);
    auto part = [&](double ns) {
        return mean * (measured_wall > 0 ? std::min(1.0, ns / measured_wall) : 1.0);
    };
    return {mean, part(cpu + delay), part(cpu), batches, mean};
}

// If the loop waits though the workers should be enough by their mean time, that time varies. The
// loop then shows how often they really had a batch.
void see_arrivals(Fetch& fetch, std::int64_t workers, const MeanStep& times, Facts& facts) {
    if (!fetch.is_storage() || workers == 0 || worker_count(facts) > workers) return;
    fetch.between = std::max(fetch.wall, static_cast<double>(workers) * times.step);
    facts.loader->fetch_seconds = fetch.between / 1e9;
}

struct Plan {
    int workers = 0;
    double step_ns = 0;   // with these workers
    double least_ns = 0;  // ... if workers cost nothing and cores did not slow each other
};

// Cores are slower when all of them work: they share caches and memory, and on virtual machines two
// are often one physical core. 2 workers on 2 cores decoded JPEG files 1.5 times as fast as one
// process, not twice as fast (bench/run).
constexpr double kAllBusy = 0.75;
constexpr double kHandingOver = 3e5;  // ns to pass a batch through shared memory

// T' = max(T - W, D / w, work / cores) with step time T, wait W, time D to make a batch, and w
// workers. The work of a step is the CPU time that the job's processes used; if that is unknown,
// the most that its threads could use.
Plan plan_of(const MeanStep& times, const Fetch& fetch, double compute_cores, const Facts& facts,
             const CoreUse& host) {
    int cores = facts.cores_per_process();
    Plan plan{.workers = worker_count(facts)};
    double work = host.n > 0 ? std::max(host.own * times.step, fetch.cpu)
                             : fetch.core + times.compute() * compute_cores;
    plan.least_ns = std::max({times.compute(), fetch.between / plan.workers, work / cores});
    double share = host.usable({.tasks = std::min(plan.workers, cores), .cores = cores});
    plan.step_ns = std::max(plan.least_ns, cores > 1 ? work / share / kAllBusy : work);
    // Waiting for storage needs no core: even without a free one, only the rest of a batch's time
    // is added to the step.
    plan.step_ns = std::min(plan.step_ns, std::max(plan.least_ns, times.compute() + fetch.core));
    plan.step_ns += kHandingOver;
    return plan;
}

// Returns the time of an epoch of `steps` steps with the workers of the plan. The loop waits in
// full for the first batch. Workers that wait for storage start together, so their batches come in
// waves of one batch per worker.
double epoch_ns(double steps, const MeanStep& times, const Fetch& fetch, const Plan& plan) {
    double one_by_one = steps * plan.step_ns + fetch.wall * (1 - 1.0 / plan.workers);
    if (!fetch.is_storage()) return one_by_one;
    double waves = std::ceil(steps / plan.workers);
    double of_last = steps - (waves - 1) * plan.workers;
    double in_waves = waves * fetch.wall + of_last * (times.compute() + kHandingOver);
    return std::clamp(in_waves, steps * plan.step_ns, one_by_one);
}

// Returns the time of a recorded epoch over that of an epoch with the planned workers. Unless
// workers persist, every epoch starts and ends them.
double gain_over_epochs(const RunRecord& record, const Json& loader, const MeanStep& times,
                        const Fetch& fetch, const Plan& plan, bool they_stay) {
    constexpr double kStart = 10e6;  // ns to start one worker, if none was measured
    double samples = loader["dataset_size"].number().value_or(0);
    double batch = loader["batch_size"].number().value_or(0);
    if (samples <= 0 || batch <= 0) return times.step / plan.step_ns;
    double steps = std::max(1.0, std::ceil(samples / batch));
    double now = loader["num_workers"].number().value_or(0);
    PauseSums restarts = account_of(record).restarts;
    double start = kStart;
    if (now > 0 && restarts.count > 0)
        start = 1e9 * restarts.seconds / static_cast<double>(restarts.count) / now;
    // Ending workers takes about as long as starting them.
    bool stay_now = loader["persistent_workers"].boolean().value_or(false);
    double before = steps * times.step + (stay_now ? 0 : 2 * start * now);
    double after = epoch_ns(steps, times, fetch, plan) + (they_stay ? 0 : 2 * start * plan.workers);
    return before / after;
}

// For waits that no setting fixes: the gain of improving the data pipeline itself is unknown.
Gain unsure(double bound) { return {1.0, 1.0 + std::min(1.0, 0.3 * (bound - 1.0)), bound}; }

void in_memory(Finding& wait, const Json& loader, const MeanStep& times) {
    wait.fix =
        "the data set is tensors in memory: cut whole batches out of them, "
        "for rows in torch.randperm(n).split(batch_size): x[rows], y[rows] "
        "(saturate run --apply batched_fetch); workers would be slower";
    wait.settings = {};
    // Cutting out whole batches was 5.4 times as fast as row by row.
    wait.gain = gain_of(times.step / (times.step - 0.8 * times.wait), wait.gain.high);
    wait.evidence += fmt::format("; {} has its {} samples in memory and returns them one by one",
                                 loader["type"].string().value_or("the data set"),
                                 loader["dataset_size"].integer().value_or(0));
}

void no_workers(std::vector<Finding>& findings, Finding& wait, const RunRecord& record,
                const Json& loader, const MeanStep& times, const Fetch& fetch, const Facts& facts,
                const CoreUse& host) {
    const Json& python = record.python;
    int cores = facts.cores_per_process();
    double threads = python["flags"]["threads"].number().value_or(1);
    double compute_cores = is_on_gpu(python) ? 1.0 : std::min<double>(cores, threads);
    Plan plan = plan_of(times, fetch, compute_cores, facts, host);
    double bound = wait.gain.high;
    double likely =
        gain_over_epochs(record, loader, times, fetch, plan, may_persist(python, loader));
    std::string cause = fetch.is_storage() ? "waiting for storage" : "decoding";
    wait.evidence +=
        fmt::format("; one batch takes {:.1f} ms, mostly {}, the rest of a step {:.1f} ms",
                    fetch.wall / 1e6, cause, times.compute() / 1e6);
    Finding part{
        .id = "F02", .count = fetch.batches, .confidence = Confidence::high, .part_of = "F01"};
    part.where = wait.where;
    part.sources = {"run record"};
    part.share_percent = wait.share_percent;
    part.ms_per_step = wait.ms_per_step;
    part.evidence =
        "num_workers is 0: every batch is made between two steps, by the thread that trains";
    constexpr double kWorthHandingOver = 1e6;
    if (fetch.wall < kWorthHandingOver) {
        wait.fix =
            "the batches are small: handing them over from a worker would cost as much; "
            "make several samples at once (__getitems__, whole-batch transforms)";
        wait.gain = unsure(bound);
        wait.confidence = Confidence::medium;
        wait.settings = {};
        return;
    }
    if (likely < 1.05) {
        wait.fix = fmt::format(
            "the {} core{} {} full, so workers would not help; store smaller or decoded samples, "
            "or give the job more cores",
            cores, cores == 1 ? "" : "s", cores == 1 ? "is" : "are");
        wait.gain = unsure(bound);
        wait.confidence = Confidence::medium;
        wait.settings = {};
        part.fix = "workers alone do not help here";
        part.optional = true;
        part.gain = {1.0, std::max(1.0, likely), std::max(1.0, likely)};
    } else {
        wait.settings = cures("F02", facts);
        std::string count = cure_of(wait.settings, "num_workers");
        std::vector<KeywordChange> keywords = {{"num_workers", count}};
        wait.fix = fmt::format("num_workers={}", count);
        if (may_persist(python, loader)) {
            wait.fix += ", persistent_workers=True";
            keywords.push_back({"persistent_workers", "True"});
        } else {
            std::erase_if(wait.settings,
                          [](const SettingChange& one) { return one.key == "persistent_workers"; });
        }
        wait.gain = gain_of(likely, std::min(bound, times.step / plan.least_ns));
        part.settings = wait.settings;
        part.fix = wait.fix;
        part.gain = wait.gain;
        // The part is shown as one line below the wait, and the edit is shown with the wait.
        wait.patch = keyword_patch(loader["site"], loader["call"], keywords);
        part.patch = wait.patch;
    }
    findings.push_back(part);
}

void with_workers(Finding& wait, const RunRecord& record, const Json& loader, const MeanStep& times,
                  const Fetch& fetch, const Facts& facts, const CoreUse& host) {
    const Json& python = record.python;
    std::int64_t workers = loader["num_workers"].integer().value_or(1);
    Plan plan = plan_of(times, fetch, is_on_gpu(python) ? 1.0 : 0.5, facts, host);
    const char* mostly = fetch.is_storage() ? "waiting for storage" : "decoding";
    wait.evidence += workers == 1
                         ? fmt::format("; 1 worker takes {:.1f} ms for one batch, mostly {}",
                                       fetch.wall / 1e6, mostly)
                         : fmt::format("; {} workers take {:.1f} ms for one batch, mostly {}",
                                       workers, fetch.wall / 1e6, mostly);
    double bound = wait.gain.high;
    if (plan.workers > workers) {
        std::string count = std::to_string(plan.workers);
        wait.settings = cures("F01", facts);
        wait.fix = fmt::format("num_workers={}", count);
        bool they_stay = loader["persistent_workers"].boolean().value_or(false);
        wait.gain = gain_of(gain_over_epochs(record, loader, times, fetch, plan, they_stay), bound);
        wait.patch = keyword_patch(loader["site"], loader["call"], {{"num_workers", count}});
    } else {
        wait.settings = {};
        wait.fix =
            "there is no free core for more workers: store smaller or decoded samples, or give the "
            "job more cores";
        wait.gain = unsure(bound);
        wait.confidence = Confidence::medium;
    }
}

// Returns the step time if C++ threads decode: each image then takes a third of the CPU time,
// measured on JPEG files (bench/loader). The other work of the job stays the same.
double step_with_own_loader(const MeanStep& times, const Fetch& fetch, const Facts& facts,
                            const CoreUse& host) {
    constexpr double kFewer = 2.9;
    int cores = facts.cores_per_process();
    double work =
        host.n > 0 ? std::max(host.own * times.step, fetch.cpu) : fetch.core + times.compute();
    double saved = fetch.cpu * (1 - 1 / kFewer);
    return std::max(times.compute(),
                    (work - saved) / host.usable({.tasks = cores, .cores = cores}));
}

// Suggests saturate_gpu.Loader instead of a DataLoader that decodes images, or says why it cannot
// read this data set.
void loader_like(Finding& wait, const Json& loader, const MeanStep& times, const Fetch& fetch,
                 const Facts& facts, const CoreUse& host) {
    const Json& like = loader["saturate_loader"];
    if (!like.is_object() || fetch.is_storage()) return;
    if (!like["takes"].boolean().value_or(false)) {
        wait.evidence += fmt::format("; saturate_gpu.Loader does not support this data set: {}",
                                     like["why"].string().value_or("the reason is unknown"));
        return;
    }
    std::string install = like["is_installed"].boolean().value_or(false)
                              ? ""
                              : ", once saturate's wheel is installed there";
    wait.fix = fmt::format(
        "{}; or saturate_gpu.Loader.like(DataLoader(...)), whose C++ threads decode the same "
        "images with fewer cores{}: saturate fix tries it and proves the gain",
        wait.fix_text(), install);
    double likely = times.step / step_with_own_loader(times, fetch, facts, host);
    if (likely > wait.gain.likely)
        wait.gain = gain_of(likely, 1 / (1 - std::min(0.98, times.wait / times.step)));
}

// The loader is already saturate_gpu.Loader, which records why it is slow.
void own_loader(Finding& wait, const Json& loader) {
    wait.settings = {};
    wait.fix = "store the samples smaller, cache=\"memory\" where they fit, or more cores";
    wait.gain = unsure(wait.gain.high);
    wait.confidence = Confidence::medium;
    if (auto why = loader["why_slow"].string())
        wait.evidence += fmt::format("; saturate_gpu.Loader: {}", *why);
}

void explain_wait(const RunRecord& record, const MeanStep& times, std::vector<Finding>& findings) {
    const Json& python = record.python;
    CoreUse host = core_use(record);
    Json loader = training_loader(python);
    Finding* wait = found(findings, "F01");
    if (!wait || !loader.is_object()) return;
    wait->where = where_of(loader["site"]);
    Fetch fetch = fetch_of(python, loader["id"].integer().value_or(0));
    std::int64_t workers = loader["num_workers"].integer().value_or(0);
    bool has_workers = workers > 0;
    Facts facts = record_facts(record);
    facts.cores = std::max(1, facts.cores);
    if (fetch.batches > 0)
        facts.loader = LoaderTimes{.fetch_seconds = fetch.wall / 1e9,
                                   .compute_seconds = times.compute() / 1e9,
                                   .waits_for_storage = fetch.is_storage()};
    if (fetch.batches > 0) see_arrivals(fetch, workers, times, facts);
    Finding copy = *wait;  // `wait` may dangle when findings grow below
    if (loader["library"].string() == "saturate_gpu")
        own_loader(copy, loader);
    else if (loader["in_memory"].boolean().value_or(false) && !has_workers)
        in_memory(copy, loader, times);
    else if (fetch.batches > 0 && !has_workers)
        no_workers(findings, copy, record, loader, times, fetch, facts, host);
    else if (fetch.batches > 0)
        with_workers(copy, record, loader, times, fetch, facts, host);
    if (fetch.batches > 0)  // only for a DataLoader
        loader_like(copy, loader, times, fetch, facts, host);
    *found(findings, "F01") = copy;
}

// Reports time lost by starting the workers anew in every epoch.
void restarts(const RunRecord& record, const MeanStep& times, std::vector<Finding>& findings) {
    Json loader = training_loader(record.python);
    if (loader["num_workers"].integer().value_or(0) == 0 ||
        loader["persistent_workers"].boolean().value_or(true) ||
        !may_persist(record.python, loader))
        return;
    PauseSums restarts = account_of(record).restarts;
    double lost = 1e9 * restarts.seconds;
    double total = times.step * static_cast<double>(times.n);
    if (restarts.count < 1 || total <= 0 || lost < 0.03 * (total + lost)) return;
    Finding finding{.id = "F05",
                    .count = restarts.count,
                    .confidence = Confidence::high,
                    .sources = {"run record"}};
    finding.share_percent = 100.0 * lost / (total + lost);
    finding.ms_per_step = lost / 1e6 / static_cast<double>(times.n);
    finding.where = where_of(loader["site"]);
    finding.evidence =
        fmt::format("the workers are restarted {} times, which takes {}, {:.1f} % of the run",
                    restarts.count, seconds_text(lost / 1e9), finding.share_percent);
    finding.fix = "persistent_workers=True";
    finding.settings = cures("F05", record_facts(record));
    finding.gain = gain_of((total + lost) / (total + 0.1 * lost), (total + lost) / total);
    finding.patch = keyword_patch(loader["site"], loader["call"], {{"persistent_workers", "True"}});
    findings.push_back(finding);
}

void not_pinned(const RunRecord& record, std::vector<Finding>& findings) {
    const Json& python = record.python;
    Json loader = training_loader(python);
    if (!is_on_gpu(python) || !loader.is_object() || loader["pin_memory"].boolean().value_or(true))
        return;
    Finding finding{.id = "F03",
                    .count = 1,
                    .confidence = Confidence::low,
                    .optional = true,
                    .sources = {"run record"}};
    finding.where = where_of(loader["site"]);
    finding.evidence = "pin_memory is False: copies to the GPU hold up the host";
    finding.surer = "a trace shows what the copies cost";
    finding.settings = cures("F03", record_facts(record));
    finding.patch = keyword_patch(loader["site"], loader["call"], {{"pin_memory", "True"}});
    findings.push_back(finding);
}

}  // namespace

void loader_findings(const RunRecord& record, const MeanStep& times,
                     std::vector<Finding>& findings) {
    explain_wait(record, times, findings);
    restarts(record, times, findings);
    not_pinned(record, findings);
}

}  // namespace saturate
