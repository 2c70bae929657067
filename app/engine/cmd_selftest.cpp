// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "arguments.h"
#include "base/json.h"
#include "commands.h"
#include "engine/selftest.h"
#include "exit_code.h"

namespace saturate {

int cmd_selftest(const Arguments& arguments) {
    std::string device = *arguments.text("--device");
    std::vector<SelftestCheck> checks = device == "cuda" ? selftest_cuda() : selftest_cpu();
    bool passed = std::ranges::all_of(checks, &SelftestCheck::passed);
    if (arguments.has("--json")) {
        Json rows = Json::array();
        for (const SelftestCheck& check : checks) {
            rows.add(Json::object(
                {{"name", check.name}, {"passed", check.passed}, {"detail", check.detail}}));
        }
        fmt::print(
            "{}\n",
            Json::object({{"schema", 1}, {"device", device}, {"passed", passed}, {"checks", rows}})
                .pretty());
    } else {
        for (const SelftestCheck& check : checks) {
            fmt::print("{:<7} {}: {}\n", check.passed ? "ok" : "FAILED", check.name, check.detail);
        }
    }
    return passed ? kDone : kAnswerIsNo;
}

}  // namespace saturate
