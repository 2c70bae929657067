// SPDX-License-Identifier: Apache-2.0
#include "workloads/forecast.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"

namespace saturate {

ForecastJob::ForecastJob(ForecastData data)
    : JobWithData(std::move(data.parts)), target_column_(data.target_column) {}

torch::Tensor ForecastJob::loss(const TensorBatch& batch) {
    return torch::mse_loss(forecast(batch[0]), batch[1].reshape({-1, 1}));
}

Metric ForecastJob::metric() const {
    return {.name = "rmse_to_persistence", .unit = "", .higher_is_better = false};
}

// The target is scaled like its column, so the last row's value is the persistence forecast.
void ForecastJob::evaluate(const TensorBatch& batch, torch::Tensor& sums) {
    torch::Tensor target = batch[1].reshape({-1, 1});
    torch::Tensor last = batch[0].select(-2, -1).select(-1, target_column_).reshape({-1, 1});
    sums[0] += (forecast(batch[0]) - target).square().sum();
    sums[1] += (last - target).square().sum();
}

ForecastData open_forecast_data(const Settings& settings, bool as_picture) {
    std::vector<std::int64_t> shape = {-1, -1};
    if (as_picture) shape.insert(shape.begin(), 1);
    OpenedData data = open_job_data(settings, {.kind = "a CSV or npy table, rows by time",
                                               .fields = {{.name = "window", .shape = shape},
                                                          {.name = "target", .shape = {}}}});
    const std::vector<std::int64_t>& window = data.training->fields()[0].shape;
    std::int64_t columns = window.back();
    const Value* wish = settings.get(Setting::num_features);
    if (whole_or(settings, Setting::num_features, columns) != columns) {
        throw UserError(
            {.where = wish->place,
             .found = fmt::format("num_features is {}", wish->text),
             .expected = fmt::format("{}, the columns of numbers in the table", columns),
             .fix = fmt::format("num_features: {}", columns)});
    }
    return {.parts = {data.training, data.validation},
            .target_column = data.target_column,
            .num_features = columns,
            .window_size = window[window.size() - 2]};
}

double ForecastJob::metric_value(const torch::Tensor& sums) const {
    const double* values = sums.const_data_ptr<double>();
    return std::sqrt(values[0] / values[1]);
}

}  // namespace saturate
