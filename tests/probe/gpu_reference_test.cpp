// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"
#include "probe/gpu_table.h"

namespace saturate {
namespace {

TEST(GpuReferenceTest, TheDocumentedGpusAreThoseOfTheTable) {
    const std::string file = SATURATE_SOURCE_DIR "/docs/gpus.md";
    if (std::getenv("SATURATE_GOLDEN_ACCEPT")) write_file_whole(file, gpu_reference());
    EXPECT_EQ(read_file(file, 1 << 20, "the reference"), gpu_reference())
        << "tools/golden-accept writes it anew";
}

}  // namespace
}  // namespace saturate
