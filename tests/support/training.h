// SPDX-License-Identifier: Apache-2.0
// Runs `saturate train` in a temporary folder and reads its record.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "support/run.h"

namespace saturate {

class TrainingFolder {
  public:
    // Writes `config` to c.yaml.
    TrainingFolder(std::string binary, const std::string& config);

    // Runs train --config c.yaml --device cpu with these extra words.
    [[nodiscard]] Ran train(const std::vector<std::string>& words,
                            std::map<std::string, std::string> environment = {}) const;
    [[nodiscard]] Json json(const std::string& file) const;
    // Returns the losses by step, as far as the record has them.
    [[nodiscard]] std::map<std::int64_t, double> losses(const std::string& record) const;

  protected:
    TemporaryFolder folder_;

  private:
    std::string binary_;
};

}  // namespace saturate
