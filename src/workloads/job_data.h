// SPDX-License-Identifier: Apache-2.0
// Shared by the reference jobs: their data, and settings as whole numbers.
#pragma once

#include <cstdint>
#include <memory>

#include "config/settings.h"
#include "engine/job.h"
#include "pipeline/open.h"

namespace saturate {

struct JobData {
    std::shared_ptr<const SampleSource> training;
    std::shared_ptr<const SampleSource> validation;  // may be null
};

// The fields that a job can use. A shape of -1 accepts any size.
struct WantedData {
    std::string kind;  // for the message: "pairs of images: input/ and target/"
    std::vector<FieldSpec> fields;
};

// Opens what the settings name. Throws UserError when it is of another kind.
[[nodiscard]] OpenedData open_job_data(const Settings& settings, const WantedData& wanted);

[[nodiscard]] std::int64_t whole_or(const Settings& settings, Setting setting,
                                    std::int64_t otherwise);

// A job whose data was opened beforehand.
class JobWithData : public Job {
  public:
    explicit JobWithData(JobData data) : data_(std::move(data)) {}
    std::shared_ptr<const SampleSource> training_data() override { return data_.training; }
    std::shared_ptr<const SampleSource> validation_data() override { return data_.validation; }

  private:
    JobData data_;
};

}  // namespace saturate
