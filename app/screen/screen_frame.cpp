// SPDX-License-Identifier: Apache-2.0
#include "screen_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "screen_text.h"

namespace saturate {

namespace {

constexpr std::size_t kHistory = 1024;
constexpr int kWide = 80, kTall = 24;
constexpr int kGutter = 12;  // columns left of a graph

class FrameBuilder {
  public:
    FrameBuilder(const Snapshot& snapshot, const FrameHistory& history,
                 const FrameSettings& settings)
        : snapshot_(snapshot),
          history_(history),
          settings_(settings),
          text_(labels(settings.language)) {}

    std::vector<FrameLine> build() {
        if (settings_.columns < 24 || settings_.rows < 3)
            return {{{cut(text_.small, width()), Tone::bad}}};
        head();
        table();
        host();
        int left_over = settings_.rows - static_cast<int>(lines_.size()) - 1;  // one for the keys
        bool full = settings_.columns >= kWide && settings_.rows >= kTall;
        bool has_gpu = !snapshot_.gpus.empty();
        if (full) left_over -= has_gpu ? graphs(left_over) : host_graphs(left_over);
        if (left_over >= 2) has_gpu ? processes(left_over) : threads(left_over);
        if (static_cast<int>(lines_.size()) > settings_.rows - 1)
            lines_.resize(static_cast<std::size_t>(settings_.rows - 1));
        keys();
        for (FrameLine& line : lines_) fit(line);
        return std::move(lines_);
    }

  private:
    [[nodiscard]] std::size_t width() const { return static_cast<std::size_t>(settings_.columns); }

    void head() {
        std::int64_t seconds = (snapshot_.time_ns - snapshot_.started_ns) / 1'000'000'000;
        FrameLine line{{"saturate monitor", Tone::title},
                       {fmt::format("  {:02}:{:02}:{:02}  {} s", seconds / 3600, seconds / 60 % 60,
                                    seconds % 60, snapshot_.interval_seconds)}};
        if (snapshot_.driver_version)
            line.push_back(
                {fmt::format("  {} {}", text_.driver, *snapshot_.driver_version), Tone::dim});
        if (settings_.paused) line.push_back({fmt::format("  [{}]", text_.paused), Tone::middling});
        lines_.push_back(line);
    }

    void table() {
        if (snapshot_.gpus.empty()) {
            std::string why = translated(snapshot_.devices_absent_because, settings_.language);
            bool is_chinese = settings_.language == Language::chinese;
            if (!why.empty()) why.insert(0, is_chinese ? "：" : ": ");
            lines_.push_back({{text_.no_gpu + why, Tone::middling}});
            return;
        }
        bool narrow = settings_.columns < kWide;
        std::size_t name = narrow ? 0 : std::min<std::size_t>(22, width() - 64);
        bool notes = width() >= 64 + name + 12;
        std::string title = left(text_.gpu, 4);
        if (narrow) {
            title += right(text_.util, 6) + right(text_.memory, 7) + right(text_.temperature, 7);
        } else {
            title += left(text_.name, name) + " " + right(text_.util, 6) + right(text_.sm, 6) +
                     right(text_.memory, 16) + right(text_.power, 13) +
                     right(text_.temperature, 7) + right(text_.clock, 10);
            if (notes) title += std::string("  ") + text_.note;
        }
        lines_.push_back({{title, Tone::title}});
        std::size_t room = static_cast<std::size_t>(std::max(1, settings_.rows - 3));
        for (std::size_t i = 0; i < snapshot_.gpus.size(); ++i) {
            if (i + 1 == room && snapshot_.gpus.size() > room) {
                lines_.push_back(
                    {{fmt::format("+{} {}", snapshot_.gpus.size() - i, text_.more), Tone::dim}});
                break;
            }
            if (i < snapshot_.devices.size()) lines_.push_back(gpu_line(i, narrow, name, notes));
        }
    }

