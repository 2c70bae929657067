// SPDX-License-Identifier: Apache-2.0
#include "project/watched_calls.h"

#include <gtest/gtest.h>

#include "project/fix_answer.h"

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

TEST(PlaceInTest, APlaceIsNamedAsItsUserNamesIt) {
    std::string own = std::filesystem::canonical(".").string();
    EXPECT_EQ(place_in(".", own + "/data/load.py:41 (make)"), "data/load.py:41 (make)");
    EXPECT_EQ(place_in(".", own + "/train.py:7 (<module>)"), "train.py:7");
    EXPECT_EQ(place_in(".", own + "-2/train.py:7 (main)"), own + "-2/train.py:7 (main)");
    EXPECT_EQ(place_in(".", ""), "");
}

}  // namespace
}  // namespace saturate
