// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "remedies/rules.h"

namespace saturate {

using enum Setting;

void advise_workers(Advisor& a) {
    int cores = a.target.cores_per_process();
    double wanted = a.target.gpu ? std::clamp(cores / 2, 1, 16) : std::max(1, cores / 4);
    std::string share = a.target.gpu ? "half of" : "a quarter of";
    const Value* value = a.settings.get(num_workers);
    std::optional<double> now = a.settings.number(num_workers);
    std::string per = a.target.gpus > 1 ? fmt::format("{} cores per GPU process", cores)
                                        : fmt::format("{} cores", cores);
    if (a.target.workers) {
        a.want(num_workers, static_cast<double>(*a.target.workers),
               {.reason = "as asked for with --workers"});
    } else if (value && now && *now > cores) {
        a.warn(*value,
               fmt::format("{:.0f} workers share {}: they take time from each other and from the "
                           "training process",
                           *now, per),
               fmt::format("{}: {:.0f}", value->path.back(), wanted));
        a.want(num_workers, wanted,
               {.reason = fmt::format("more workers than the {} only queue", per),
                .effect = "less switching, less memory"});
    } else if (now.value_or(0) < wanted) {
        bool in_process = value && now == 0;
        a.want(num_workers, wanted,
               {.reason = fmt::format(
                    "{} the {}{}", share, per,
                    in_process ? "; 0 loads in the training process, the GPU waits" : ""),
                .effect = "the next batch is made while this one is computed"});
    }
}

void advise_loader(Advisor& a) {
    const Value* prefetch = a.settings.get(prefetch_factor);
    bool has_workers = a.number(num_workers).value_or(0) > 0;
    if (prefetch && !prefetch->left_alone && a.settings.number(num_workers) == 0) {
        a.warn(*prefetch, "torch refuses it while num_workers is 0",
               "num_workers above 0, or no prefetch_factor");
        if (!has_workers) a.remove(*prefetch, {.reason = "no workers, nothing to prefetch"});
    }
    if (has_workers) {
        if (a.settings.number(prefetch_factor).value_or(0) < 2) {
            a.want(
                prefetch_factor, 4.0,
                {.reason = "a slow sample does not empty the queue", .effect = "steadier supply"});
        }
        a.want(persistent_workers, true,
               {.reason = "workers are not started anew every epoch",
                .effect = "no pause at epoch starts"});
    }
    const Value* pinned = a.settings.get(pin_memory);
    if (a.target.gpu) {
        a.want(pin_memory, true,
               {.reason = "page-locked batches are copied by the GPU itself",
                .effect = "copies at the speed of the bus, beside the computation"});
        a.want(non_blocking, true,
               {.reason = "the host goes on while a pinned batch is copied",
                .effect = "copy hidden behind computation"});
    } else if (pinned && pinned->flag == true) {
        a.warn(*pinned, "there is no GPU to pin memory for",
               fmt::format("{}: false", pinned->path.back()));
        a.want(
            pin_memory, false,
            {.reason = "no GPU: pinning only costs a copy", .effect = "one copy per batch fewer"});
    }
}

}  // namespace saturate
