// SPDX-License-Identifier: Apache-2.0
// Keeps the results of trials on disk, so that a repeated search is quick. The key holds everything
// that the result depends on: the command, the configuration's text, the machine and the program.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "tuning/trial.h"

namespace saturate {

class TrialCache {
  public:
    // With an empty folder nothing is kept.
    explicit TrialCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

    // Returns nothing if the result is not there or cannot be read.
    [[nodiscard]] std::optional<TrialResult> find(const std::string& key) const;
    // Keeps only results that depend on the settings alone: rates and running out of memory. A hang
    // or a crash may have other causes and is tried again.
    void keep(const std::string& key, const TrialResult& result) const;

  private:
    [[nodiscard]] std::filesystem::path file_of(const std::string& key) const;
    std::filesystem::path folder_;
};

}  // namespace saturate
