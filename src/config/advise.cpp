// SPDX-License-Identifier: Apache-2.0
#include "config/advise.h"

#include "config/rules.h"

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

}  // namespace saturate
