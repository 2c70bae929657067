// SPDX-License-Identifier: Apache-2.0
// Trials that were made before, on disk: a repeated search is quick. The key holds everything that
// the answer depends on: the command, the configuration's text, the machine and the program.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "tuning/trial.h"

namespace saturate {

class TrialCache {
  public:
    // An empty folder: nothing is kept.
    explicit TrialCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

    // Nothing when it is not there or cannot be read.
    [[nodiscard]] std::optional<TrialResult> find(const std::string& key) const;
    // Only what is true of the settings is kept: rates and running out of memory. A hang or a
    // crash may have other reasons and is tried again.
    void keep(const std::string& key, const TrialResult& result) const;

  private:
    [[nodiscard]] std::filesystem::path file_of(const std::string& key) const;
    std::filesystem::path folder_;
};

}  // namespace saturate
