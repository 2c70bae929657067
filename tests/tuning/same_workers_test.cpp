// SPDX-License-Identifier: Apache-2.0
// The same facts give the same number of workers, whoever is asked.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "diagnosis/cure.h"
#include "diagnosis/diagnosis.h"
#include "remedies/advise.h"
#include "remedies/catalogue.h"
#include "tuning/moves.h"

namespace saturate {
namespace {

struct Case {
    int cores;
    int processes;
    const char* gpu;  // empty: the CPU trains
    int workers;      // that are there
};

Facts facts_of(const Case& one) {
    CpuFacts cpu;
    cpu.cores_usable = one.cores;
    std::optional<GpuFacts> gpu;
    if (*one.gpu) gpu = match_gpu(one.gpu, std::nullopt, std::nullopt)->facts;
    Facts facts = machine_facts(cpu, {}, gpu, Level::training);
    facts.processes = one.processes;
    return facts;
}

std::string text_of(const Case& one) {
    return fmt::format("{} cores, {} processes, {}, {} workers", one.cores, one.processes, one.gpu,
                       one.workers);
}

std::string by_optimize(const Document& document, const Facts& facts) {
    for (const Change& change : advise(document, Settings::read(document), facts).changes)
        if (change.setting == Setting::num_workers) return change.after;
    return "";
}

std::string by_diagnose(const Document& document, const Facts& facts) {
    for (const Finding& finding : diagnose_config(document, facts).findings) {
        std::string count = cure_of(finding.settings, "num_workers");
        if (!count.empty()) return count;
    }
    return "";
}

TEST(SameWorkersTest, OptimizeAndDiagnoseSayTheSame) {
    const Case cases[] = {{4, 1, "A100", 0},  {4, 1, "", 0},      {2, 1, "", 0},
                          {2, 1, "T4", 0},    {16, 1, "A100", 0}, {16, 4, "A100", 0},
                          {96, 1, "H100", 0}, {96, 8, "H100", 0}, {4, 1, "A100", 12},
                          {16, 4, "A100", 8}, {8, 1, "", 32},     {1, 1, "", 0},
                          {1, 1, "A100", 3}};
    for (const Case& one : cases) {
        Document document =
            Document::parse(fmt::format("num_workers: {}\n", one.workers), "job.yaml");
        Facts facts = facts_of(one);
        std::string count = std::to_string(worker_count(facts));
        EXPECT_EQ(by_optimize(document, facts), count) << text_of(one);
        EXPECT_EQ(by_diagnose(document, facts), count) << text_of(one);
    }
}

// What a run measured counts for more than the number of cores: for the search, and for the
// diagnosis of the same run.
TEST(SameWorkersTest, TheSearchAndTheDiagnosisOfARunSayTheSame) {
    struct Measured {
        Case machine;
        double fetch_seconds, compute_seconds;
        std::string count;
    };
    const Measured cases[] = {{{16, 1, "A100", 0}, 0.3, 0.1, "4"},
                              {{4, 1, "", 0}, 0.2, 0.1, "3"},
                              {{2, 1, "", 0}, 0.5, 0.01, "2"},
                              {{8, 1, "T4", 0}, 0.01, 0.1, "1"}};
    for (const Measured& one : cases) {
        Facts facts = facts_of(one.machine);
        facts.now = {{"num_workers", "0"}};
        double step = one.fetch_seconds + one.compute_seconds;
        Rate rate;
        rate.step_seconds = step;
        rate.input_wait_share = one.fetch_seconds / step;
        std::string tried;
        for (const Move& move : loader_moves(facts, facts.now, rate, 0)) {
            auto found = move.change.find("num_workers");
            if (tried.empty() && found != move.change.end()) tried = found->second;
        }
        facts.loader = LoaderTimes{one.fetch_seconds, one.compute_seconds, {}};
        EXPECT_EQ(tried, one.count) << text_of(one.machine);
        EXPECT_EQ(cure_of(cures("F02", facts), "num_workers"), one.count) << text_of(one.machine);
        EXPECT_EQ(worker_count(facts), *parse_integer(one.count)) << text_of(one.machine);
    }
}

}  // namespace
}  // namespace saturate
