// SPDX-License-Identifier: Apache-2.0
#include "project/watched_calls.h"

#include <gtest/gtest.h>

namespace saturate {
namespace {

TEST(WatchedCallsTest, FoldersElsewhereThatARunWritesToAreTold) {
    Json python = Json::parse(R"({"files": [
        {"folder": "/home/a/project/runs", "written": true},
        {"folder": "/home/a/project-2", "written": true},
        {"folder": "/data/pictures", "written": false},
        {"folder": "/data/weights", "written": true},
        {"folder": "/data/weights", "written": true, "worker": 1},
        {"folder": "/tmp/x", "written": true}]})",
                              "python.json");
    EXPECT_EQ(folders_written(python, {"/home/a/project", "/tmp"}),
              (std::vector<std::string>{"/data/weights", "/home/a/project-2"}));
    EXPECT_TRUE(folders_written(Json(), {}).empty());
}

}  // namespace
}  // namespace saturate
