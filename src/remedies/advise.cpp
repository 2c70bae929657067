// SPDX-License-Identifier: Apache-2.0
#include "remedies/advise.h"

#include <fmt/format.h>

#include "base/text.h"
#include "remedies/rules.h"

namespace saturate {

Advice advise(const Document& document, const Settings& settings, const Target& target,
              Level level) {
    Advisor advisor(document, settings, target, level);
    advise_model(advisor);
    advise_workers(advisor);
    advise_loader(advisor);
    advise_precision(advisor);
    advise_tf32(advisor);
    advise_layout(advisor);
    advise_compile(advisor);
    advise_optimizer(advisor);
    advise_batch(advisor);
    advise_learning_rate(advisor);
    advise_clipping(advisor);
    advise_intervals(advisor);
    warn_of_contradictions(advisor);
    return advisor.take();
}

Advice advise_values(const Document& document, const Settings& settings,
                     const std::vector<FoundValue>& values) {
    Target target;
    Advisor advisor(document, settings, target, Level::model);
    std::size_t changes = 0;
    for (const FoundValue& found : values) {
        Because because{found.reason, found.effect};
        const Value* there = settings.get(found.setting);
        bool is_equal = there && lower(there->text) == lower(found.value);
        switch (info_of(found.setting).kind) {
            case Kind::flag:
            case Kind::compile:
                advisor.want(found.setting, found.value == "true", because);
                break;
            case Kind::precision:
                advisor.want_precision(found.value == "bf16"   ? Precision::bf16
                                       : found.value == "fp16" ? Precision::fp16
                                                               : Precision::fp32,
                                       because);
                break;
            case Kind::word:
                advisor.want_word(found.setting, found.value, because);
                break;
            default:
                if (auto number = parse_number(found.value))
                    advisor.want(found.setting, *number, because);
        }
        if (advisor.changes() == changes && !is_equal)
            advisor.note(fmt::format("{} {}: this kind of file has no key for it",
                                     info_of(found.setting).name, found.value));
        changes = advisor.changes();
    }
    return advisor.take();
}

}  // namespace saturate
