// SPDX-License-Identifier: Apache-2.0
#include "tuning/proof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace saturate {
namespace {

// Runs of a machine whose speed wanders: every run is the true rate times noise and a drift that
// both sides share.
struct Machine {
    explicit Machine(unsigned seed) : random(seed) {}
    std::mt19937 random;
    double noise = 0.05;
    double drift = 1;
    double operator()(double rate) {
        drift *= std::exp(std::normal_distribution<double>(0, 0.02)(random));
        return rate * drift * std::exp(std::normal_distribution<double>(0, noise)(random));
    }
};

TEST(ProofTest, SeesNoDifferenceWhereThereIsNone) {
    int wrong = 0;
    for (unsigned seed = 0; seed < 200; ++seed) {
        Machine machine(seed);
        Proof proof = prove(
            {}, [&] { return machine(100); }, [&] { return machine(100); });
        wrong += proof.verdict != Verdict::no_difference;
    }
    EXPECT_LE(wrong, 10);  // 99 % interval, looked at several times: a few of 200
}

TEST(ProofTest, SeesAFifth) {
    int seen = 0;
    for (unsigned seed = 0; seed < 100; ++seed) {
        Machine machine(seed);
        Proof proof = prove(
            {}, [&] { return machine(100); }, [&] { return machine(120); });
        seen += proof.verdict == Verdict::faster;
        EXPECT_NE(proof.verdict, Verdict::slower);
    }
    EXPECT_GE(seen, 95);
}

TEST(ProofTest, GoesInTurnsAndStopsWhenTheIntervalIsNarrow) {
    std::string order;
    Proof proof = prove(
        {},
        [&] {
            order += 'A';
            return 100.0;
        },
        [&] {
            order += 'B';
            return 90.0;
        });
    EXPECT_EQ(order, "ABBAABBAAB");
    EXPECT_EQ(proof.verdict, Verdict::slower);
    EXPECT_NEAR(proof.ratio, 0.9, 1e-12);
    EXPECT_EQ(proof.before.n, 5);
}

// Six times or seven: five pairs that differ by a tenth say enough.
TEST(ProofTest, ALargeGainNeedsNoNarrowInterval) {
    int runs = 0;
    auto rate = [&](double base) {
        return [&runs, base]() -> std::optional<double> {
            return base * (++runs % 3 == 0 ? 1.06 : 0.98);
        };
    };
    Proof large = prove({}, rate(100), rate(600));
    EXPECT_EQ(large.pairs.size(), 5u);
    EXPECT_EQ(large.verdict, Verdict::faster);
    runs = 0;
    EXPECT_GT(prove({}, rate(100), rate(110)).pairs.size(), 5u);
}

TEST(ProofTest, KeepsWhatItHasWhenARunFails) {
    int runs = 0;
    Proof proof = prove(
        {}, [&] { return 100.0; },
        [&]() -> std::optional<double> {
            if (++runs == 4) return std::nullopt;
            return 150.0;
        });
    EXPECT_FALSE(proof.complete);
    EXPECT_EQ(proof.pairs.size(), 3u);
    EXPECT_EQ(proof.verdict, Verdict::not_proven) << "three pairs have no interval";
    EXPECT_TRUE(to_json(proof)["interval"].is_null());
}

// Every run after was twice as fast as every run before, and two pairs gave [0.003, 1521].
TEST(ProofTest, FewerThanFivePairsHaveNeitherIntervalNorVerdict) {
    Proof proof;
    for (int pairs = 1; pairs <= 6; ++pairs) {
        proof.pairs.emplace_back(100 + pairs, 200);
        judge(proof);
        bool is_enough = pairs >= 5;
        EXPECT_EQ(proof.has_interval(), is_enough);
        EXPECT_EQ(proof.verdict, is_enough ? Verdict::faster : Verdict::not_proven);
        EXPECT_EQ(to_json(proof)["verdict"].string(), is_enough ? "faster" : "not proven");
        EXPECT_EQ(to_json(proof)["interval"].is_null(), !is_enough);
    }
}

}  // namespace
}  // namespace saturate
