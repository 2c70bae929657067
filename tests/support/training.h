// SPDX-License-Identifier: Apache-2.0
// `saturate train` in a folder of its own, and what its record says.
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
    // `config` becomes c.yaml.
    TrainingFolder(std::string binary, const std::string& config);

    // train --config c.yaml --device cpu, and these words.
    [[nodiscard]] Ran train(const std::vector<std::string>& words,
                            std::map<std::string, std::string> environment = {}) const;
    [[nodiscard]] Json json(const std::string& file) const;
    // Loss by step, as far as the record has it.
    [[nodiscard]] std::map<std::int64_t, double> losses(const std::string& record) const;

  protected:
    TemporaryFolder folder_;

  private:
    std::string binary_;
};

}  // namespace saturate
