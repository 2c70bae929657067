// SPDX-License-Identifier: Apache-2.0
// The result of `demo`: a reference job before and after, compared with the claims of its write-up.
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
    double wait_share = 0;                     // share of time waiting for data, afterwards
    int cores = 1;                             // cores that load data
};

[[nodiscard]] std::string demo_text(const DemoResult& result);
// Returns two sentences: whether the speed-up was reached, and whether the device is as busy as
// claimed; if not, why not on this machine.
[[nodiscard]] std::string demo_verdict(const DemoResult& result);
[[nodiscard]] Json demo_json(const DemoResult& result);

}  // namespace saturate
