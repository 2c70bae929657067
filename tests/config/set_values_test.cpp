// SPDX-License-Identifier: Apache-2.0
#include "config/set_values.h"

#include <gtest/gtest.h>

#include "config/settings.h"

namespace saturate {
namespace {

std::string after(const std::string& text, const std::vector<std::string>& values) {
    return with_values(Document::parse(text, "c.yaml"), values).text();
}

TEST(SetValuesTest, ReplacesTheValueUnderItsNameInTheFile) {
    EXPECT_EQ(after("job: sequence\ntrain:\n  lr: 0.1  # high\nBATCH_SIZE: 4\n",
                    {"learning_rate=0.01", "batch_size=8"}),
              "job: sequence\ntrain:\n  lr: 0.01  # high\nBATCH_SIZE: 8\n");
}

TEST(SetValuesTest, AddsWhatIsNotThere) {
    EXPECT_EQ(after("job: sequence\n", {"epochs=3"}), "job: sequence\nepochs: 3\n");
}

TEST(SetValuesTest, LeavesASectionOfTheSameNameAlone) {
    Document document =
        with_values(Document::parse("job: sequence\ndata:\n  data: a.csv\n", "c.yaml"),
                    std::vector<std::string>{"data=b.csv"});
    EXPECT_EQ(document.text(), "job: sequence\ndata:\n  data: b.csv\n");
}

TEST(SetValuesTest, SaysWhatIsNotASetting) {
    auto said = [](const std::string& value) {
        try {
            after("job: sequence\n", {value});
        } catch (const UserError& error) {
            return std::string(error.what());
        }
        return std::string("nothing");
    };
    EXPECT_EQ(said("batchsize=3"),
              "error: --set names no setting \"batchsize\"\n"
              "  expected: a name of docs/settings.md\n"
              "  fix:      --set batch_size=3");
    // The option is to blame, not the file that it changes.
    EXPECT_EQ(said("batch_size=abc"),
              "error: --set batch_size=abc: batch_size is \"abc\"\n"
              "  expected: a whole number from 1 to 10000000\n"
              "  fix:      --set batch_size=32");
    EXPECT_EQ(said("batch_size"),
              "error: --set is \"batch_size\"\n"
              "  expected: key=value\n"
              "  fix:      --set batch_size=64");
}

}  // namespace
}  // namespace saturate
