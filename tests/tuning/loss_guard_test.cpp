// SPDX-License-Identifier: Apache-2.0
#include "tuning/loss_guard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace saturate {
namespace {

LossCurve falling(double to, double offset = 0) {
    LossCurve curve;
    for (double samples = 64; samples <= to; samples += 64)
        curve.push_back({samples, 2 * std::exp(-samples / 2000) + offset});
    return curve;
}

TEST(LossGuardTest, HoldsWithinTheSpreadOfTheBaselines) {
    std::vector<LossCurve> baselines{falling(4096), falling(4096, 0.04)};
    EXPECT_EQ(guard_loss(baselines, falling(8192, 0.03)).verdict, GuardVerdict::holds);
    EXPECT_EQ(guard_loss(baselines, falling(4096, -0.2)).verdict, GuardVerdict::holds);
}

TEST(LossGuardTest, DiffersBeyondIt) {
    std::vector<LossCurve> baselines{falling(4096), falling(4096, 0.04)};
    LossGuard guard = guard_loss(baselines, falling(4096, 0.3));
    EXPECT_EQ(guard.verdict, GuardVerdict::differs);
    EXPECT_EQ(guard.samples, 4096);
}

TEST(LossGuardTest, TheTextShowsTheLimitOfTheVerdict) {
    LossCurve one{{64, 1}, {128, 1}, {192, 1}, {256, 1}};
    std::vector<LossCurve> baselines{one, one};
    for (LossPoint& point : one) point.loss = 1.019;
    EXPECT_EQ(guard_loss(baselines, one).text,
              "loss 1.019 after 256 samples; 1 before (n=2, up to 1.02 by chance): no worse");
    for (LossPoint& point : one) point.loss = 1.021;
    EXPECT_EQ(guard_loss(baselines, one).text,
              "loss 1.021 after 256 samples; 1 before (n=2, up to 1.02 by chance): worse than "
              "chance explains");
}

// Losses of the first steps of a real job: two seeds, and the first again with another layout.
TEST(LossGuardTest, TwoShortRunsThatAgreeByChanceProveNothing) {
    auto curve = [](std::initializer_list<double> losses) {
        LossCurve out;
        for (double loss : losses)
            out.push_back({64.0 * static_cast<double>(out.size() + 1), loss});
        return out;
    };
    std::vector<LossCurve> baselines{
        curve({2.4661, 2.8306, 2.7883, 2.3911, 2.962, 2.3183, 2.8689}),
        curve({2.3314, 2.4623, 2.2427, 2.3306, 2.2321, 2.0371, 2.9271})};
    LossCurve candidate = curve({2.4661, 2.8309, 2.818, 2.4472, 3.028, 2.5468, 3.2189});
    LossGuard guard = guard_loss(baselines, candidate);
    EXPECT_EQ(guard.verdict, GuardVerdict::holds) << guard.text;
    for (LossPoint& point : candidate) point.loss += 1;
    EXPECT_EQ(guard_loss(baselines, candidate).verdict, GuardVerdict::differs);
}

// Without a seed: the two met where they are compared, after a course that lay far apart.
TEST(LossGuardTest, TwoRunsThatMeetAtTheEndVaryAllTheSame) {
    LossCurve other = falling(4096);
    for (LossPoint& point : other)
        if (point.samples < 3000) point.loss += 0.06;
    std::vector<LossCurve> baselines{falling(4096), other};
    EXPECT_EQ(guard_loss(baselines, falling(4096, 0.05)).verdict, GuardVerdict::holds);
    EXPECT_EQ(guard_loss(baselines, falling(4096, 0.3)).verdict, GuardVerdict::differs);
}

// Runs without a seed: a start of their own that they keep for a while, and leaps from step to step.
class RandomRuns {
  public:
    explicit RandomRuns(double leap) : leap_(leap) {}

    std::vector<LossCurve> runs(int count, double offset = 0) {
        std::vector<LossCurve> out;
        for (int i = 0; i < count; ++i) {
            LossCurve curve = falling(4096, offset);
            double apart = 0.05 * normal_(random_);
            for (LossPoint& point : curve) {
                apart = 0.98 * apart + 0.05 * std::sqrt(1 - 0.98 * 0.98) * normal_(random_);
                point.loss += apart + leap_ * normal_(random_);
            }
            out.push_back(std::move(curve));
        }
        return out;
    }
    // Of 1,000 comparisons, those that say "worse".
    int worse(int before, int after, double offset) {
        int out = 0;
        for (int i = 0; i < 1000; ++i)
            out += guard_losses(runs(before), runs(after, offset)).verdict == GuardVerdict::differs;
        return out;
    }

  private:
    double leap_;
    std::mt19937 random_{7};
    std::normal_distribution<double> normal_;
};

TEST(LossGuardTest, ChanceIsSeldomCalledWorse) {
    for (double leap : {0.01, 0.2}) {
        EXPECT_LT(RandomRuns(leap).worse(2, 1, 0), 30) << leap;
        EXPECT_LT(RandomRuns(leap).worse(7, 5, 0), 35) << leap;
    }
}

// What a trial against two runs cannot see, the runs of a proof together do.
TEST(LossGuardTest, ManyRunsSeeWhatSingleOnesHide) {
    EXPECT_GT(RandomRuns(0.01).worse(7, 5, 0.15), 950);
    EXPECT_GT(RandomRuns(0.6).worse(7, 5, 0.3), 750);  // the leaps of one run would hide it
}

TEST(LossGuardTest, ComparesAtEqualSamplesNotAtEqualSteps) {
    std::vector<LossCurve> baselines{falling(2048), falling(2048, 0.01)};
    // Twice the batch: it saw twice as many samples and has a lower loss at its end, but is behind
    // at the same number.
    EXPECT_EQ(guard_loss(baselines, falling(4096, 0.3)).verdict, GuardVerdict::differs);
}

TEST(LossGuardTest, NamesALossThatIsNoNumber) {
    LossCurve broken{{64, 1.0}, {128, NAN}};
    std::vector<LossCurve> baselines{falling(4096), falling(4096)};
    EXPECT_EQ(guard_loss(baselines, broken).text, "the loss is NaN or infinite after 128 samples");
}

TEST(LossGuardTest, IsUnknownWithoutTwoBaselines) {
    std::vector<LossCurve> one{falling(4096)};
    EXPECT_EQ(guard_loss(one, falling(4096)).verdict, GuardVerdict::unknown);
    EXPECT_EQ(guard_loss({}, {}).verdict, GuardVerdict::unknown);
}

TEST(LossGuardTest, CountsSamplesOfTheStepThatTheLossIsOf) {
    std::vector<StepRecord> steps;
    for (int i = 0; i < 4; ++i) steps.push_back({.step = i, .duration_ns = 1, .samples = 10});
    steps[3].loss = 0.5;
    steps[3].loss_step = 1;
    LossCurve curve = loss_curve(steps);
    ASSERT_EQ(curve.size(), 1u);
    EXPECT_EQ(curve[0].samples, 20);
}

}  // namespace
}  // namespace saturate
