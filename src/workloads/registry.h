// SPDX-License-Identifier: Apache-2.0
// The jobs that `train` knows by name. A user's own program adds its class to a registry of its own
// and hands it to the trainer; nothing is registered before main.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/settings.h"
#include "engine/job.h"

namespace saturate {

// Builds the job from the settings of a configuration: opens its data, makes its model. Throws
// UserError for data that is missing or of another kind. The caller has seeded the generator, so
// that the initial weights depend on `seed` alone.
using JobMaker = std::function<std::unique_ptr<Job>(const Settings&)>;

class JobRegistry {
  public:
    void add(const std::string& name, JobMaker maker);  // replaces one of that name
    [[nodiscard]] std::vector<std::string> names() const;
    // Throws UserError when there is no such job, with the names that there are.
    [[nodiscard]] std::unique_ptr<Job> make(const std::string& name,
                                            const Settings& settings) const;

  private:
    std::map<std::string, JobMaker> makers_;
};

// The reference jobs.
[[nodiscard]] JobRegistry reference_jobs();

}  // namespace saturate
