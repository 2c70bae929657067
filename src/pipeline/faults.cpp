// SPDX-License-Identifier: Apache-2.0
#include "pipeline/faults.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"

namespace saturate {

bool Faults::is_bad(std::int64_t index) const {
    if (count_ == 0) return false;
    std::lock_guard lock(mutex_);
    return bad_.count(index) > 0;
}

void Faults::add(std::int64_t index, const std::string& name, const std::string& why) {
    std::int64_t count = 0;
    {
        std::lock_guard lock(mutex_);
        if (!bad_.insert(index).second) return;  // another worker was faster
        count = static_cast<std::int64_t>(bad_.size());
        count_ = count;
    }
    recorder_.event({.kind = EventKind::bad_sample,
                     .time_ns = now_ns(),
                     .text = fmt::format("{}: {}", name, why),
                     .values = Json::object({{"sample", name}, {"index", index}, {"why", why}})});
    if (count > most_)
        throw UserError({.where = {name},
                         .found = fmt::format("{} ({} sample{} cannot be used)", why, count,
                                              count == 1 ? "" : "s"),
                         .expected = fmt::format("at most {} (bad_samples_max)", most_),
                         .fix = "repair or remove them; each is named in the run record's events"});
    if (count >= samples_)
        throw UserError(
            {.where = {name},
             .found = fmt::format("{} (none of the {} samples can be used)", why, count),
             .expected = "",
             .fix = "check the path of the data"});
}

}  // namespace saturate
