// SPDX-License-Identifier: Apache-2.0
// A reference job before and after, beside what the write-up that it comes from claims.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/reference_jobs.h"
#include "tuning/proof.h"
#include "tuning/use.h"

namespace saturate {

// A job that has a write-up (docs/demo.md).
struct DemoJob : WriteUp {
    std::string_view name;
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
