// SPDX-License-Identifier: Apache-2.0
// Loaders that get their settings as **settings, from a dict that is put together in several steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "project/fix_plan.h"
#include "project/project_reader.h"
#include "project/watched_calls.h"
#include "support/run.h"

namespace saturate {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// What is proposed and refused for a script whose loader on line 20 is DataLoader(Rows(),
// **settings), after `lines`, which are put before it.
class SpreadsTest : public testing::Test {
  protected:
    void plan(std::string lines, std::optional<int> watched_workers = {}) {
        lines.append(14 - std::ranges::count(lines, '\n'), '\n');
        folder_.file("train.py",
                     "import torch\n"
                     "from torch.utils.data import DataLoader\n"
                     "use_gpu = torch.cuda.is_available()\n"
                     "model = torch.nn.Linear(1, 1).cuda()\n"
                     "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n" +
                         lines +
                         "loader = DataLoader(Rows(), **settings)\n"
                         "for epoch in range(3):\n"
                         "    for x in loader:\n"
                         "        model(x.cuda()).sum().backward()\n"
                         "        optimizer.step()\n");
        ProjectReader reader({{"python3", "train.py"}, {}, folder_.path()});
        ProjectFacts facts = reader.read();
        FixMachine machine{.workers = 4};
        if (watched_workers) {
            machine.is_watched = true;
            machine.watched = watched_calls(
                facts,
                Json::parse(R"({"loaders": [{"id": 1, "site": {"file": "train.py", "line": 20},
                    "num_workers": )" + std::to_string(*watched_workers) +
                                R"(, "starts": 2}], "steps_by_loader": [{"loader": 1, "steps": 9}]})",
                            "test"));
        }
        FixPlan plan = plan_fixes(facts, machine, {.folder = folder_.path()});
        proposed_.clear();
        refused_.clear();
        for (const FixProposal& one : plan.proposals)
            proposed_.push_back(one.setting + " at " + std::to_string(one.at.line) + ": " +
                                one.before + " -> " + one.after);
        for (const FixRefusal& one : plan.refused)
            refused_.push_back(one.setting + ": " + one.why);
    }
    TemporaryFolder folder_;
    std::vector<std::string> proposed_, refused_;
};

TEST_F(SpreadsTest, WhatIsAddedLaterIsInIt) {
    for (const char* add :
         {"settings.update({'num_workers': 0})\n", "settings['num_workers'] = 0\n",
          "settings.update(num_workers=0)\n", "settings |= {'num_workers': 0}\n",
          "settings.setdefault('num_workers', 0)\n"}) {
        SCOPED_TRACE(add);
        plan("settings = {'batch_size': 4}\n" + std::string(add));
        EXPECT_THAT(proposed_, Contains("num_workers at 7: 0 -> 4"));
    }
    plan("settings = {'batch_size': 4, 'num_workers': 0}\nsettings['num_workers'] = 3\n");
    EXPECT_THAT(proposed_, Not(Contains(HasSubstr("num_workers at"))));
    // Not this dict, or not yet.
    plan("settings = {'num_workers': 0}\nother = {}\nother['num_workers'] = 3\n");
    EXPECT_THAT(proposed_, Contains("num_workers at 6: 0 -> 4"));
    plan("settings = {'num_workers': 3}\nsettings = {'num_workers': 0}\n");
    EXPECT_THAT(proposed_, Contains("num_workers at 7: 0 -> 4"));
}

TEST_F(SpreadsTest, WhatOnlyAConditionBringsInIsDecidedByARun) {
    for (const char* lines :
         {"settings = {'batch_size': 4}\nif use_gpu:\n    settings.update({'num_workers': 1})\n",
          "settings = {'batch_size': 4}\nif use_gpu:\n    settings['num_workers'] = 1\n",
          "settings = {'batch_size': 4}\n\nif use_gpu: settings.update(num_workers=1)\n",
          "settings = {'batch_size': 4}\ngpu = {\n    'num_workers': 1}\nif use_gpu:\n"
          "    settings.update(gpu)\n",
          "\n\nsettings = {'num_workers': 1} if use_gpu else {}\n"}) {
        SCOPED_TRACE(lines);
        plan(lines);
        EXPECT_THAT(proposed_, Not(Contains(HasSubstr("num_workers at"))));
        plan(lines, 1);
        EXPECT_THAT(proposed_, Contains("num_workers at 8: 1 -> 4"));
        plan(lines, 0);
        EXPECT_THAT(proposed_, Not(Contains(HasSubstr("num_workers at"))));
        EXPECT_THAT(refused_, Contains(HasSubstr("num_workers: num_workers comes in only under a "
                                                 "condition (train.py:8)")));
    }
}

TEST_F(SpreadsTest, ACountThatMayBeMissingIsAskedFor) {
    plan("settings = {'num_workers': 2} if use_gpu else {}\n");
    EXPECT_THAT(proposed_,
                Contains("persistent_workers at 20:  -> settings.get(\"num_workers\", 0) > 0"));
    plan("settings = {'num_workers': 2}\n");
    EXPECT_THAT(proposed_,
                Contains("persistent_workers at 20:  -> settings[\"num_workers\"] > 0"));
}

TEST_F(SpreadsTest, WhatCannotBeSeenIsLeftAlone) {
    for (const char* add : {"settings.update(load())\n", "settings[name()] = 0\n",
                            "settings |= load()\n", "settings.update(**load())\n"}) {
        SCOPED_TRACE(add);
        plan("settings = {'batch_size': 4}\n" + std::string(add));
        EXPECT_THAT(proposed_, Not(Contains(HasSubstr("num_workers at"))));
        EXPECT_THAT(proposed_, Not(Contains(HasSubstr("pin_memory"))));
    }
}

}  // namespace
}  // namespace saturate
