// SPDX-License-Identifier: Apache-2.0
#include "grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "exit_code.h"
#include "process/run_folder.h"
#include "show.h"

namespace saturate {

namespace {

constexpr std::size_t kPointsMax = 1000;

[[noreturn]] void throw_axis(const std::string& axis, const std::string& found) {
    throw UserError({.found = fmt::format("--grid {}: {}", axis, found),
                     .expected = "KEY=VALUE,VALUE,..., each key once",
                     .fix = "--grid hidden_size=64,128"});
}

std::vector<std::string> values_of(const std::string& axis, std::set<std::string>& keys) {
    std::size_t equals = axis.find('=');
    if (equals == std::string::npos || equals == 0) throw_axis(axis, "no KEY=");
    std::string key = axis.substr(0, equals);
    if (!keys.insert(key).second) throw_axis(axis, "the key was given before");
    std::vector<std::string> out;
    for (std::string_view value : split(std::string_view(axis).substr(equals + 1), ',')) {
        if (trim(value).empty()) throw_axis(axis, "an empty value");
        out.push_back(fmt::format("{}={}", key, trim(value)));
    }
    return out;
}

const Metric& metric_of(const std::vector<GridRun>& runs) { return runs.front().outcome.metric; }

std::vector<const GridRun*> best_first(const std::vector<GridRun>& runs) {
    std::vector<const GridRun*> out;
    for (const GridRun& one : runs) out.push_back(&one);
    bool higher = !runs.empty() && metric_of(runs).higher_is_better;
    std::ranges::stable_sort(out, [higher](const GridRun* a, const GridRun* b) {
        auto x = a->outcome.result.metric_best, y = b->outcome.result.metric_best;
        if (!x || !y) return x.has_value() && !y.has_value();
        return higher ? *x > *y : *x < *y;
    });
    return out;
}

}  // namespace

std::vector<std::vector<std::string>> grid_points(const std::vector<std::string>& axes) {
    std::vector<std::vector<std::string>> points = {{}};
    std::set<std::string> keys;
    for (const std::string& axis : axes) {
        std::vector<std::vector<std::string>> longer;
        for (const std::string& value : values_of(axis, keys)) {
            for (std::vector<std::string> point : points) {
                point.push_back(value);
                longer.push_back(std::move(point));
            }
        }
        points = std::move(longer);
        if (points.size() > kPointsMax)
            throw_axis(axis, fmt::format("more than {} combinations", kPointsMax));
    }
    return points;
}

std::vector<GridRun> run_grid(const TrainRequest& request, const std::vector<std::string>& axes,
                              const JobRegistry& jobs) {
    std::vector<GridRun> runs;
    std::vector<std::vector<std::string>> points = grid_points(axes);
    std::string folder = request.output;
    if (folder.empty())
        folder = new_run_folder(std::filesystem::path(request.config).stem().string()).string();
    for (const std::vector<std::string>& point : points) {
        show(stderr, "run {} of {}: {}\n", runs.size() + 1, points.size(), join(point, ", "));
        TrainRequest one = request;
        one.values.insert(one.values.end(), point.begin(), point.end());
        one.output = folder + "/" + join(point, "-");
        runs.push_back({point, run_training(one, jobs)});
        if (runs.back().outcome.result.ended == "interrupted") break;
    }
    return runs;
}

std::string grid_text(const std::vector<GridRun>& runs) {
    std::size_t width = 8;
    for (const GridRun& one : runs) width = std::max(width, join(one.values, "  ").size());
    const Metric& metric = metric_of(runs);
    std::string out = fmt::format("{:<{}}  {:>12}  {:>12}  run\n", "settings", width,
                                  metric.unit.empty() ? metric.name : metric.unit, "samples/s");
    for (const GridRun* one : best_first(runs)) {
        const TrainResult& result = one->outcome.result;
        std::string value = result.metric_best ? fmt::format("{:.4g}", *result.metric_best) : "-";
        out += fmt::format(
            "{:<{}}  {:>12}  {:>12.4g}  {}{}\n", join(one->values, "  "), width, value,
            result.summary.samples_per_second ? result.summary.samples_per_second->rate : 0,
            one->outcome.folder, result.problem ? "  failed" : "");
    }
    return out;
}

Json grid_json(const std::vector<GridRun>& runs) {
    Json rows = Json::array();
    for (const GridRun* one : best_first(runs)) {
        rows.add(Json::object(
            {{"values", Json::array_of(one->values)}, {"train", outcome_json(one->outcome)}}));
    }
    return Json::object(
        {{"schema", 1}, {"metric", metric_of(runs).name}, {"runs", std::move(rows)}});
}

int grid_status(const std::vector<GridRun>& runs) {
    int status = kDone;
    for (const GridRun& one : runs) status = std::max(status, outcome_status(one.outcome));
    return status;
}

}  // namespace saturate
