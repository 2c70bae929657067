// SPDX-License-Identifier: Apache-2.0
#include "engine/train_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/reference_jobs.h"

namespace saturate {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TrainSettings read(const std::string& text) {
    return train_settings(Settings::read(Document::parse(text, "c.yaml")), {});
}

// Of every reference job it either does something or says that it does not; it is advised where
// it is off and would help, nowhere else.
TEST(TrainSettingsTest, GradientCheckpointingWorksOrIsSaidNotTo) {
    int able = 0;
    for (const ReferenceJob& job : reference_job_table()) {
        std::string text = "job: " + std::string(job.name) + "\nepochs: 1\n";
        TrainSettings on = read(text + "gradient_checkpointing: true\n"), off = read(text);
        auto said = Contains(HasSubstr("gradient_checkpointing: true has no effect: "));
        EXPECT_FALSE(on.can_recompute) << job.name;
        EXPECT_EQ(off.can_recompute, job.can_recompute) << job.name;
        EXPECT_THAT(off.notes, Not(said)) << job.name;
        if (job.can_recompute) {
            EXPECT_THAT(on.notes, Not(said)) << job.name;
        } else {
            EXPECT_THAT(on.notes, said) << job.name;
        }
        able += job.can_recompute ? 1 : 0;
    }
    EXPECT_EQ(able, 5);  // every job with a write-up
}

}  // namespace
}  // namespace saturate
