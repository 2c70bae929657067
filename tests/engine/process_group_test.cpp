// SPDX-License-Identifier: Apache-2.0
#include "engine/process_group.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <future>
#include <map>
#include <mutex>

#include "engine/nccl_environment.h"
#include "ranks.h"

namespace saturate {
namespace {

using testing::HasSubstr;

TEST(ProcessGroupTest, SumsAndBroadcastsOnTwoAndFourRanks) {
    for (int count : {2, 4}) {
        expect_together(count, [count](ProcessGroup& group) {
            torch::Tensor mine = torch::full({1000}, static_cast<double>(group.rank() + 1));
            group.sum(mine);
            EXPECT_EQ(mine.min().item<double>(), count * (count + 1) / 2);
            EXPECT_EQ(mine.max().item<double>(), count * (count + 1) / 2);
            torch::Tensor first = torch::full({3}, static_cast<double>(group.rank() + 7));
            group.broadcast(first);
            EXPECT_EQ(first.sum().item<double>(), 21);
            EXPECT_EQ(group.text_of_first(group.is_first() ? "hello" : "other"), "hello");
            EXPECT_EQ(group.text_of_first(""), "");
            std::vector<std::string> expected;
            for (int i = 0; i < count; ++i) expected.push_back(std::string(i, 'x'));
            EXPECT_EQ(group.texts_of_all(std::string(group.rank(), 'x')), expected);
        });
    }
}

TEST(ProcessGroupTest, NamesTheRanksThatDidNotCome) {
    try {
        ProcessGroup group({.rank = 0,
                            .count = 3,
                            .port = free_port(),
                            .join_most = std::chrono::milliseconds(50)});
        FAIL();
    } catch (const RankLost& lost) {
        EXPECT_STREQ(lost.what(),
                     "error: ranks 1 and 2 of 3 did not join within 0 s\n"
                     "  expected: all ranks, started at about the same time\n"
                     "  fix:      check the log of ranks 1 and 2");
        EXPECT_EQ(lost.ranks(), (std::vector<int>{1, 2}));
    }
}

TEST(ProcessGroupTest, TheReasonOfARankThatFailsReachesTheOthers) {
    std::vector<std::string> said = on_ranks(
        3,
        [](ProcessGroup& group) {
            if (group.rank() == 1) {
                group.tell_failed("too many broken samples");
                return;
            }
            group.sum(torch::ones({4}));
        },
        short_times());
    EXPECT_EQ(said[1], "");
    for (int rank : {0, 2}) {
        EXPECT_THAT(said[rank],
                    HasSubstr("rank 1 of 3 is lost: it failed: too many broken samples"))
            << rank;
    }
}

TEST(ProcessGroupTest, ARankThatLivesAndDoesNotComeIsNamedWithWhatItDoes) {
    std::promise<void> over;
    std::shared_future<void> until = over.get_future().share();
    std::atomic<int> ended = 0;
    std::vector<std::string> said = on_ranks(
        2,
        [&](ProcessGroup& group) {
            group.stands(41, "loading");
            if (group.rank() == 1) {
                until.wait();
                return;
            }
            try {
                group.sum(torch::ones({4}));
            } catch (const RankLost&) {
                over.set_value();
                throw;
            }
        },
        short_times());
    EXPECT_THAT(said[0], HasSubstr("rank 1 of 2 is lost: alive, but loading in step 41 for "));
}

// A store in memory whose ranks can fall silent.
class FakeStore final : public KeyStore {
  public:
    struct Shared {
        std::mutex mutex;
        std::map<std::string, std::string> values;
        bool gone = false;
    };
    explicit FakeStore(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
    void set(const std::string& key, const std::string& value) override {
        std::lock_guard lock(shared_->mutex);
        if (shared_->gone) throw std::runtime_error("gone");
        shared_->values[key] = value;
    }
    std::vector<std::string> get(const std::vector<std::string>& keys) override {
        std::lock_guard lock(shared_->mutex);
        if (shared_->gone) throw std::runtime_error("gone");
        std::vector<std::string> out;
        for (const std::string& key : keys) out.push_back(shared_->values[key]);
        return out;
    }

  private:
    std::shared_ptr<Shared> shared_;
};

Blame blame_of(RankWatch& watch, bool broken) {
    std::int64_t since = 1;
    while (true) {
        if (auto blame = watch.blame(since, broken)) return *blame;
    }
}

// As many scripts of clusters set it: the host would wait for a lost rank inside of LibTorch.
TEST(NcclEnvironmentTest, NothingWaitsOrEndsTheProcessButWe) {
    ::setenv("TORCH_NCCL_BLOCKING_WAIT", "1", 1);
    leave_nccl_errors_to_us();
    for (const char* name : {"TORCH_NCCL_BLOCKING_WAIT", "TORCH_NCCL_ASYNC_ERROR_HANDLING",
                             "TORCH_NCCL_ENABLE_MONITORING"})
        EXPECT_STREQ(std::getenv(name), "0") << name;
}

TEST(RankWatchTest, NamesTheSilentRank) {
    auto shared = std::make_shared<FakeStore::Shared>();
    RankTimes times = short_times();
    times.patience = std::chrono::hours(1'000'000);
    RankWatch first(std::make_unique<FakeStore>(shared), 0, 3, 0, times);
    RankWatch second(std::make_unique<FakeStore>(shared), 1, 3, 0, times);
    shared->values["beat/2"] = "1 4 40 computing";
    shared->values["note/2"] = "";
    for (bool broken : {false, true}) {
        Blame blame = blame_of(first, broken);
        EXPECT_EQ(blame.ranks, std::vector<int>{2});
        EXPECT_THAT(blame.why, HasSubstr("no sign of life for "));
    }
}

TEST(RankWatchTest, AStoreThatIsGoneIsItsServersFault) {
    auto shared = std::make_shared<FakeStore::Shared>();
    RankWatch watch(std::make_unique<FakeStore>(shared), 1, 2, 0, short_times());
    {
        std::lock_guard lock(shared->mutex);
        shared->gone = true;
    }
    Blame blame = blame_of(watch, true);
    EXPECT_EQ(blame.ranks, std::vector<int>{0});
    EXPECT_EQ(blame.why, "the store that it serves is gone");
}

TEST(RankWatchTest, ListsRanks) {
    EXPECT_EQ(ranks_text({3}), "rank 3");
    EXPECT_EQ(ranks_text({0, 3}), "ranks 0 and 3");
    EXPECT_EQ(ranks_text({0, 3, 12}), "ranks 0, 3 and 12");
}

}  // namespace
}  // namespace saturate