    FrameLine gpu_line(std::size_t i, bool narrow, std::size_t name, bool notes) {
        const GpuIdentity& gpu = snapshot_.gpus[i];
        const DeviceSample& sample = snapshot_.devices[i];
        bool chosen = settings_.selected == static_cast<int>(i);
        FrameLine line{{left(fmt::format("{}{}", chosen ? ">" : " ", gpu.index), 4),
                        chosen ? Tone::title : Tone::plain}};
        if (!narrow) line.push_back({left(short_name(gpu.name), name) + " "});
        if (sample.fault) {
            line.push_back({fmt::format("{}: {}", text_.lost, *sample.fault), Tone::bad});
            return line;
        }
        std::string util = gpu.mig.value_or(false) && !sample.utilization_percent
                               ? "MIG"
                               : whole(sample.utilization_percent, " %");
        line.push_back(
            {right(util, 6), utilization_tone(sample.utilization_percent, settings_.thresholds)});
        if (narrow) {
            line.push_back(
                {right(memory_text(sample, MemoryUnit::percent), 7), memory_tone(sample)});
        } else {
            line.push_back({right(whole(sample.sm_active_percent, " %"), 6)});
            line.push_back({right(memory_text(sample, settings_.unit), 16), memory_tone(sample)});
            line.push_back({right(power_text(sample), 13)});
        }
        line.push_back({right(whole(sample.temperature_celsius, " C"), 7),
                        temperature_tone(sample.temperature_celsius, settings_.thresholds)});
        std::string held = held_down_by(sample, settings_.language);
        if (!narrow)
            line.push_back({right(whole(sample.clock_sm_mhz, " MHz"), 10),
                            held.empty() ? Tone::plain : Tone::middling});
        if (notes) line.push_back({"  " + held, Tone::middling});
        return line;
    }

    void host() {
        const HostSample& host = snapshot_.host;
        FrameLine line{
            {left(text_.host, 5)},
            {fmt::format("{} {}", text_.cpu, whole(host.cpu_percent, " %")),
             host.cpu_percent.value_or(0) > settings_.thresholds.cpu_percent ? Tone::bad
                                                                             : Tone::plain},
            {fmt::format("  {} {}", text_.io_wait, whole(host.io_wait_percent, " %"))}};
        if (snapshot_.gpus.empty() && host.memory_total_bytes && host.memory_available_bytes) {
            DeviceSample memory;
            memory.memory_total_bytes = host.memory_total_bytes;
            memory.memory_used_bytes = *host.memory_total_bytes - *host.memory_available_bytes;
            line.push_back({fmt::format("  {} {}", text_.ram, memory_text(memory, settings_.unit)),
                            memory_tone(memory)});
        }
        if (host.tree) {
            line.push_back({fmt::format("  {} {}: {} {}, {} {}", text_.job, host.tree->root_pid,
                                        text_.cpu, whole(host.tree->cpu_percent, " %"),
                                        host.tree->loader_workers, text_.workers)});
        }
        lines_.push_back(line);
    }

    // Returns the height of each of two graphs, or 0 if there is no room for them.
    static int graph_rows(int rows) {
        return rows >= 24 ? 6 : rows >= 16 ? 4 : rows >= 11 ? 3 : rows >= 7 ? 2 : 0;
    }

    // Adds graphs of the CPU and of the job's part of it. Returns the number of rows used.
    int host_graphs(int rows) {
        int each = graph_rows(rows);
        if (each == 0) return 0;
        auto points = history_.host_points(width() - kGutter);
        auto draw = [&](const std::string& name, auto member, const std::string& note) {
            std::vector<std::optional<double>> shares;
            std::vector<Tone> tones;
            for (const auto& point : points) {
                const std::optional<double>& percent = point.*member;
                shares.push_back(percent ? std::optional(*percent / 100) : std::nullopt);
                bool is_full = percent.value_or(0) > settings_.thresholds.cpu_percent;
                tones.push_back(is_full ? Tone::middling : Tone::power);
            }
            std::string now = points.empty() ? "-" : whole(points.back().*member, " %");
            graph({name, now, note}, shares, tones, each);
            return each;
        };
        using Point = FrameHistory::HostPoint;
        const HostSample& host = snapshot_.host;
        int used = draw(text_.cpu, &Point::cpu_percent,
                        host.cores ? fmt::format("{} {}", *host.cores, text_.cores) : "");
        if (host.tree) used += draw(text_.job, &Point::job_percent, "");
        return used;
    }

