// SPDX-License-Identifier: Apache-2.0
// What the live view of monitor shows, as lines of text with tones: made from a snapshot and the
// history, without a terminal. app/screen.cpp draws it; tests read it.
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
    // Of the host, in percent of all its cores.
    struct HostPoint {
        std::optional<double> cpu_percent;
        std::optional<double> job_percent;
    };
    void add(const Snapshot& snapshot);
    // The newest last. For -1 the mean over the GPUs that answered, with the sum of power.
    [[nodiscard]] std::vector<Point> points(int selected, std::size_t most) const;
    [[nodiscard]] std::vector<HostPoint> host_points(std::size_t most) const;

  private:
    std::deque<std::vector<Point>> ticks_;
    std::deque<HostPoint> host_;
};

// At most `rows` lines, none wider than `columns`. Below 80x24 it leaves out graphs, then
// processes, then columns of the table. Without a GPU the graphs are of the CPU, and the threads of
// the watched job take the place of the processes.
[[nodiscard]] std::vector<FrameLine> make_frame(const Snapshot& snapshot,
                                                const FrameHistory& history,
                                                const FrameSettings& settings);

}  // namespace saturate
