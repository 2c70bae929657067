// SPDX-License-Identifier: Apache-2.0
// Another batch size in the user's own files, with the learning rate that follows it.
#include "project/propose_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "project/fix_patch.h"
#include "support/run.h"

namespace saturate {
namespace {

using testing::HasSubstr;

struct Batched {
    BatchPlace place;
    std::string reason;
    std::string after;  // the script with four times the batch
};

Batched batched(const std::string& optimizer, const std::string& size = "BATCH",
                const std::string& more = "") {
    TemporaryFolder folder;
    folder.file("train.py",
                "import torch\nfrom torch.utils.data import DataLoader\n\nBATCH = 16\nRATE = 0.1\n"
                "model = torch.nn.Linear(1, 1)\n"
                "optimizer = torch.optim." +
                    optimizer + "\n" + more + "loader = DataLoader(Rows(), batch_size=" + size +
                    ")\n"
                    "for x in loader:\n    model(x).sum().backward()\n    optimizer.step()\n");
    ProjectReader reader({{"python3", "train.py"}, {}, folder.path()});
    FixQuestion question{.folder = folder.path(), .level = Level::training};
    ProjectFacts facts = reader.read();
    Batched out{.place = batch_place(facts, question)};
    auto proposal = batch_proposal(facts, question, 64);
    if (!proposal) return out;
    EXPECT_EQ(proposal->level, Level::training);
    out.reason = proposal->reason;
    FixPatch patch = make_patch(reader, facts, question, {&*proposal});
    EXPECT_EQ(patch.problem, "");
    if (patch.files.size() == 1) out.after = patch.files[0].after;
    return out;
}

TEST(ProposeBatchTest, TheLearningRateFollowsByTheRuleOfTheOptimizer) {
    Batched adam = batched("AdamW(model.parameters(), lr=RATE)");
    EXPECT_EQ(adam.place.size, 16);
    EXPECT_THAT(adam.after, HasSubstr("\nBATCH = 64\nRATE = 0.2\n"));
    EXPECT_THAT(adam.reason, HasSubstr("by the square root rule: 0.1 -> 0.2"));
    Batched sgd = batched("SGD(model.parameters(), lr=RATE)");
    EXPECT_THAT(sgd.after, HasSubstr("\nBATCH = 64\nRATE = 0.4\n"));
    Batched other = batched("RMSprop(model.parameters(), lr=RATE)");
    EXPECT_THAT(other.after, HasSubstr("\nBATCH = 64\nRATE = 0.1\n"));
    EXPECT_THAT(other.reason, HasSubstr("no rule is known for RMSprop"));
}

TEST(ProposeBatchTest, AnotherLoadersTrapIsItsOwn) {
    EXPECT_EQ(batched("SGD(model.parameters(), lr=RATE)", "BATCH",
                      "other = DataLoader(Rows(), batch_size=None)\n")
                  .place.why,
              "");
}

TEST(ProposeBatchTest, WhereItCannotFollowTheBatchStays) {
    const char* schedule =
        "scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=99)\n";
    EXPECT_THAT(batched("SGD(model.parameters(), lr=RATE)", "BATCH", schedule).place.why,
                HasSubstr("OneCycleLR is laid out over a number of steps"));
    EXPECT_THAT(batched("SGD(model.parameters(), lr=rates()[0])").place.why,
                HasSubstr("the sources do not show where the learning rate comes from"));
    EXPECT_THAT(batched("SGD(model.parameters(), lr=RATE)", "sizes()[0]").place.why,
                HasSubstr("the sources do not show where the batch size comes from"));
    EXPECT_THAT(batched("SGD(model.parameters(), lr=RATE)", "BATCH",
                        "other = torch.optim.SGD(model.parameters(), lr=RATE)\n")
                    .place.why,
                HasSubstr("several optimizers"));
}

}  // namespace
}  // namespace saturate
