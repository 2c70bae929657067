// SPDX-License-Identifier: Apache-2.0
// bench loader: measures how fast this machine can load the data of a configuration. bench gpu is
// in bench_gpu.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "arguments.h"
#include "base/error.h"
#include "base/figures.h"
#include "base/text.h"
#include "bench_gpu.h"
#include "commands.h"
#include "config/settings.h"
#include "exit_code.h"
#include "pipeline/loader_bench.h"
#include "pipeline/loader_report.h"
#include "pipeline/open.h"
#include "probe/machine.h"
#include "progress.h"
#include "show.h"

namespace saturate {
namespace {

std::string shape_text(const FieldSpec& field) {
    std::string shape;
    for (std::int64_t length : field.shape)
        shape += fmt::format("{}{}", shape.empty() ? "" : "x", length);
    return fmt::format("{} {}{}{}", field.name, element_name(field.element),
                       shape.empty() ? "" : " ", shape);
}

std::string spread_text(const Spread& rate) {
    return fmt::format("{} (n={}, {}..{})", rate_text(rate.median), rate.n, rate_text(rate.low),
                       rate_text(rate.high));
}

std::string workers_text(int workers) { return workers < 0 ? "auto" : std::to_string(workers); }

Json spread_json(const Spread& spread) {
    return Json::object(
        {{"median", spread.median}, {"low", spread.low}, {"high", spread.high}, {"n", spread.n}});
}

struct Answer {
    const OpenedData& data;
    const LoaderSettings& settings;
    const LoaderBench& bench;
    int cores;
};

Json answer_json(const Answer& answer) {
    Json points = Json::array();
    for (const LoaderBenchPoint& point : answer.bench.points) {
        points.add(
            Json::object({{"workers", point.workers < 0 ? Json("auto") : Json(point.workers)},
                          {"samples_per_second", spread_json(point.samples_per_second)},
                          {"first_batch_seconds", point.first_batch_seconds},
                          {"why_slow", point.why_slow},
                          {"loader", loader_json(point.stats)}}));
    }
    const LoaderBenchPoint& best = answer.bench.best();
    double feeds = best.samples_per_second.median;
    return Json::object(
        {{"schema", 1},
         {"data", answer.data.what},
         {"samples", answer.data.training->size()},
         {"batch_size", answer.settings.batch_size},
         {"cores", answer.cores},
         {"points", points},
         {"best_workers", best.workers},
         {"limit_samples_per_second", spread_json(answer.bench.limit)},
         {"feeds", Json::object({{"samples_per_second", feeds},
                                 {"step_ms", static_cast<double>(answer.settings.batch_size) *
                                                 1000 / feeds}})}});
}

void print_answer(const Answer& answer) {
    std::vector<std::string> fields;
    for (const FieldSpec& field : answer.data.training->fields())
        fields.push_back(shape_text(field));
    show(stdout, "{}: {} samples for training, batches of {} ({})\n\n", answer.data.what,
         answer.data.training->size(), answer.settings.batch_size, join(fields, ", "));
    std::size_t wide = spread_text(answer.bench.limit).size();
    for (const LoaderBenchPoint& point : answer.bench.points)
        wide = std::max(wide, spread_text(point.samples_per_second).size());
    show(stdout, "{:>7}  {:<{}}  {:>13}  {:>11}\n", "workers", "samples/s", wide, "first batch s",
         "memory");
    for (const LoaderBenchPoint& point : answer.bench.points) {
        show(stdout, "{:>7}  {:<{}}  {:>13.3f}  {:>11}\n", workers_text(point.workers),
             spread_text(point.samples_per_second), wide, point.first_batch_seconds,
             bytes_text(point.stats.memory_bytes));
    }
    const LoaderBenchPoint& best = answer.bench.best();
    double feeds = best.samples_per_second.median;
    show(stdout, "{:>7}  {:<{}}  the source alone on {} core{}, without a loader\n\n", "limit",
         spread_text(answer.bench.limit), wide, answer.cores, answer.cores == 1 ? "" : "s");
    if (!best.why_slow.empty()) show(stdout, "what takes the time: {}\n", best.why_slow);
    show(stdout,
         "enough for a GPU that trains up to {} samples/s: steps of {:.3g} ms or longer at batch "
         "size {}\n",
         rate_text(feeds), static_cast<double>(answer.settings.batch_size) * 1000 / feeds,
         answer.settings.batch_size);
}

}  // namespace

int cmd_bench(const Arguments& arguments) {
    if (arguments.operands == std::vector<std::string>{"gpu"}) return bench_gpu(arguments);
    if (arguments.operands.size() != 1 || arguments.operands[0] != "loader") {
        throw UserError({.where = {},
                         .found = arguments.operands.empty()
                                      ? "nothing to measure"
                                      : fmt::format("bench: no benchmark \"{}\"",
                                                    join(arguments.operands, " ")),
                         .expected = "loader or gpu",
                         .fix = "saturate bench loader --config FILE"});
    }
    if (!arguments.has("--config")) {
        throw UserError({.found = "bench loader: --config is missing",
                         .expected = "--config FILE",
                         .fix = "saturate bench loader --config FILE"});
    }
    Settings settings = Settings::read(Document::read(*arguments.text("--config")));
    OpenedData data = open_data(settings);
    LoaderSettings loader = loader_settings(settings);
    loader.batch_size = arguments.whole("--batch-size", 1, 1'000'000).value_or(loader.batch_size);
    int cores = probe_cpu().cores_usable;
    LoaderBenchPlan plan{.cores = cores,
                         .seconds = arguments.number("--seconds", 0.1, 3600).value_or(20)};
    std::optional<Progress> progress(std::in_place);
    plan.progress = [&](const std::string& what, double done) { progress->at(what, done); };
    LoaderBench bench = bench_loader(data.training, loader, plan);
    progress.reset();
    Answer answer{.data = data, .settings = loader, .bench = bench, .cores = cores};
    if (arguments.has("--json"))
        fmt::print("{}\n", answer_json(answer).pretty());
    else
        print_answer(answer);
    return kDone;
}

}  // namespace saturate
