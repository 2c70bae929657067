// SPDX-License-Identifier: Apache-2.0
#include "remedies/catalogue.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/file.h"
#include "base/text.h"

namespace saturate {
namespace {

using testing::HasSubstr;

Facts on_gpu(const std::string& name, int cores = 16) {
    CpuFacts cpu;
    cpu.cores_usable = cores;
    return machine_facts(cpu, {}, match_gpu(name)->facts, Level::training);
}

Facts on_cpu(int cores) {
    CpuFacts cpu;
    cpu.cores_usable = cores;
    return machine_facts(cpu, {}, std::nullopt, Level::training);
}

TEST(CatalogueTest, EveryRowIsWhole) {
    std::set<std::string_view> names, shim;
    for (const Remedy& remedy : remedies()) {
        EXPECT_TRUE(names.insert(remedy.name).second) << remedy.name;
        EXPECT_NE(remedy.propose, nullptr) << remedy.name;
        if (remedy.setting) {
            EXPECT_EQ(info_of(*remedy.setting).name, remedy.name);
        }
        bool is_new = remedy.shim.name.empty() || shim.insert(remedy.shim.name).second;
        EXPECT_TRUE(is_new) << remedy.name;
        EXPECT_TRUE(remedy.pair.empty() || find_remedy(remedy.pair)) << remedy.name;
        for (std::string_view id : split(remedy.causes, ' '))
            EXPECT_TRUE(id.empty() || (id.size() == 3 && id[0] == 'F')) << remedy.name;
        // A safe word asks for nothing that changes more than time, but for threads, which change
        // nothing else on a GPU and are refused on a CPU.
        bool is_safe = remedy.shim.set != ShimWay::Set::safe || remedy.level() == Level::safe;
        EXPECT_TRUE(is_safe || remedy.name == "threads") << remedy.name;
    }
}

// Either way there is a reason, and on the first call as on the second.
TEST(CatalogueTest, EveryRemedyHasAReasonEitherWay) {
    std::vector<Facts> all = {on_gpu("A100"), on_gpu("GTX 1080"), on_gpu("T4"), on_cpu(4),
                              on_cpu(1)};
    for (Facts facts : std::vector(all)) {
        facts.is_measuring = true;
        facts.loader = LoaderTimes{.fetch_seconds = 0.2, .compute_seconds = 0.1};
        facts.now = with_defaults({});
        all.push_back(facts);
    }
    for (const Facts& facts : all) {
        for (const Remedy& remedy : remedies())
            EXPECT_NE(remedy.propose(facts).reason, "") << remedy.name;
    }
}

TEST(CatalogueTest, WhatWasProposedIsNotProposedAgain) {
    for (Facts facts : {on_gpu("A100"), on_gpu("GTX 1080"), on_gpu("T4"), on_cpu(4), on_cpu(1)}) {
        facts.start =
            facts.now = {{"num_workers", "0"},     {"precision", "none"},    {"batch_size", "16"},
                         {"compile", "true"},      {"pin_memory", "true"},   {"eval_interval", "1"},
                         {"learning_rate", "0.1"}, {"prefetch_factor", "1"}, {"optimizer", "sgd"}};
        for (const Remedy& remedy : remedies()) {
            Proposal first = remedy.propose(facts);
            if (!first.value) continue;
            facts.put(std::string(remedy.name), *first.value);
            for (const auto& [name, value] : first.with) facts.put(name, value);
        }
        facts.start = facts.now;
        for (const Remedy& remedy : remedies()) {
            bool has_key = remedy.setting.has_value();
            EXPECT_FALSE(has_key && remedy.propose(facts).value) << remedy.name;
        }
    }
}

struct WorkerCase {
    Facts facts;
    int workers;
};

TEST(CatalogueTest, CountsWorkersByWhatIsKnown) {
    auto measured = [](Facts facts, double fetch, double compute,
                       std::optional<bool> storage = {}) {
        facts.loader = LoaderTimes{fetch, compute, storage};
        return facts;
    };
    const WorkerCase cases[] = {
        {on_gpu("A100", 16), 8},
        {on_gpu("A100", 4), 2},
        {on_gpu("A100", 1), 1},
        {on_gpu("A100", 96), 16},
        {on_cpu(8), 2},
        {on_cpu(2), 1},
        {measured(on_gpu("A100", 16), 0.3, 0.1), 4},
        {measured(on_gpu("A100", 4), 3.0, 0.1), 8},
        {measured(on_gpu("A100", 4), 3.0, 0.1, false), 4},
        {measured(on_gpu("A100", 4), 3.0, 0.1, true), 16},
        {measured(on_cpu(4), 3.0, 0.1), 4},
        {measured(on_cpu(4), 0.01, 0.1), 1},
    };
    for (const WorkerCase& one : cases) EXPECT_EQ(worker_count(one.facts), one.workers);
    Facts four = on_gpu("A100", 16);
    four.processes = 4;
    EXPECT_EQ(worker_count(four), 2);
    four.workers_asked = 7;
    EXPECT_EQ(worker_count(four), 7);
}

TEST(CatalogueTest, AFindingNamesItsRemedies) {
    Facts facts = on_gpu("A100", 16);
    facts.now = {{"num_workers", "0"}};
    std::vector<Choice> choices = choices_for("F02", facts);
    ASSERT_FALSE(choices.empty());
    EXPECT_EQ(choices[0].remedy->name, "num_workers");
    EXPECT_EQ(choices[0].proposal.value, "8");
    EXPECT_EQ(choices[0].proposal.with.at("persistent_workers"), "true");
    EXPECT_EQ(choices_for("F14", facts)[0].remedy->name, "set_to_none");
    EXPECT_TRUE(choices_for("F03", on_cpu(4)).empty());
    facts.in_memory = true;
    choices = choices_for("F01", facts);
    ASSERT_FALSE(choices.empty());
    EXPECT_EQ(choices[0].remedy->name, "batched_fetch");
}

TEST(CatalogueTest, TheShimCanDoWhatTheTableSays) {
    std::string code;
    for (const char* part : {"apply", "apply_loader", "apply_model", "apply_optimizer"})
        code += read_file(fmt::format("{}/python/_saturate_shim/{}.py", SATURATE_SOURCE_DIR, part),
                          1 << 20, "the shim");
    for (const Remedy& remedy : remedies()) {
        if (remedy.shim.name.empty()) continue;
        EXPECT_THAT(code, HasSubstr(fmt::format("\"{}\"", remedy.shim.name)));
    }
}

TEST(CatalogueTest, TheShimReadsTheSameLevels) {
    std::string table = shim_table();
    EXPECT_THAT(table, HasSubstr("\"num_workers\": \"safe\""));
    EXPECT_THAT(table, HasSubstr("\"autocast\": \"numerics\""));
    for (const Remedy& remedy : remedies()) {
        if (remedy.shim.name.empty()) continue;
        EXPECT_THAT(table, HasSubstr(fmt::format("    \"{}\": \"{}\",\n", remedy.shim.name,
                                                 level_name(remedy.level()))));
    }
}

}  // namespace
}  // namespace saturate
