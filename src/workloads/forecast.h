// SPDX-License-Identifier: Apache-2.0
// The common part of the two forecasting jobs: windows of a table in, the next value of one column
// out, and the error relative to the persistence forecast.
#pragma once

#include "workloads/job_data.h"

namespace saturate {

struct ForecastData {
    JobData parts;
    std::int64_t target_column = 0;  // index among the features of a window
    std::int64_t num_features = 0;   // columns of a window
    std::int64_t window_size = 0;    // its rows
};

// `as_picture`: windows are [1, rows, features] instead of [rows, features]. Throws UserError if
// the data is of another kind or its columns disagree with the settings.
[[nodiscard]] ForecastData open_forecast_data(const Settings& settings, bool as_picture);

class ForecastJob : public JobWithData {
  public:
    explicit ForecastJob(ForecastData data);
    torch::Tensor loss(const TensorBatch& batch) override;
    [[nodiscard]] Metric metric() const override;
    void evaluate(const TensorBatch& batch, torch::Tensor& sums) override;
    [[nodiscard]] int metric_sums() const override { return 2; }
    [[nodiscard]] double metric_value(const torch::Tensor& sums) const override;

  protected:
    [[nodiscard]] virtual torch::Tensor forecast(const torch::Tensor& window) = 0;  // [n, 1]

  private:
    std::int64_t target_column_;
};

}  // namespace saturate
