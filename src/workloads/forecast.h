// SPDX-License-Identifier: Apache-2.0
// What the two forecasting jobs share: windows of a table in, the next value of one column out, and
// the error beside that of the persistence forecast.
#pragma once

#include "workloads/job_data.h"

namespace saturate {

struct ForecastData {
    JobData parts;
    std::int64_t target_column = 0;  // among the features of a window
    std::int64_t num_features = 0;   // columns of a window
    std::int64_t window_size = 0;    // its rows
};

// `as_picture`: windows are [1, rows, features] rather than [rows, features]. Throws UserError for
// data of another kind, or with other columns than the settings say.
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
