// SPDX-License-Identifier: Apache-2.0
// The differential test: nvitop and gpustat, unmodified from PyPI, read the same recording through
// the same library and must agree with monitor.
#include <gtest/gtest.h>

#include <ostream>

#include "base/text.h"
#include "support/replayed.h"

namespace saturate {

// Found by gtest beside the type.
static void PrintTo(const Replayed& replayed, std::ostream* out) { *out << replayed.scenario; }

namespace {

struct Reading {
    std::optional<double> utilization, used_mib, total_mib, watts, celsius;
};

std::optional<double> scaled(const Json& value, double factor) {
    auto number = value.number();
    return number ? std::optional(*number * factor) : std::nullopt;
}

constexpr double kMib = 1 << 20;

const char* kNvitop =
    "import json\n"
    "from nvitop import Device\n"
    "def known(x):\n"
    "    return x if isinstance(x, (int, float)) else None\n"
    "print(json.dumps([{'utilization': known(d.gpu_utilization()), 'used': known(d.memory_used()), "
    "'total': known(d.memory_total()),\n"
    "                   'power': known(d.power_usage()), 'temperature': known(d.temperature())} "
    "for d in Device.all()]))\n";

class MonitorPeersTest : public testing::TestWithParam<Replayed> {
  protected:
    void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        GTEST_SKIP() << "a library built with a sanitizer cannot be loaded into an ordinary Python";
#endif
        Ran found = run({SATURATE_SOURCE_DIR "/tests/support/pypi", "nvitop", "gpustat"});
        if (found.status != 0)
            GTEST_SKIP() << "nvitop and gpustat cannot be had from PyPI here: " << found.err;
        peers_ = trim(found.out);
        environment_ = replay_environment(GetParam(), SATURATE_NVML_REPLAY);
    }

    std::vector<Reading> ours() {
        Ran ran =
            run({SATURATE_BINARY, "monitor", "--json", "--interval", "0.1", "--duration", "0.1"},
                {.environment = environment_});
        EXPECT_EQ(ran.err, "");
        std::vector<Reading> out;
        for (const Json& line : json_lines(ran.out)) {
            if (!line["gpus"].is_array()) continue;
            for (const Json& gpu : line["gpus"].items())
                out.push_back({gpu["utilization_percent"].number(),
                               scaled(gpu["memory_used_bytes"], 1 / kMib),
                               scaled(gpu["memory_total_bytes"], 1 / kMib),
                               gpu["power_watts"].number(), gpu["temperature_celsius"].number()});
            break;  // the first tick
        }
        return out;
    }
    std::vector<Reading> gpustat() {
        Ran ran = python({"-m", "gpustat", "--json"});
        std::vector<Reading> out;
        Json found = Json::parse(ran.out, "gpustat");
        for (const Json& gpu : found["gpus"].items())
            out.push_back({gpu["utilization.gpu"].number(), gpu["memory.used"].number(),
                           gpu["memory.total"].number(), gpu["power.draw"].number(),
                           gpu["temperature.gpu"].number()});
        return out;
    }
    std::vector<Reading> nvitop() {
        Ran ran = python({"-c", kNvitop});
        std::vector<Reading> out;
        Json found = Json::parse(ran.out, "nvitop");
        for (const Json& gpu : found.items())
            out.push_back({gpu["utilization"].number(), scaled(gpu["used"], 1 / kMib),
                           scaled(gpu["total"], 1 / kMib), scaled(gpu["power"], 1e-3),
                           gpu["temperature"].number()});
        return out;
    }

  private:
    Ran python(std::vector<std::string> words) {
        words.insert(words.begin(), "python3");
        auto environment = environment_;
        environment["PYTHONPATH"] = peers_;
        environment["PYTHONDONTWRITEBYTECODE"] = "1";
        Ran ran = run(words, {.environment = environment});
        EXPECT_EQ(ran.status, 0) << ran.err;
        return ran;
    }
    std::string peers_;
    std::map<std::string, std::string> environment_;
};

void expect_same(const char* what, const std::optional<double>& mine,
                 const std::optional<double>& theirs, double tolerance) {
    if (!theirs) {
        EXPECT_FALSE(mine) << what << ": they say unknown, we say " << *mine;
        return;
    }
    ASSERT_TRUE(mine) << what << ": they say " << *theirs << ", we say unknown";
    EXPECT_NEAR(*mine, *theirs, tolerance) << what;
}

// Whole numbers are what gpustat prints for power and memory: half a unit is rounding.
void compare(const std::vector<Reading>& mine, const std::vector<Reading>& theirs) {
    ASSERT_EQ(mine.size(), theirs.size());
    ASSERT_FALSE(mine.empty());
    for (std::size_t i = 0; i < mine.size(); ++i) {
        SCOPED_TRACE(testing::Message() << "GPU " << i);
        expect_same("utilisation", mine[i].utilization, theirs[i].utilization, 0);
        expect_same("memory used", mine[i].used_mib, theirs[i].used_mib, 1);
        expect_same("memory total", mine[i].total_mib, theirs[i].total_mib, 1);
        expect_same("power", mine[i].watts, theirs[i].watts, 0.5);
        expect_same("temperature", mine[i].celsius, theirs[i].celsius, 0);
    }
}

TEST_P(MonitorPeersTest, AgreesWithNvitop) {
    std::vector<Reading> theirs = nvitop();
    if (GetParam().scenario == "unified") {
        // nvitop shows the host's memory instead; to us the GPU's own is unknown.
        for (Reading& reading : theirs) reading.used_mib = reading.total_mib = std::nullopt;
    }
    compare(ours(), theirs);
}

TEST_P(MonitorPeersTest, AgreesWithGpustat) { compare(ours(), gpustat()); }

// Not stride_32: the peers give room for entries of 24 bytes, and what writes 32 into it ends them.
INSTANTIATE_TEST_SUITE_P(Scenarios, MonitorPeersTest,
                         testing::Values(Replayed{"busy", "real:0"}, Replayed{"idle", "real:0"},
                                         Replayed{"nccl_spin", "real:0"},
                                         Replayed{"unified", "real:0"},
                                         Replayed{"old_driver", "real:0", "old"},
                                         Replayed{"eight_gpus", "real:0"}),
                         [](const auto& info) { return info.param.scenario; });

}  // namespace
}  // namespace saturate
