// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/python_job.h"

#include <fmt/format.h>

namespace saturate {

StepTimes times_of(const RunRecord& record) {
    StepTimes out;
    std::size_t warm = record.steps.size() > 20 ? 5 : record.steps.size() > 4 ? 1 : 0;
    for (std::size_t i = warm; i < record.steps.size(); ++i) {
        out.step += static_cast<double>(record.steps[i].duration_ns);
        out.wait += static_cast<double>(record.steps[i].input_wait_ns.value_or(0));
        ++out.n;
    }
    if (out.n > 0) {
        out.step /= static_cast<double>(out.n);
        out.wait /= static_cast<double>(out.n);
    }
    return out;
}

std::string where_of(const Json& site) {
    auto file = site["file"].string();
    if (!file) return "";
    return fmt::format("{}:{} ({})", *file, site["line"].integer().value_or(0),
                       site["function"].string().value_or("?"));
}

Json training_loader(const Json& python) {
    std::int64_t most = 0, number = -1;
    for (const Json& one : python["steps_by_loader"].items()) {
        if (auto steps = one["steps"].integer(); steps && *steps > most) {
            most = *steps;
            number = one["loader"].integer().value_or(-1);
        }
    }
    for (const Json& loader : python["loaders"].items()) {
        if (loader["id"].integer() == number) return loader;
    }
    return {};
}

bool is_on_gpu(const Json& python) {
    std::string device = python["device"].string().value_or("");
    return !device.empty() && device != "cpu";
}

Finding* found(std::vector<Finding>& findings, std::string_view id) {
    auto at = std::ranges::find(findings, id, &Finding::id);
    return at == findings.end() ? nullptr : &*at;
}

Gain gain_of(double likely, double bound) {
    likely = std::max(1.0, std::min(likely, bound));
    return {1.0 + 0.6 * (likely - 1.0), likely, std::max(bound, likely)};
}

}  // namespace saturate
