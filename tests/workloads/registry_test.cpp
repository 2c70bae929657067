// SPDX-License-Identifier: Apache-2.0
#include "workloads/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "config/reference_jobs.h"

namespace saturate {
namespace {

// A job without its row would be trained with the data of another kind; a row without its job would
// be offered and then refused.
TEST(RegistryTest, TheReferenceJobsAreThoseOfTheTable) {
    std::vector<std::string> rows;
    for (const ReferenceJob& job : reference_job_table()) rows.emplace_back(job.name);
    EXPECT_THAT(reference_jobs().names(), testing::UnorderedElementsAreArray(rows));
}

TEST(RegistryTest, EveryJobWithAWriteUpHasItsConfigurationAndData) {
    for (const ReferenceJob& job : reference_job_table()) {
        if (job.write_up.gpu.empty()) continue;
        std::filesystem::path config = std::filesystem::path(SATURATE_SOURCE_DIR) / "configs" /
                                       (std::string(job.name) + "_before.yaml");
        Settings settings = Settings::read(Document::read(config.string()));
        EXPECT_EQ(settings.word(Setting::job), job.name);
        ASSERT_TRUE(settings.get(Setting::data)) << job.name;
        EXPECT_EQ(settings.get(Setting::data)->text, job.made.path);
        EXPECT_TRUE(job.estimate) << job.name;
    }
}

}  // namespace
}  // namespace saturate
