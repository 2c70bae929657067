// SPDX-License-Identifier: Apache-2.0
// Three hosts that are network namespaces; one loses its cable.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "support/run.h"

namespace saturate {
namespace {

using testing::HasSubstr;

TEST(NetworkTest, ACutCableIsNoticedNamedAndResumedFrom) {
#ifndef SATURATE_HAS_ENGINE
    GTEST_SKIP() << "built without LibTorch";
#endif
    TemporaryFolder folder;
    folder.file("c.yaml",
                "job: tiny_mlp\nbatch_size: 16\ndataset_size: 512\nepochs: 2\nnum_workers: 0\n"
                "threads: 1\nlog_interval: 4\ncheckpoint_interval: 0\neval_interval: 0\n"
                "rank_timeout: 6\n");
    Ran ran = run({SATURATE_SOURCE_DIR "/tests/support/three_hosts", SATURATE_BINARY},
                  {.folder = folder.path()});
    if (ran.status == 77) GTEST_SKIP() << ran.err;
    ASSERT_EQ(ran.status, 0) << ran.err;
    for (const char* host : {"host 0", "host 1", "host 2"}) {
        EXPECT_THAT(ran.out, HasSubstr(std::string(host) + ": status 4 after "));
        EXPECT_THAT(ran.out, HasSubstr("resumed " + std::string(host) + ": status 0\n"));
    }
    auto said = [&](const std::string& file) {
        return read_file(folder.path() / file, 1 << 20, "what a host said");
    };
    EXPECT_THAT(said("said_0"), HasSubstr("error: rank 2 of 3 is lost: no sign of life for "));
    EXPECT_THAT(said("said_1"), HasSubstr("error: rank 2 of 3 is lost: no sign of life for "));
    EXPECT_THAT(said("said_2"),
                HasSubstr("error: rank 0 of 3 is lost: the store that it serves has not answered for "));
    EXPECT_THAT(said("resumed_0"), HasSubstr("\n3 ranks: "));
    RecordProperty("times", ran.out);
}

}  // namespace
}  // namespace saturate
