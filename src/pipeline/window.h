// SPDX-License-Identifier: Apache-2.0
// Windows over the rows of a table: [length, columns], and the target `horizon` rows later. The
// latest rows are for validation: no row is in both parts, and the normalisation is fitted on the
// training part only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/source.h"
#include "pipeline/table.h"

namespace saturate {

struct WindowSettings {
    std::int64_t length = 60;
    std::int64_t stride = 1;         // rows between the starts of consecutive windows
    std::int64_t horizon = 1;        // rows from the window's last to the target; 0: no target
    std::string target = {};         // column, by name or number; empty: the last
    double validation_percent = 20;  // of the rows, the latest ones; 0: none
    bool normalise = true;           // to mean 0 and deviation 1 over the training part
    bool channel = false;            // [1, length, columns] instead of [length, columns]
};

// Per column, from the training part; identity if not normalised.
struct Normalisation {
    std::vector<float> mean, deviation;
};

class WindowSource final : public SampleSource {
  public:
    struct Rows {
        std::int64_t begin = 0, end = 0;
    };
    WindowSource(std::shared_ptr<const DataTable> table, const WindowSettings& settings, Rows rows,
                 std::shared_ptr<const Normalisation> normalisation);

    [[nodiscard]] std::int64_t size() const override { return size_; }
    [[nodiscard]] const std::vector<FieldSpec>& fields() const override { return fields_; }
    [[nodiscard]] std::unique_ptr<Scratch> make_scratch() const override;
    void write(const SampleDraw& draw, Scratch& scratch, std::span<std::byte* const> places,
               SampleCost& cost) const override;
    [[nodiscard]] std::string name_of(std::int64_t index) const override;
    [[nodiscard]] std::vector<std::string> notes() const override { return table_->notes(); }

    [[nodiscard]] Rows rows() const { return rows_; }  // that contain its windows and targets
    // To convert a prediction of the target back into its unit.
    [[nodiscard]] double target_mean() const;
    [[nodiscard]] double target_deviation() const;

  private:
    std::shared_ptr<const DataTable> table_;
    WindowSettings settings_;
    Rows rows_;
    std::shared_ptr<const Normalisation> normalisation_;  // null: no normalisation
    std::vector<float> inverse_;                          // 1 / deviation
    std::int64_t target_ = 0;
    std::int64_t size_ = 0;
    std::vector<FieldSpec> fields_;
};

struct WindowParts {
    std::shared_ptr<const WindowSource> training;
    std::shared_ptr<const WindowSource> validation;  // null if no window fits in its rows
};
// Throws UserError if not even one training window fits.
[[nodiscard]] WindowParts cut_windows(const std::shared_ptr<const DataTable>& table,
                                      const WindowSettings& settings);

}  // namespace saturate
