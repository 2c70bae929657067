// SPDX-License-Identifier: Apache-2.0
#include "workloads/job_data.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace saturate {

namespace {

bool fits(const FieldSpec& found, const FieldSpec& wanted) {
    return found.element == wanted.element &&
           std::ranges::equal(found.shape, wanted.shape,
                              [](auto a, auto b) { return b == -1 || a == b; });
}

std::string text_of(const std::vector<FieldSpec>& fields) {
    std::vector<std::string> out;
    for (const FieldSpec& field : fields)
        out.push_back(fmt::format("{} [{}]", field.name, fmt::join(field.shape, ", ")));
    return join(out, ", ");
}

}  // namespace

OpenedData open_job_data(const Settings& settings, const WantedData& wanted) {
    OpenedData out = open_data(settings);
    const std::vector<FieldSpec>& found = out.training->fields();
    if (std::ranges::equal(found, wanted.fields, fits)) return out;
    const Value* value = settings.get(Setting::data);
    throw UserError({.where = value ? value->place : Place{},
                     .found = fmt::format("data of another kind: {}, {}", out.what, text_of(found)),
                     .expected = wanted.kind,
                     .fix = fmt::format("saturate data make {}", settings.word(Setting::job))});
}

std::int64_t whole_or(const Settings& settings, Setting setting, std::int64_t otherwise) {
    auto number = settings.number(setting);
    return number ? static_cast<std::int64_t>(*number) : otherwise;
}

}  // namespace saturate
