// SPDX-License-Identifier: Apache-2.0
#include "telemetry/python_totals.h"

#include <algorithm>
#include <cmath>

namespace saturate {

namespace {

using ring::kNoLoader;
constexpr std::size_t kMostSizes = 1024;  // steps with further sizes are not in the table
constexpr std::size_t kSizesShown = 16;

Json entry_of(std::int64_t step, double loss) {
    Json out = Json::array();
    out.add(step);
    out.add(std::isfinite(loss) ? Json(loss) : Json());
    return out;
}

}  // namespace

std::optional<double> loss_of(const RingRecord& record) {
    if (record.backwards == 0 || record.losses != record.backwards) return std::nullopt;
    return record.loss;
}

void PythonTotals::add(const RingRecord& record) {
    switch (static_cast<RingKind>(record.kind)) {
        case RingKind::training:
            add_training(record);
            break;
        case RingKind::evaluation:
            without_step_[record.loader] += record.batches;
            if (record.loader == started_) since_start_ += record.batches;
            break;
        case RingKind::loader:
            started_ = record.loader;
            since_start_ = 0;
            break;
        case RingKind::checkpoint:
            break;
    }
}

void PythonTotals::add_training(const RingRecord& record) {
    std::int64_t step = steps_++;
    batches_ += record.batches;
    backwards_ += record.backwards;
    optimizer_steps_ += record.optimizer_steps;
    if (record.loader != kNoLoader) ++steps_by_loader_[record.loader];
    // accelerate fetches one batch ahead at the start of an epoch: count it as a batch with a step.
    if (record.loader == started_ && since_start_ == 1) {
        --without_step_[record.loader];
        ++batches_;
    }
    started_ = kNoLoader;
    if (record.samples > 0 && (sizes_.size() < kMostSizes || sizes_.contains(record.samples)))
        ++sizes_[record.samples];
    auto loss = loss_of(record);
    if (!loss) return;
    ++losses_;
    not_finite_ += !std::isfinite(*loss);
    if (first_losses_.size() < kLosses)
        first_losses_.emplace_back(step, *loss);
    else
        later_losses_.add({step, *loss});
}

void PythonTotals::put_into(Json& python) const {
    std::int64_t skipped = 0, evaluation = 0;
    for (const auto& [loader, batches] : without_step_)
        (steps_by_loader_.contains(loader) ? skipped : evaluation) += batches;
    Json first = Json::array(), tail = Json::array(), late = python["late_losses"];
    std::int64_t losses = losses_, not_finite = not_finite_;
    for (const auto& [step, loss] : first_losses_) first.add(entry_of(step, loss));
    for (const auto& [step, loss] : later_losses_.values()) tail.add(entry_of(step, loss));
    if (losses == 0) {  // losses on a device, which the shim read later
        for (const Json& entry : late.items()) {
            if (entry.items().size() != 2) continue;
            ++losses;
            not_finite += !entry.items()[1].number().has_value();
            (first.items().size() < kLosses ? first : tail).add(entry);
        }
    }
    python.set("totals", Json::object({{"steps", steps_},
                                       {"batches", batches_},
                                       {"skipped_batches", skipped},
                                       {"evaluation_batches", evaluation},
                                       {"backwards", backwards_},
                                       {"optimizer_steps", optimizer_steps_},
                                       {"losses", losses},
                                       {"not_finite", not_finite}}));
    python.set("losses", Json::object({{"first", first}, {"tail", tail}}));

    std::vector<std::pair<std::uint32_t, std::int64_t>> sizes(sizes_.begin(), sizes_.end());
    std::ranges::stable_sort(sizes, std::greater<>{}, [](const auto& size) { return size.second; });
    if (sizes.size() > kSizesShown) sizes.resize(kSizesShown);
    Json table = Json::array();
    for (const auto& [samples, steps] : sizes)
        table.add(Json::object({{"samples", samples}, {"steps", steps}}));
    python.set("batch_sizes", table);

    Json beaten = Json::array();
    for (const auto& [loader, steps] : steps_by_loader_)
        beaten.add(Json::object({{"loader", loader}, {"steps", steps}}));
    python.set("steps_by_loader", beaten);
}

}  // namespace saturate
