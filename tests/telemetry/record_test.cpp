// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record.h"

#include <gtest/gtest.h>

#include <type_traits>

#include "telemetry/recorder.h"

namespace saturate {
namespace {

TEST(RecordTest, EveryKindOfEventComesBackFromItsName) {
    for (int i = 0; i <= static_cast<int>(EventKind::note); ++i) {
        auto kind = static_cast<EventKind>(i);
        EXPECT_EQ(event_kind(event_name(kind)), kind) << event_name(kind);
    }
    EXPECT_EQ(event_kind("earthquake"), std::nullopt);
}

TEST(RecordTest, AStepIsPlainBytes) {
    EXPECT_TRUE(std::is_trivially_copyable_v<StepRecord>);
    EXPECT_LE(sizeof(StepRecord), 320u);  // five lines of a cache
}

TEST(MemoryRecorderTest, KeepsWhatItIsGivenInOrder) {
    MemoryRecorder recorder;
    recorder.step({.step = 0});
    recorder.step({.step = 1, .loss = 2.5});
    recorder.event({.kind = EventKind::checkpoint, .text = "saved"});
    ASSERT_EQ(recorder.steps.size(), 2u);
    EXPECT_EQ(recorder.steps[1].loss, 2.5);
    ASSERT_EQ(recorder.events.size(), 1u);
    EXPECT_EQ(recorder.events[0].text, "saved");
}

}  // namespace
}  // namespace saturate
