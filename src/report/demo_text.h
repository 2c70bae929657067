// SPDX-License-Identifier: Apache-2.0
// A reference job before and after, beside what the write-up that it comes from claims.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tuning/proof.h"
#include "tuning/use.h"

namespace saturate {

// One write-up: the GPU it names, what went wrong there, and the figures it claims. Empty: it
// claims none.
struct DemoJob {
    std::string_view name;
    std::string_view gpu;
    std::string_view fault;
    std::string_view busy, rate, steps, wait, power, speed_up;
    double busy_least = 0;         // the least of what it claims, in percent ...
    double speed_up_least = 1;     // ... and in times
    std::string_view as_run = {};  // KEY=VALUE that the fault amounts to; empty: the file as it is
};
[[nodiscard]] const std::vector<DemoJob>& demo_jobs();
[[nodiscard]] const DemoJob* find_demo_job(std::string_view name);

struct DemoResult {
    const DemoJob* job = nullptr;
    std::string device;
    const Proof* proof = nullptr;  // null: nothing faster was found
    const DeviceUse *before = nullptr, *after = nullptr;
    double batch_before = 0, batch_after = 0;  // 0: unknown
    double wait_share = 0;                     // of the time, that steps wait for data afterwards
    int cores = 1;                             // that load the data
};

[[nodiscard]] std::string demo_text(const DemoResult& result);
// Two sentences: is the speed-up there, is the device as busy as claimed, and if not, why not here.
[[nodiscard]] std::string demo_verdict(const DemoResult& result);
[[nodiscard]] Json demo_json(const DemoResult& result);

}  // namespace saturate
