// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/file.h"
#include "diagnosis/finding.h"

namespace saturate {
namespace {

TEST(FindingsReferenceTest, TheDocumentedFindingsAreThoseOfTheTable) {
    const std::string file = SATURATE_SOURCE_DIR "/docs/findings.md";
    if (std::getenv("SATURATE_GOLDEN_ACCEPT")) write_file_whole(file, findings_reference());
    EXPECT_EQ(read_file(file, 1 << 20, "the reference"), findings_reference())
        << "tools/golden-accept writes it anew";
}

TEST(FindingsReferenceTest, EveryRowIsWholeAndNamedOnce) {
    std::set<std::string_view> ids, names;
    for (const FindingRow& row : finding_table()) {
        EXPECT_TRUE(ids.insert(row.id).second) << row.id;
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
        EXPECT_FALSE(row.fix.empty() || row.source.empty() || row.seen.empty()) << row.id;
    }
}

}  // namespace
}  // namespace saturate
