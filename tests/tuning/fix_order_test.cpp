// SPDX-License-Identifier: Apache-2.0
#include "tuning/fix_order.h"

#include <gtest/gtest.h>

namespace saturate {
namespace {

FixProposal proposal(const std::string& setting, const std::string& after = "True") {
    return {.id = setting, .setting = setting, .after = after};
}

std::vector<std::vector<std::string>> ids(const FixOrder& order) {
    std::vector<std::vector<std::string>> out;
    for (const auto& together : order.trials) {
        out.emplace_back();
        for (const FixProposal* one : together) out.back().push_back(one->id);
    }
    return out;
}

class FixOrderTest : public testing::Test {
  protected:
    FixOrder order(bool has_gpu, double wait_share) {
        rate_.input_wait_share = wait_share;
        rate_.step_seconds = 0.1;
        return order_trials(plan_, {.record = record_,
                                    .rate = rate_,
                                    .findings = findings_,
                                    .has_gpu = has_gpu,
                                    .epoch = epoch_,
                                    .epochs = epochs_,
                                    .unseen_calls = {7}});
    }
    FixPlan plan_{.proposals = {proposal("fused_optimizer"), proposal("log_interval"),
                                proposal("pin_memory"), proposal("precision", "bf16"),
                                proposal("num_workers", "4"), proposal("eval_interval", "5")}};
    RunRecord record_;
    Rate rate_;
    std::vector<Finding> findings_;
    EpochTimes epoch_;
    int epochs_ = 0;
};

using Ids = std::vector<std::vector<std::string>>;

TEST_F(FixOrderTest, TheBiggestCauseComesFirstAndWhatIsFreeTogether) {
    EXPECT_EQ(
        ids(order(true, 0.6)),
        (Ids{{"num_workers"}, {"fused_optimizer", "pin_memory"}, {"log_interval"}, {"precision"}}));
}

// The batch size is searched for between them.
TEST_F(FixOrderTest, WhatRelievesACauseStandsBeforeWhatMayGainAllTheSame) {
    EXPECT_EQ(order(true, 0.6).by_cause, 1U);
    EXPECT_EQ(order(false, 0.01).by_cause, 0U);
    findings_ = {{.id = "F12", .share_percent = 40}};
    plan_.proposals = {proposal("compile"), proposal("num_workers", "4"), proposal("precision")};
    EXPECT_EQ(order(true, 0.6).by_cause, 2U);
}

TEST_F(FixOrderTest, WhatCompilesFirstComesAfterWhatMayGainAsMuch) {
    plan_.proposals = {proposal("compile"), proposal("threads", "1"), proposal("num_workers", "4")};
    EXPECT_EQ(ids(order(false, 0.6)), (Ids{{"num_workers"}, {"threads"}, {"compile"}}));
    findings_ = {{.id = "F12", .share_percent = 40}};
    EXPECT_EQ(ids(order(true, 0.1)), (Ids{{"compile"}, {"num_workers"}, {"threads"}}));
}

TEST_F(FixOrderTest, LargerBatchesMakeShorterEpochs) {
    FixProposal batch = proposal("batch_size", "64"), other = proposal("num_workers", "4");
    batch.before = "8";
    other.before = "1";
    std::vector<const FixProposal*> changes = {&other};
    EXPECT_EQ(batch_growth(changes), 1);
    changes.push_back(&batch);
    EXPECT_EQ(batch_growth(changes), 8);
}

TEST_F(FixOrderTest, WhatCannotGainIsNotTriedAndSaysWhy) {
    FixOrder fed = order(false, 0.01);
    EXPECT_EQ(ids(fed), (Ids{{"precision"}}));
    EXPECT_EQ(fed.left_out["num_workers"],
              "the steps wait for data 1.0 % of their time, and no more than that can be gained");
    EXPECT_EQ(fed.left_out["pin_memory"], "it does nothing without a GPU, and there is none here");
    EXPECT_EQ(fed.left_out["log_interval"], "on a CPU reading a value waits for nothing");
    EXPECT_TRUE(fed.left_out.contains("eval_interval"));
}

TEST_F(FixOrderTest, WhatMakesRoomForWorkersIsTriedWithThem) {
    FixProposal threads = proposal("threads", "1");
    threads.room_for = "num_workers";
    plan_.proposals = {proposal("precision", "bf16"), proposal("num_workers", "2"), threads};
    EXPECT_EQ(ids(order(false, 0.6)), (Ids{{"num_workers"}, {"threads"}, {"precision"}}));
    const FixProposal &workers = plan_.proposals[1], &room = plan_.proposals[2];
    using Changes = std::vector<const FixProposal*>;
    EXPECT_EQ(with_what_needs_it(room, plan_, Changes{&workers}, {"num_workers"}), Changes{&room});
    EXPECT_EQ(with_what_needs_it(room, plan_, {}, {"num_workers"}), (Changes{&workers, &room}));
    EXPECT_EQ(with_what_needs_it(room, plan_, {}, {}), Changes{}) << "workers could not be had";
}

TEST_F(FixOrderTest, WorkersThatStayComeRightBehindTheWorkers) {
    record_.python = Json::parse(
        R"({"loaders": [{"id": 0, "num_workers": 0}], "steps_by_loader": [{"loader": 0, "steps": 9}]})",
        "test");
    epoch_ = {.steps = 10, .seconds = 1, .seen = 3};
    epochs_ = 2;
    plan_.proposals = {proposal("persistent_workers"), proposal("compile"),
                       proposal("num_workers", "4"), proposal("threads", "1")};
    EXPECT_EQ(ids(order(false, 0.9)),
              (Ids{{"num_workers"}, {"persistent_workers"}, {"threads"}, {"compile"}}));
}

// Workers that were tried and not kept are none for what needs them.
TEST_F(FixOrderTest, WhatNeedsWorkersLacksThoseThatWereNotKept) {
    plan_.proposals = {proposal("num_workers", "2"), proposal("persistent_workers")};
    record_.python = Json::parse(
        R"({"loaders": [{"id": 0, "num_workers": 0}], "steps_by_loader": [{"loader": 0, "steps": 9}]})",
        "test");
    EXPECT_EQ(
        missing_beside(plan_, {}, record_),
        (std::map<std::string, std::string>{{"persistent_workers", "the loader has no workers"}}));
    using Changes = std::vector<const FixProposal*>;
    EXPECT_TRUE(missing_beside(plan_, Changes{&plan_.proposals[0]}, record_).empty());
}

// What stands between epochs is tried where trials last whole epochs, and takes part of them.
TEST_F(FixOrderTest, PausesAreTriedWhereTheyAreMeasured) {
    plan_.proposals = {proposal("eval_interval", "5"), proposal("persistent_workers")};
    record_.python = Json::parse(
        R"({"loaders": [{"id": 0, "num_workers": 1}], "steps_by_loader": [{"loader": 0, "steps": 9}]})",
        "test");
    FixOrder unseen = order(false, 0);
    EXPECT_EQ(unseen.left_out["eval_interval"],
              "its gain only shows over whole epochs, and no epoch ended");
    epoch_ = {.steps = 100, .seconds = 90, .seen = 1, .evaluation = 30, .start = 0.9};
    EXPECT_EQ(order(false, 0).left_out["eval_interval"],
              "its gain only shows over whole epochs, and one takes 90 s: too long to repeat "
              "within the budget; evaluation takes 33 % of one");
    EXPECT_EQ(order(false, 0).left_out["persistent_workers"],
              "the start of the workers takes 1.0 % of an epoch, and no more than that can be "
              "gained");
    EXPECT_EQ(order(false, 0).epochs_wanted, 5) << "with more time the evaluation could be tried";
    EXPECT_EQ(order(false, 0).for_epochs, std::set<std::string>{"eval_interval"});
    epoch_ = {.steps = 10, .seconds = 0.9, .seen = 1, .evaluation = 0.1, .start = 0.3};
    epochs_ = 5;
    EXPECT_EQ(order(false, 0).epochs_wanted, 0);
    EXPECT_EQ(ids(order(false, 0)), (Ids{{"persistent_workers"}, {"eval_interval"}}));
    // Three epochs would hold no evaluation at all.
    epochs_ = 3;
    EXPECT_EQ(ids(order(false, 0)), (Ids{{"persistent_workers"}}));
    EXPECT_EQ(order(false, 0).left_out["eval_interval"],
              "its gain only shows over more epochs than a trial can run within the budget; "
              "evaluation takes 11 % of one");
}

// A trial of a job with long epochs sees the start of the first alone.
TEST_F(FixOrderTest, ABriefStartOfALongEpochAsksForNoLongerBudget) {
    plan_.proposals = {proposal("persistent_workers")};
    record_.python = Json::parse(
        R"({"loaders": [{"id": 0, "num_workers": 1}], "steps_by_loader": [{"loader": 0, "steps": 9}]})",
        "test");
    epoch_ = {.steps = 1000, .seconds = 300, .start_most = 1.5};
    EXPECT_EQ(order(false, 0).left_out["persistent_workers"],
              "the start of the workers takes at most 0.5 % of an epoch, and no more than that can "
              "be gained");
    EXPECT_EQ(order(false, 0).epochs_wanted, 0);
    epoch_.start_most = 15;
    EXPECT_EQ(order(false, 0).epochs_wanted, 1);
}

TEST_F(FixOrderTest, WorkersStayOnlyWhereThereAreSome) {
    plan_.proposals = {proposal("persistent_workers"), proposal("num_workers", "2")};
    record_.python = Json::parse(
        R"({"loaders": [{"id": 0, "num_workers": 0}], "steps_by_loader": [{"loader": 0, "steps": 9}]})",
        "test");
    // No more than waiting can be gained by workers; who would stay, then?
    for (int epochs : {0, 5}) {
        epochs_ = epochs;
        FixOrder fed = order(false, 0.01);
        EXPECT_EQ(ids(fed), Ids{});
        EXPECT_EQ(fed.left_out["persistent_workers"], "the loader has no workers");
    }
    EXPECT_EQ(ids(order(false, 0.6)), (Ids{{"num_workers"}, {"persistent_workers"}}));
    // The workers were tried and not kept.
    std::vector<const FixProposal*> none, kept = {&plan_.proposals[1]};
    EXPECT_EQ(missing_for(plan_.proposals[0], none, record_), "the loader has no workers");
    EXPECT_EQ(missing_for(plan_.proposals[0], kept, record_), "");
    EXPECT_EQ(ready_batches(none, record_), 0);
    EXPECT_EQ(ready_batches(kept, record_), 4);
}

TEST_F(FixOrderTest, AFindingWithAGainAloneComesFirst) {
    plan_.proposals = {proposal("compile"), proposal("precision", "bf16"),
                       proposal("threads", "2")};
    plan_.proposals[1].loop = 0;
    findings_ = {{.id = "F30", .gain = {1.0, 1.5, 6.0}}};
    FixOrder found = order(false, 0);
    EXPECT_EQ(ids(found), (Ids{{"threads"}, {"compile"}}));
    EXPECT_EQ(found.left_out["precision"], "it does nothing without a GPU, and there is none here");
}

// As the arguments of a trainer: bf16=torch.cuda.is_available().
TEST_F(FixOrderTest, AnEditThatAsksForAGpuIsNotTriedWithoutOne) {
    plan_.proposals = {proposal("precision", "torch.cuda.is_available()")};
    EXPECT_EQ(order(false, 0).left_out["precision"],
              "it does nothing without a GPU, and there is none here");
    EXPECT_EQ(ids(order(true, 0)), (Ids{{"precision"}}));
}

TEST_F(FixOrderTest, WhatTheRunDidNotComeThroughIsNotTried) {
    plan_.proposals = {proposal("precision", "bf16")};
    plan_.proposals[0].call = 7;
    EXPECT_EQ(order(true, 0).left_out["precision"],
              "the watched run never reached this part of your code");
}

TEST_F(FixOrderTest, WorkersDoNothingBesideALoaderThatTakesTheirPlace) {
    FixProposal workers = proposal("num_workers", "4"), pinned = proposal("pin_memory"),
                other = proposal("num_workers", "2"), loader = proposal("saturate_loader");
    workers.call = pinned.call = loader.call = 3;
    other.call = 5;
    EXPECT_EQ(moot(workers, {&pinned}), "");
    EXPECT_EQ(moot(workers, {&pinned, &loader}), "saturate_gpu.Loader has its own threads");
    EXPECT_EQ(moot(pinned, {&loader}), "");
    EXPECT_EQ(moot(other, {&loader}), "");  // of another loader
    EXPECT_EQ(moot(loader, {&loader}), "");
}

TEST_F(FixOrderTest, ReadingsThatTakeNoTimeAreNotTried) {
    record_.python = Json::parse(R"({"reads_steps": 10, "reads": [{"ns": 1000000}]})", "test");
    EXPECT_TRUE(order(true, 0).left_out.contains("log_interval"));
    record_.python = Json::parse(R"({"reads_steps": 10, "reads": [{"ns": 500000000}]})", "test");
    EXPECT_FALSE(order(true, 0).left_out.contains("log_interval"));
}

TEST_F(FixOrderTest, WhatTheRecordShowsOtherwiseIsNotInForce) {
    record_.python = Json::parse(
        R"({"steps": 9, "loaders": [{"id": 0, "num_workers": 0, "batch_size": 8, "starts": 1}],
            "steps_by_loader": [{"loader": 0, "steps": 9}]})",
        "test");
    EXPECT_EQ(not_in_force(proposal("num_workers", "4"), record_),
              "num_workers=4: the script has 0");
    EXPECT_EQ(not_in_force(proposal("num_workers", "0"), record_), std::nullopt);
    EXPECT_EQ(not_in_force(proposal("saturate_loader", "saturate_gpu.Loader.like(...)"), record_),
              "saturate_loader=true: the script has false");
    // A record has no word for these.
    EXPECT_EQ(not_in_force(proposal("log_interval"), record_), std::nullopt);
}

}  // namespace
}  // namespace saturate
