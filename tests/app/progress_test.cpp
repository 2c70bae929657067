// SPDX-License-Identifier: Apache-2.0
// What long work says on a terminal while it goes on.
#include "progress.h"

#include <gtest/gtest.h>

namespace saturate {
namespace {

TEST(ProgressTest, TellsTheTimeLeftOnceItCanBeKnown) {
    EXPECT_EQ(progress_text("4 workers", 0.25, 0.5), " 25 %: 4 workers");
    EXPECT_EQ(progress_text("4 workers", 0.25, 4), " 25 %  about 12 s left: 4 workers");
    EXPECT_EQ(progress_text("4 workers", 0.5, 300), " 50 %  about 5 min left: 4 workers");
    EXPECT_EQ(progress_text("4 workers", 1.5, 4), "100 %  about 0 s left: 4 workers");
}

TEST(ProgressTest, OfASearchTellsWhatIsLeftOfItsBudget) {
    EXPECT_EQ(search_progress_text("trying num_workers", 70, 300),
              "1:10, at most 3:50 left: trying num_workers");
    // The proof may end late.
    EXPECT_EQ(search_progress_text("trying num_workers", 310, 300),
              "5:10, at most 0:00 left: trying num_workers");
}

}  // namespace
}  // namespace saturate