    // Adds graphs of utilisation and power. Returns the number of rows used.
    int graphs(int rows) {
        int each = graph_rows(rows);
        if (each == 0) return 0;
        auto points = history_.points(settings_.selected, width() - kGutter);
        std::string who =
            settings_.selected < 0
                ? std::string(snapshot_.gpus.size() > 1 ? text_.mean : "")
                : fmt::format(
                      "{} {}", text_.gpu,
                      snapshot_.gpus.at(static_cast<std::size_t>(settings_.selected)).index);
        std::vector<std::optional<double>> shares;
        std::vector<Tone> tones;
        for (const auto& point : points) {
            shares.push_back(point.utilization_percent
                                 ? std::optional(*point.utilization_percent / 100)
                                 : std::nullopt);
            tones.push_back(utilization_tone(point.utilization_percent, settings_.thresholds));
        }
        std::string now = points.empty() ? "-" : whole(points.back().utilization_percent, " %");
        graph({text_.util, now, who}, shares, tones, each);

        double most = 1;
        for (const auto& point : points)
            most = std::max(
                {most, point.power_limit_watts.value_or(0), point.power_watts.value_or(0)});
        shares.clear();
        for (const auto& point : points)
            shares.push_back(point.power_watts ? std::optional(*point.power_watts / most)
                                               : std::nullopt);
        tones.assign(points.size(), Tone::power);
        now = points.empty() ? "-" : whole(points.back().power_watts, " W");
        graph({text_.power, now, fmt::format("/{:.0f} W", most)}, shares, tones, each);
        return 2 * each;
    }

    void graph(const std::vector<std::string>& gutter,
               const std::vector<std::optional<double>>& shares, const std::vector<Tone>& tones,
               int rows) {
        static const char* const kEighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
        std::size_t room = width() - kGutter;
        for (int row = 0; row < rows; ++row) {
            std::string label = static_cast<std::size_t>(row) < gutter.size()
                                    ? gutter[static_cast<std::size_t>(row)]
                                    : "";
            FrameLine line{{left(label, kGutter - 2) + " │", Tone::dim}};
            line.push_back({std::string(room - std::min(room, shares.size()), ' ')});
            int base = (rows - 1 - row) * 8;
            for (std::size_t i = 0; i < shares.size(); ++i) {
                // A reading above 0 shows at least the lowest mark; an unknown reading shows no
                // mark.
                int level = shares[i]
                                ? std::max(*shares[i] > 0 ? 1 : 0,
                                           static_cast<int>(std::lround(*shares[i] * rows * 8)))
                                : 0;
                std::string mark = kEighths[std::clamp(level - base, 0, 8)];
                if (line.size() > 2 && line.back().tone == tones[i])
                    line.back().text += mark;
                else
                    line.push_back({mark, tones[i]});
            }
            lines_.push_back(line);
        }
    }

    // Adds the threads of the watched job, busiest first.
    void threads(int rows) {
        if (!snapshot_.host.tree || snapshot_.host.tree->busiest.empty()) return;
        lines_.push_back(
            {{right(text_.pid, 8) + right(text_.tid, 9) + right(text_.cpu, 7) + "  " + text_.thread,
              Tone::title}});
        for (const ThreadSample& thread : snapshot_.host.tree->busiest) {
            if (--rows == 0) return;
            lines_.push_back({{right(fmt::format("{}", thread.pid), 8) +
                               right(fmt::format("{}", thread.tid), 9) +
                               right(whole(thread.cpu_percent, " %"), 7) + "  " + thread.name}});
        }
    }

