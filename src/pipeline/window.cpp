// SPDX-License-Identifier: Apache-2.0
#include "pipeline/window.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace saturate {

namespace {

std::shared_ptr<const Normalisation> fit(const DataTable& table, WindowSource::Rows rows) {
    auto width = static_cast<std::size_t>(table.width());
    // Subtracts the first row, so that a large mean does not swallow the deviation.
    std::vector<double> shift(width), sum(width), squares(width);
    for (std::size_t c = 0; c < width; ++c) shift[c] = table.row(rows.begin)[c];
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
        const float* row = table.row(r);
        for (std::size_t c = 0; c < width; ++c) {
            double value = row[c] - shift[c];
            sum[c] += value;
            squares[c] += value * value;
        }
    }
    auto count = static_cast<double>(rows.end - rows.begin);
    auto out = std::make_shared<Normalisation>();
    for (std::size_t c = 0; c < width; ++c) {
        double mean = sum[c] / count;
        double deviation = std::sqrt(std::max(squares[c] / count - mean * mean, 0.0));
        out->mean.push_back(static_cast<float>(shift[c] + mean));
        // A constant column becomes 0, not infinite.
        out->deviation.push_back(deviation > 1e-12 ? static_cast<float>(deviation) : 1.0f);
    }
    return out;
}

std::int64_t windows_in(WindowSource::Rows rows, const WindowSettings& settings) {
    std::int64_t last_start = rows.end - settings.length - settings.horizon;
    return last_start < rows.begin ? 0 : (last_start - rows.begin) / settings.stride + 1;
}

}  // namespace

WindowSource::WindowSource(std::shared_ptr<const DataTable> table, const WindowSettings& settings,
                           Rows rows, std::shared_ptr<const Normalisation> normalisation)
    : table_(std::move(table)),
      settings_(settings),
      rows_(rows),
      normalisation_(std::move(normalisation)),
      target_(table_->column(settings.target)),
      size_(windows_in(rows, settings)) {
    FieldSpec window{
        .name = "window", .element = Element::float32, .shape = {settings.length, table_->width()}};
    if (settings.channel) window.shape.insert(window.shape.begin(), 1);
    fields_.push_back(std::move(window));
    if (settings.horizon > 0) fields_.push_back({.name = "target", .element = Element::float32});
    if (normalisation_) {
        for (float deviation : normalisation_->deviation) inverse_.push_back(1 / deviation);
    }
}

std::unique_ptr<Scratch> WindowSource::make_scratch() const { return std::make_unique<Scratch>(); }

void WindowSource::write(const SampleDraw& draw, Scratch&, std::span<std::byte* const> places,
                         SampleCost& cost) const {
    std::int64_t start = rows_.begin + draw.index * settings_.stride;
    auto width = static_cast<std::size_t>(table_->width());
    std::size_t count = static_cast<std::size_t>(settings_.length) * width;
    const float* from = table_->row(start);
    if (!normalisation_) {
        std::memcpy(places[0], from, count * sizeof(float));
    } else {
        auto* to = reinterpret_cast<float*>(places[0]);
        const float* mean = normalisation_->mean.data();
        const float* inverse = inverse_.data();
        for (std::size_t at = 0; at < count; at += width) {
            for (std::size_t c = 0; c < width; ++c)
                to[at + c] = (from[at + c] - mean[c]) * inverse[c];
        }
    }
    cost.read_bytes += static_cast<std::int64_t>(count * sizeof(float));
    if (settings_.horizon == 0) return;
    auto column = static_cast<std::size_t>(target_);
    float target = table_->row(start + settings_.length - 1 + settings_.horizon)[column];
    if (normalisation_) target = (target - normalisation_->mean[column]) * inverse_[column];
    std::memcpy(places[1], &target, sizeof target);
}

std::string WindowSource::name_of(std::int64_t index) const {
    std::int64_t start = rows_.begin + index * settings_.stride;
    return fmt::format("{}: rows {} to {}", table_->name, start, start + settings_.length - 1);
}

double WindowSource::target_mean() const {
    return normalisation_ ? normalisation_->mean[static_cast<std::size_t>(target_)] : 0;
}

double WindowSource::target_deviation() const {
    return normalisation_ ? normalisation_->deviation[static_cast<std::size_t>(target_)] : 1;
}

WindowParts cut_windows(const std::shared_ptr<const DataTable>& table,
                        const WindowSettings& settings) {
    SATURATE_CHECK(settings.length > 0 && settings.stride > 0 && settings.horizon >= 0,
                   "windows have a length, a stride and a horizon");
    auto kept = static_cast<std::int64_t>(static_cast<double>(table->rows) *
                                          settings.validation_percent / 100);
    // Windows and targets are entirely in one part, so that neither part sees the other.
    WindowSource::Rows training{0, table->rows - kept}, validation{table->rows - kept, table->rows};
    if (windows_in(training, settings) == 0)
        throw UserError(
            {.where = {table->name},
             .found = fmt::format("{} rows, {} of them for training", table->rows, training.end),
             .expected =
                 fmt::format("at least {}: a window of {} and a horizon of {}",
                             settings.length + settings.horizon, settings.length, settings.horizon),
             .fix = "a shorter window, or more rows"});
    std::shared_ptr<const Normalisation> normalisation;
    if (settings.normalise) normalisation = fit(*table, training);
    WindowParts parts;
    parts.training = std::make_shared<WindowSource>(table, settings, training, normalisation);
    if (windows_in(validation, settings) > 0)
        parts.validation =
            std::make_shared<WindowSource>(table, settings, validation, normalisation);
    return parts;
}

}  // namespace saturate
