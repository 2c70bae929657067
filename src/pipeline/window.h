// SPDX-License-Identifier: Apache-2.0
// Windows over the rows of a table: [length, columns] and the target `horizon` rows later. The last
// part of the time is kept for validation: no row is in both parts, and normalisation is fitted on
// the training part alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/source.h"
#include "pipeline/table.h"

namespace saturate {

struct WindowSettings {
    std::int64_t length = 60;
    std::int64_t stride = 1;   // rows between the starts of two windows
    std::int64_t horizon = 1;  // the target's row, counted from the window's last; 0: no target
    std::string target = {};   // column, by name or number; empty: the last
    double validation_percent = 20;  // of the rows, the latest; 0: none
    bool normalise = true;           // to mean 0 and deviation 1 of the training part
    bool channel = false;            // [1, length, columns] rather than [length, columns]
};

// Per column, of the training part; identity when not normalised.
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

    [[nodiscard]] Rows rows() const { return rows_; }  // that its windows and targets lie in
    // To turn a prediction of the target back into its unit.
    [[nodiscard]] double target_mean() const;
    [[nodiscard]] double target_deviation() const;

  private:
    std::shared_ptr<const DataTable> table_;
    WindowSettings settings_;
    Rows rows_;
    std::shared_ptr<const Normalisation> normalisation_;  // null: as it is
    std::vector<float> inverse_;                          // 1 / deviation
    std::int64_t target_ = 0;
    std::int64_t size_ = 0;
    std::vector<FieldSpec> fields_;
};

struct WindowParts {
    std::shared_ptr<const WindowSource> training;
    std::shared_ptr<const WindowSource> validation;  // null when no window fits in its rows
};
// Throws UserError when not even one training window fits.
[[nodiscard]] WindowParts cut_windows(const std::shared_ptr<const DataTable>& table,
                                      const WindowSettings& settings);

}  // namespace saturate