    void processes(int rows) {
        lines_.push_back({{left(text_.gpu, 4) + right(text_.pid, 8) + "  " + left(text_.user, 10) +
                               right(text_.memory, 10) + right(text_.sm, 6) + right(text_.cpu, 7) +
                               "  " + text_.command,
                           Tone::title}});
        --rows;
        std::vector<const ProcessRow*> shown;
        for (const ProcessRow& row : snapshot_.processes) {
            bool wanted =
                settings_.selected < 0 ||
                row.gpu == snapshot_.gpus.at(static_cast<std::size_t>(settings_.selected)).index;
            if (wanted) shown.push_back(&row);
        }
        for (std::size_t i = 0; i < shown.size(); ++i) {
            if (rows-- == 1 && i + 1 < shown.size()) {
                lines_.push_back(
                    {{fmt::format("+{} {}", shown.size() - i, text_.more), Tone::dim}});
                return;
            }
            const ProcessRow& row = *shown[i];
            lines_.push_back(
                {{left(fmt::format(" {}", row.gpu), 4) +
                  right(fmt::format("{}", row.process.pid), 8) + "  " +
                  left(row.user.value_or("-"), 10) +
                  right(bytes_in(row.process.memory_bytes, settings_.unit), 10) +
                  right(whole(row.process.sm_percent, " %"), 6) +
                  right(whole(row.cpu_percent, " %"), 7) + "  " + row.command.value_or("-")}});
        }
    }

    void keys() {
        const char* unit = settings_.unit == MemoryUnit::gib  ? "GiB"
                           : settings_.unit == MemoryUnit::gb ? "GB"
                                                              : "%";
        std::string who =
            settings_.selected < 0
                ? text_.all
                : fmt::format(
                      "{}", snapshot_.gpus.at(static_cast<std::size_t>(settings_.selected)).index);
        while (static_cast<int>(lines_.size()) < settings_.rows - 1) lines_.emplace_back();
        lines_.push_back(
            {{fmt::format("{}: {}  {}: {}", text_.keys, who, text_.units, unit), Tone::dim}});
    }

    void fit(FrameLine& line) const {
        std::size_t room = width();
        for (Span& span : line) {
            span.text = cut(span.text, room);
            room -= display_width(span.text);
        }
    }

    const Snapshot& snapshot_;
    const FrameHistory& history_;
    const FrameSettings& settings_;
    const Labels& text_;
    std::vector<FrameLine> lines_;
};

}  // namespace

void FrameHistory::add(const Snapshot& snapshot) {
    std::vector<Point> tick;
    for (const DeviceSample& sample : snapshot.devices)
        tick.push_back({sample.utilization_percent, sample.power_watts, sample.power_limit_watts});
    ticks_.push_back(std::move(tick));
    if (ticks_.size() > kHistory) ticks_.pop_front();
    const HostSample& host = snapshot.host;
    HostPoint point{.cpu_percent = host.cpu_percent};
    if (host.tree && host.tree->cpu_percent && host.cores.value_or(0) > 0)
        point.job_percent = *host.tree->cpu_percent / *host.cores;
    host_.push_back(point);
    if (host_.size() > kHistory) host_.pop_front();
}

std::vector<FrameHistory::HostPoint> FrameHistory::host_points(std::size_t most) const {
    return {host_.end() - static_cast<std::ptrdiff_t>(std::min(most, host_.size())), host_.end()};
}

std::vector<FrameHistory::Point> FrameHistory::points(int selected, std::size_t most) const {
    std::vector<Point> out;
    std::size_t first = ticks_.size() > most ? ticks_.size() - most : 0;
    for (std::size_t i = first; i < ticks_.size(); ++i) {
        if (selected >= 0) {
            auto at = static_cast<std::size_t>(selected);
            out.push_back(at < ticks_[i].size() ? ticks_[i][at] : Point{});
            continue;
        }
        Point mean;
        int known = 0;
        for (const Point& point : ticks_[i]) {
            if (point.utilization_percent) {
                mean.utilization_percent =
                    mean.utilization_percent.value_or(0) + *point.utilization_percent;
                ++known;
            }
            if (point.power_watts)
                mean.power_watts = mean.power_watts.value_or(0) + *point.power_watts;
            if (point.power_limit_watts)
                mean.power_limit_watts =
                    mean.power_limit_watts.value_or(0) + *point.power_limit_watts;
        }
        if (known > 0) *mean.utilization_percent /= known;
        out.push_back(mean);
    }
    return out;
}

std::vector<FrameLine> make_frame(const Snapshot& snapshot, const FrameHistory& history,
                                  const FrameSettings& settings) {
    FrameSettings checked = settings;
    if (checked.selected >= static_cast<int>(snapshot.gpus.size())) checked.selected = -1;
    return FrameBuilder(snapshot, history, checked).build();
}

}  // namespace saturate
