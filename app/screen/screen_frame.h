// SPDX-License-Identifier: Apache-2.0
// The content of monitor's live view as lines of text with tones, made from a snapshot and the
// history, without a terminal. screen.cpp draws it; tests read it.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "telemetry/sample.h"
#include "telemetry/thresholds.h"
#include "words/words.h"

namespace saturate {

enum class Tone { plain, title, dim, good, middling, bad, power };

struct Span {
    std::string text;
    Tone tone = Tone::plain;
};
using FrameLine = std::vector<Span>;

enum class MemoryUnit { gib, gb, percent };

struct FrameSettings {
    int columns = 80;
    int rows = 24;
    bool paused = false;
    int selected = -1;  // position in Snapshot::gpus; -1: all
    MemoryUnit unit = MemoryUnit::gib;
    Language language = Language::english;
    Thresholds thresholds;
};

// The last readings of each GPU, by position in Snapshot::gpus.
class FrameHistory {
  public:
    struct Point {
        std::optional<double> utilization_percent;
        std::optional<double> power_watts;
        std::optional<double> power_limit_watts;
    };
    // Percentages of all cores of the host.
    struct HostPoint {
        std::optional<double> cpu_percent;
        std::optional<double> job_percent;
    };
    void add(const Snapshot& snapshot);
    // Returns the points, newest last. For -1: the mean of the GPUs with readings, and their total
    // power.
    [[nodiscard]] std::vector<Point> points(int selected, std::size_t most) const;
    [[nodiscard]] std::vector<HostPoint> host_points(std::size_t most) const;

  private:
    std::deque<std::vector<Point>> ticks_;
    std::deque<HostPoint> host_;
};

// Returns at most `rows` lines, none wider than `columns`. Below 80x24 it leaves out graphs, then
// processes, then columns of the table. Without a GPU the graphs show the CPU, and the threads of
// the watched job replace the processes.
[[nodiscard]] std::vector<FrameLine> make_frame(const Snapshot& snapshot,
                                                const FrameHistory& history,
                                                const FrameSettings& settings);

}  // namespace saturate
