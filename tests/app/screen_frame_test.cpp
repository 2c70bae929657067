// SPDX-License-Identifier: Apache-2.0
#include "screen_frame.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace saturate {
namespace {

Snapshot snapshot(int gpus, double utilization = 96) {
    Snapshot out;
    out.driver_version = "580.65.06";
    out.time_ns = 3'723'000'000'000;
    for (int i = 0; i < gpus; ++i) {
        out.gpus.push_back({.index = i, .name = "NVIDIA H100 80GB HBM3", .uuid = "GPU-x"});
        DeviceSample sample{.gpu = i};
        sample.utilization_percent = utilization;
        sample.sm_active_percent = 71;
        sample.memory_used_bytes = 60ull << 30;
        sample.memory_total_bytes = 80ull << 30;
        sample.power_watts = 610;
        sample.power_limit_watts = 700;
        sample.temperature_celsius = 62;
        sample.clock_sm_mhz = 1755;
        out.devices.push_back(sample);
        ProcessRow row{.gpu = i, .process = {.pid = 4242 + i, .memory_bytes = 60ull << 30}};
        row.user = "ada";
        row.command = "python 训练.py\x1b[2J";
        out.processes.push_back(row);
    }
    out.host.cpu_percent = 25;
    out.host.io_wait_percent = 1;
    return out;
}

std::vector<std::string> text(const Snapshot& snapshot, const FrameSettings& settings,
                              int ticks = 100) {
    FrameHistory history;
    for (int i = 0; i < ticks; ++i) history.add(snapshot);
    std::vector<std::string> out;
    for (const FrameLine& line : make_frame(snapshot, history, settings)) {
        std::string whole;
        for (const Span& span : line) whole += span.text;
        out.push_back(whole);
    }
    return out;
}

Tone tone_of(const Snapshot& snapshot, const std::string& part) {
    for (const FrameLine& line : make_frame(snapshot, {}, {})) {
        for (const Span& span : line) {
            if (span.text.find(part) != std::string::npos) return span.tone;
        }
    }
    ADD_FAILURE() << "no " << part;
    return Tone::plain;
}

TEST(ScreenFrameTest, ShowsNumbersGraphsAndProcesses) {
    std::vector<std::string> lines = text(snapshot(1), {});
    ASSERT_EQ(lines.size(), 24u);
    EXPECT_EQ(lines[0], "saturate monitor  01:02:03  1 s  driver 580.65.06");
    EXPECT_EQ(lines[1],
              "GPU Name               Util    SM          Memory        Power   Temp     Clock");
    EXPECT_EQ(lines[2],
              " 0  H100 80GB HBM3     96 %  71 %     60.0/80 GiB    610/700 W   62 C  1755 MHz");
    EXPECT_EQ(lines[3], "Host CPU 25 %  IO wait 1 %");
    EXPECT_TRUE(lines[4].starts_with("Util       │▇▇▇▇")) << lines[4];
    EXPECT_TRUE(lines[5].starts_with("96 %       │████")) << lines[5];
    EXPECT_TRUE(lines[8].starts_with("Power      │▄▄▄▄")) << lines[8];
    EXPECT_EQ(lines[12], "GPU      PID  User          Memory    SM    CPU  Command");
    EXPECT_EQ(lines[13], " 0      4242  ada         60.0 GiB     -      -  python 训练.py [2J");
    EXPECT_EQ(lines[23], "q quit  p pause  g GPU: all  u units: GiB");
}

TEST(ScreenFrameTest, FitsEverySizeInBothLanguages) {
    for (Language language : {Language::english, Language::chinese}) {
        for (int gpus : {0, 1, 8, 16}) {
            for (int columns : {1, 10, 24, 40, 79, 80, 81, 120, 300}) {
                for (int rows : {1, 2, 3, 5, 23, 24, 30, 100}) {
                    auto lines = text(snapshot(gpus),
                                      {.columns = columns, .rows = rows, .language = language});
                    EXPECT_LE(lines.size(), static_cast<std::size_t>(rows));
                    for (const std::string& line : lines)
                        EXPECT_LE(display_width(line), static_cast<std::size_t>(columns))
                            << rows << " rows: " << line;
                }
            }
        }
    }
}

TEST(ScreenFrameTest, ChineseColumnsStandUnderTheirTitles) {
    auto lines = text(snapshot(1), {.language = Language::chinese});
    EXPECT_EQ(lines[1],
              "GPU 名称             利用率    SM            显存         功耗   温度      频率");
    EXPECT_EQ(display_width(lines[1]), display_width(lines[2]));
    EXPECT_EQ(lines[23], "q 退出  p 暂停  g GPU: 全部  u 单位: GiB");
}

TEST(ScreenFrameTest, ASmallTerminalKeepsWhatMattersMost) {
    auto lines = text(snapshot(8), {.columns = 40, .rows = 12});
    ASSERT_EQ(lines.size(), 12u);
    EXPECT_EQ(lines[1], "GPU   Util Memory   Temp");
    EXPECT_EQ(lines[2], " 0    96 %   75 %   62 C");
    EXPECT_EQ(lines[9], " 7    96 %   75 %   62 C");
    EXPECT_EQ(text(snapshot(8), {.columns = 40, .rows = 6})[4], "+6 more");
    EXPECT_EQ(text(snapshot(1), {.columns = 20, .rows = 5}),
              std::vector<std::string>{"terminal too small"});
}

TEST(ScreenFrameTest, UnknownIsADashAndALostGpuSaysSo) {
    Snapshot two = snapshot(2);
    two.devices[0] = DeviceSample{.gpu = 0};
    two.devices[1] = DeviceSample{.gpu = 1};
    two.devices[1].fault = "GPU is lost";
    auto lines = text(two, {});
    EXPECT_EQ(lines[2],
              " 0  H100 80GB HBM3        -     -               -            -      -         -");
    EXPECT_EQ(lines[3], " 1  H100 80GB HBM3   lost: GPU is lost");
}

TEST(ScreenFrameTest, ColoursFollowTheThresholds) {
    EXPECT_EQ(tone_of(snapshot(1, 85), "85 %"), Tone::good);
    EXPECT_EQ(tone_of(snapshot(1, 84), "84 %"), Tone::middling);
    EXPECT_EQ(tone_of(snapshot(1, 69), "69 %"), Tone::bad);
    Snapshot hot = snapshot(1);
    hot.devices[0].temperature_celsius = 86;
    EXPECT_EQ(tone_of(hot, "86 C"), Tone::bad);
    hot.devices[0].temperature_celsius = 85;
    EXPECT_EQ(tone_of(hot, "85 C"), Tone::middling);
}

TEST(ScreenFrameTest, AChosenGpuIsMarkedAndFiltersTheProcesses) {
    auto lines = text(snapshot(2), {.selected = 1, .unit = MemoryUnit::gb});
    EXPECT_EQ(lines[3],
              ">1  H100 80GB HBM3     96 %  71 %      64.4/86 GB    610/700 W   62 C  1755 MHz");
    EXPECT_EQ(lines[23], "q quit  p pause  g GPU: 1  u units: GB");
    int processes = 0;
    for (const std::string& line : lines)
        processes +=
            line.find("4243") != std::string::npos || line.find("4242") != std::string::npos;
    EXPECT_EQ(processes, 1);
}

TEST(FrameHistoryTest, TheMeanLeavesOutWhatIsUnknown) {
    FrameHistory history;
    Snapshot two = snapshot(2, 80);
    two.devices[1].utilization_percent.reset();
    history.add(two);
    EXPECT_EQ(history.points(-1, 10).at(0).utilization_percent, 80);
    EXPECT_EQ(history.points(-1, 10).at(0).power_watts, 1220);
    EXPECT_EQ(history.points(1, 10).at(0).utilization_percent, std::nullopt);
}

TEST(ScreenFrameTest, WithoutAGpuItDrawsTheCpuAndTheJob) {
    Snapshot host = snapshot(0);
    host.devices_absent_because = "libnvidia-ml.so.1 was not found: no NVIDIA driver";
    host.host.cpu_percent = 50;
    host.host.cores = 2;
    host.host.memory_total_bytes = 16ull << 30;
    host.host.memory_available_bytes = 12ull << 30;
    TreeSample tree{.root_pid = 4711, .loader_workers = 1, .cpu_percent = 50};
    tree.busiest = {{.pid = 4711, .tid = 4711, .name = "python", .cpu_percent = 40},
                    {.pid = 4711, .tid = 4720, .name = "pt_data_worker", .cpu_percent = 10}};
    host.host.tree = tree;
    std::vector<std::string> lines = text(host, {.columns = 100});
    ASSERT_EQ(lines.size(), 24u);
    EXPECT_EQ(lines[1], "No GPU to watch: libnvidia-ml.so.1 was not found: no NVIDIA driver");
    EXPECT_EQ(lines[2],
              "Host CPU 50 %  IO wait 1 %  RAM 4.0/16 GiB  Job 4711: CPU 50 %, 1 loader workers");
    std::vector<std::string> chinese = text(host, {.columns = 100, .language = Language::chinese});
    EXPECT_EQ(chinese[1], "没有可监控的 GPU：没有 libnvidia-ml.so.1：没有 NVIDIA 驱动");
    EXPECT_NE(chinese[2].find("内存 4.0/16 GiB"), std::string::npos) << chinese[2];
    EXPECT_TRUE(lines[3].starts_with("CPU        │    ")) << lines[3];  // the upper half is empty
    EXPECT_TRUE(lines[4].starts_with("50 %       │    ")) << lines[4];
    EXPECT_TRUE(lines[5].starts_with("2 cores    │████")) << lines[5];
    EXPECT_TRUE(lines[7].starts_with("Job        │    ")) << lines[7];
    EXPECT_TRUE(lines[8].starts_with("25 %       │    ")) << lines[8];
    EXPECT_TRUE(lines[10].starts_with("           │████")) << lines[10];
    EXPECT_EQ(lines[11], "     PID      TID    CPU  Thread");
    EXPECT_EQ(lines[12], "    4711     4711   40 %  python");
    EXPECT_EQ(lines[13], "    4711     4720   10 %  pt_data_worker");
    // Nothing is watched: the CPU alone, and no empty table.
    host.host.tree.reset();
    lines = text(host, {.columns = 100});
    EXPECT_TRUE(lines[3].starts_with("CPU")) << lines[3];
    EXPECT_EQ(lines[7], "");
}

}  // namespace
}  // namespace saturate
