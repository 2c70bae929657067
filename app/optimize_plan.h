// SPDX-License-Identifier: Apache-2.0
// What `optimize` knows before it measures or writes: the file, the machine that it is for, the
// programs that read it, and the advice.
#pragma once

#include <string>

#include "arguments.h"
#include "config/document.h"
#include "config/settings.h"
#include "project/config_use.h"
#include "remedies/advise.h"

namespace saturate {

struct OptimizePlan {
    Document document;
    Settings settings;
    Facts facts;
    std::string target;  // "RTX 4090, 24.0 GiB; 16 cores (assumed; --cores N)"
    ConfigUse use;
    Advice advice;
};

[[nodiscard]] OptimizePlan plan_optimize(const Arguments& arguments, Document document);

}  // namespace saturate
