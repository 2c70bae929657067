// SPDX-License-Identifier: Apache-2.0
// The jobs that `train` knows by name. A user's own program adds its class to its own registry and
// passes that to the trainer; nothing is registered before main.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/settings.h"
#include "engine/job.h"

namespace saturate {

// Creates the job from the settings of a configuration: opens its data, makes its model. Throws
// UserError if the data is missing or of another kind. The caller has seeded the generator, so that
// the initial weights depend only on `seed`.
using JobMaker = std::function<std::unique_ptr<Job>(const Settings&)>;

class JobRegistry {
  public:
    void add(const std::string& name, JobMaker maker);  // replaces a job of the same name
    [[nodiscard]] std::vector<std::string> names() const;
    // Throws UserError with the known names if there is no such job.
    [[nodiscard]] std::unique_ptr<Job> make(const std::string& name,
                                            const Settings& settings) const;

  private:
    std::map<std::string, JobMaker> makers_;
};

// The reference jobs.
[[nodiscard]] JobRegistry reference_jobs();

}  // namespace saturate
