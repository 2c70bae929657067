// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "telemetry/record.h"

namespace saturate {

inline RunInfo some_info() {
    return {.kind = "train",
            .command = {"saturate", "train", "--config", "配置.yaml"},
            .host = "box",
            .pid = 42,
            .started_wall_ns = 1'700'000'000'000'000'000,
            .started_ns = 5'000,
            .device = "sim:H100 SXM",
            .simulated = true,
            .rank = 1,
            .world_size = 2,
            .seed = 7,
            .settings_text = "a: 1\n\"quoted\"\n",
            .settings_source = "job.yaml",
            .git_revision = "abc",
            .version = "0.1.0",
            .machine = Json::object({{"cores", 2}}),
            .extra = Json::object({{"note", "x"}})};
}

}  // namespace saturate
