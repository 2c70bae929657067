// SPDX-License-Identifier: Apache-2.0
#include "tuning/in_force.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"
#include "diagnosis/python_json.h"
#include "remedies/catalogue.h"
#include "telemetry/statistics.h"

namespace saturate {

namespace {

// Speed is not the point of these settings: no rate is credited to them.
constexpr std::array<std::string_view, 2> kNoMatterOfSpeed = {"learning_rate", "seed"};

std::string_view name_in_shim(std::string_view key) {
    const Remedy* remedy = find_remedy(key);
    return remedy && !remedy->shim.name.empty() ? remedy->shim.name : key;
}

bool is_switched_on(std::string_view value) {
    return value != "false" && value != "none" && value != "off";
}

std::string text_of(const Json& value) {
    if (auto whole = value.integer()) return std::to_string(*whole);
    if (auto flag = value.boolean()) return *flag ? "true" : "false";
    return value.string().value_or("");
}

// The median number of samples in a step. The batch itself shows it, whatever the loader says.
std::optional<double> samples_in_step(const RunRecord& record) {
    std::vector<double> samples;
    for (const StepRecord& step : record.steps) {
        if (step.samples) samples.push_back(static_cast<double>(*step.samples));
    }
    if (samples.empty()) return std::nullopt;
    return median(std::move(samples));
}

// The script's own value, as the run showed it; empty: not seen.
std::string seen_value(const std::string& key, const std::string& asked, const RunRecord& record) {
    const Json& python = record.python;
    Json loader = training_loader(python);
    for (const char* name :
         {"num_workers", "prefetch_factor", "persistent_workers", "pin_memory", "batch_size"}) {
        if (key == name && loader.is_object()) {
            if (std::string text = text_of(loader[key]); !text.empty()) return text;
        }
    }
    // A step lasts until the optimizer's: it holds all batches whose gradients are added up.
    auto batch = loader["batch_size"].integer();
    if (auto samples = samples_in_step(record);
        key == "gradient_accumulation_steps" && samples && batch.value_or(0) > 0)
        return fmt::format("{:.0f}", *samples / static_cast<double>(*batch));
    if (key == "saturate_loader" && loader.is_object())
        return loader["library"].string() == "saturate_gpu" ? "true" : "false";
    const Json& flags = python["flags"];
    if (key == "threads") return text_of(flags["threads"]);
    if (key == "tf32") return text_of(flags["tf32_matmul"]);
    if (key == "cudnn_benchmark") return text_of(flags["cudnn_benchmark"]);
    if (key == "fused_optimizer" && !python["optimizers"].items().empty())
        return text_of(python["optimizers"].items()[0]["fused"]);
    if (key == "precision") {
        std::string type = asked == "fp16" ? "float16" : "bfloat16";
        for (const Json& entry : python["autocast"].items()) {
            bool is_it = entry["type"].string().value_or("").find(type) != std::string::npos;
            if (entry["enabled"].boolean().value_or(false) && is_it) return asked;
        }
        return is_switched_on(asked) ? "none" : asked;
    }
    return "";
}

struct ShimChange {
    std::string state, text, value;
};
// The last change that the shim reported for a setting.
std::optional<ShimChange> change_of(std::string_view key, const Json& python) {
    std::optional<ShimChange> out;
    for (const Json& change : python["changes"].items()) {
        if (change["name"].string() != name_in_shim(key)) continue;
        out = ShimChange{change["state"].string().value_or(""),
                         change["text"].string().value_or(""), text_of(change["value"])};
    }
    return out;
}

std::optional<std::string> why_not(const std::string& key, const std::string& asked,
                                   const RunRecord& record) {
    if (auto change = change_of(key, record.python)) {
        bool has_value = parse_integer(asked).has_value() && !change->value.empty();
        if (change->state == "applied" && (!has_value || change->value == asked))
            return std::nullopt;
        if (change->state != "applied") return fmt::format("{}: {}", change->state, change->text);
        return fmt::format("the script has {}", change->value);
    }
    std::string seen = seen_value(key, asked, record);
    if (key == "batch_size" && seen != asked)
        if (auto samples = samples_in_step(record)) seen = fmt::format("{:.0f}", *samples);
    if (seen == asked) return std::nullopt;
    return seen.empty() ? std::string("the record does not show it")
                        : fmt::format("the script has {}", seen);
}

}  // namespace

std::optional<std::string> not_in_force(const Assignment& asked, const RunRecord& record) {
    for (const auto& [key, value] : asked) {
        if (std::ranges::find(kNoMatterOfSpeed, key) != kNoMatterOfSpeed.end()) continue;
        if (auto why = why_not(key, value, record))
            return fmt::format("{}={}: {}", key, value, *why);
    }
    return std::nullopt;
}

}  // namespace saturate
