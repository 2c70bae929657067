// SPDX-License-Identifier: Apache-2.0
#include "remedies/contradictions.h"

#include <fmt/format.h>

namespace saturate {

namespace {

using enum Setting;

Warning at(const Value& value, const std::string& what, std::string fix) {
    return {value.place, fmt::format("{}: {}", path_text(value.path), what), std::move(fix)};
}

}  // namespace

std::vector<Warning> contradictions(const Document& document, const Settings& settings,
                                    const Facts& facts) {
    std::vector<Warning> out;
    if (facts.dataset_size > 0) {
        const Value* value =
            settings.get(settings.get(batch_size) ? batch_size : global_batch_size);
        double accumulation = settings.number(gradient_accumulation_steps).value_or(1);
        double now = settings.number(batch_size).value_or(0) * accumulation * facts.processes;
        if (value && now > static_cast<double>(facts.dataset_size))
            out.push_back(at(*value,
                             fmt::format("the effective batch is {:.0f} and the data set has {} "
                                         "samples: less than one step an epoch",
                                         now, facts.dataset_size),
                             "a smaller batch or less accumulation"));
    }
    const Value* benchmark = settings.get(cudnn_benchmark);
    if (benchmark && benchmark->flag == true && settings.flag(deterministic) == true)
        out.push_back(
            at(*benchmark,
               "choosing algorithms by timing and deterministic algorithms cannot be combined",
               "one of the two"));
    int types = 0;
    for (const Value& value : settings.values()) {
        bool is_switch = value.convention == Convention::boolean_bf16 ||
                         value.convention == Convention::boolean_fp16;
        types += is_switch && value.flag == true ? 1 : 0;
    }
    if (types > 1)
        out.push_back(at(*settings.get(precision), "bf16 and fp16 are both on, but only one can be",
                         "one of the two"));
    const Value* rate = settings.get(learning_rate);
    if (rate && !rate->quoted && settings.dialect().name == "plain" &&
        rate->type == ScalarType::word && document.format() == Format::yaml &&
        !rate->numbers.empty()) {
        std::size_t exponent = rate->text.find_first_of("eE");
        bool has_dot = rate->text.find('.') != std::string::npos;
        if (exponent != std::string::npos && !has_dot)
            out.push_back(at(
                *rate, fmt::format("PyYAML reads {} as a word, because it has no dot", rate->text),
                fmt::format("{}: {}", rate->path.back(),
                            std::string(rate->text).insert(exponent, ".0"))));
    }
    return out;
}

}  // namespace saturate
