// SPDX-License-Identifier: Apache-2.0
// Trends over the length of a record: memory that grows from step to step (F34) and steps that get
// slower (F35).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "diagnosis/diagnosis.h"

namespace saturate {
namespace {

struct TrendPoint {
    double seconds = 0;
    double value = 0;
};

double quantile_of(std::vector<double> values, double part) {
    if (values.empty()) return 0;
    auto at = values.begin() +
              static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1) + 0.5);
    std::ranges::nth_element(values, at);
    return *at;
}

// Returns the median (or another quantile) of each of `parts` consecutive parts. Leaves out the
// first fifth, in which caches fill up.
std::vector<double> parts_of(const std::vector<double>& values, std::size_t parts,
                             double quantile = 0.5) {
    std::size_t warm = values.size() / 5;
    std::vector<double> out;
    std::size_t rest = values.size() - warm;
    for (std::size_t i = 0; i < parts; ++i) {
        auto begin = values.begin() + static_cast<std::ptrdiff_t>(warm + rest * i / parts);
        auto end = values.begin() + static_cast<std::ptrdiff_t>(warm + rest * (i + 1) / parts);
        out.push_back(quantile_of({begin, end}, quantile));
    }
    return out;
}

struct Growth {
    double per_second = 0;
    double first = 0, last = 0;
};

// Returns the growth if every part is above the one before and no part holds most of the rise. An
// allocator that takes one more block and then stays level does not rise like that.
std::optional<Growth> straight_rise(const std::vector<TrendPoint>& points) {
    constexpr std::size_t kLeast = 15, kParts = 5;
    constexpr double kLeastSeconds = 10, kLeastBytes = 64e6, kLeastShare = 0.03;
    if (points.size() < kLeast || points.back().seconds - points.front().seconds < kLeastSeconds)
        return std::nullopt;
    std::vector<double> values, times;
    for (const TrendPoint& point : points) {
        values.push_back(point.value);
        times.push_back(point.seconds);
    }
    std::vector<double> parts = parts_of(values, kParts), at = parts_of(times, kParts);
    double grown = parts.back() - parts.front();
    if (grown < kLeastBytes || grown < kLeastShare * parts.front()) return std::nullopt;
    for (std::size_t i = 1; i < kParts; ++i) {
        double one = parts[i] - parts[i - 1];
        if (one < 0.08 * grown || one > 0.6 * grown) return std::nullopt;
    }
    return Growth{grown / (at.back() - at.front()), parts.front(), parts.back()};
}

std::string time_text(double seconds) {
    if (seconds < 120) return fmt::format("{:.0f} s", seconds);
    if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
    return fmt::format("{:.0f} h", seconds / 3600);
}

Finding growth_finding(std::string_view what, const Growth& growth, double left_bytes,
                       double steps_per_second) {
    auto text = [](double bytes) { return bytes_text(static_cast<std::uint64_t>(bytes)); };
    Finding finding{.id = "F34", .count = 1, .confidence = Confidence::medium};
    finding.sources = {"run record"};
    finding.evidence = fmt::format("{} grows from {} to {}, {} a minute", what, text(growth.first),
                                   text(growth.last), text(60 * growth.per_second));
    if (steps_per_second > 0)
        finding.evidence += fmt::format(" ({} a step)", text(growth.per_second / steps_per_second));
    if (left_bytes > 0)
        finding.evidence +=
            fmt::format("; it runs out in {}", time_text(left_bytes / growth.per_second));
    return finding;
}

double steps_per_second(const RunRecord& record) {
    if (record.steps.size() < 2) return 0;
    double span = static_cast<double>(record.steps.back().start_ns - record.steps.front().start_ns);
    return span > 0 ? static_cast<double>(record.steps.size() - 1) * 1e9 / span : 0;
}

constexpr const char* kDetach =
    "do not keep tensors of a step: losses.append(loss) keeps the graph of every step, "
    "losses.append(loss.detach()) does not";

// Returns a sentence if the script keeps at least half of its losses with their graphs, else "".
std::string kept_losses(const RunRecord& record, std::int64_t least) {
    if (!record.python.is_object()) return {};
    const Json& losses = record.python["kept_losses"];
    std::int64_t of = losses["of"].integer().value_or(0);
    std::int64_t kept = losses["with_graph"].integer().value_or(0);
    if (of < least || 2 * kept < of) return {};
    return fmt::format("after {} steps, {} losses are kept together with their graphs", of, kept);
}

// Reports kept losses if no growth of memory was seen, because the run was too short or other
// programs changed the memory in use.
void kept_without_growth(const RunRecord& record, std::vector<Finding>& out) {
    std::string kept = kept_losses(record, 100);
    if (kept.empty()) return;
    Finding finding{.id = "F34", .count = 1, .confidence = Confidence::medium};
    finding.sources = {"run record"};
    finding.evidence = kept;
    finding.fix = kDetach;
    out.push_back(finding);
}

void host_memory(const RunRecord& record, std::vector<Finding>& out) {
    std::vector<TrendPoint> points;
    double left = 0;
    int workers = 0, processes_first = 0, processes_last = 0;
    // Before the first step, the memory grows with what is imported and loaded.
    std::int64_t first = record.steps.empty() ? 0 : record.steps.front().start_ns;
    for (const HostSample& sample : record.hosts) {
        if (!sample.tree || sample.tree->ended || !sample.tree->memory_bytes) continue;
        if (sample.time_ns < first) continue;
        points.push_back({static_cast<double>(sample.time_ns) / 1e9,
                          static_cast<double>(*sample.tree->memory_bytes)});
        left = static_cast<double>(sample.memory_available_bytes.value_or(0));
        workers = std::max(workers, sample.tree->loader_workers);
        if (processes_first == 0) processes_first = sample.tree->processes;
        processes_last = sample.tree->processes;
    }
    std::optional<Growth> growth = straight_rise(points);
    if (!growth) {
        kept_without_growth(record, out);
        return;
    }
    Finding finding =
        growth_finding("the job's memory on the host", *growth, left, steps_per_second(record));
    if (processes_last > 2 * processes_first) {
        finding.evidence +=
            fmt::format("; its processes from {} to {}", processes_first, processes_last);
        finding.fix = "close what starts processes: create one DataLoader before the epochs";
    } else if (std::string kept = kept_losses(record, 20); !kept.empty()) {
        finding.evidence += "; " + kept;
        finding.fix = kDetach;
        finding.confidence = Confidence::high;
    } else if (workers > 0) {
        finding.fix =
            "Python lists in a data set are copied into each worker as they are read: use one "
            "numpy array or tensor instead; do not keep batches or losses in lists";
    }
    out.push_back(finding);
}

void device_memory(const RunRecord& record, std::vector<Finding>& out) {
    std::map<int, std::vector<TrendPoint>> points;
    std::map<int, double> left;
    for (const DeviceSample& sample : record.devices) {
        if (!sample.memory_used_bytes) continue;
        double used = static_cast<double>(*sample.memory_used_bytes);
        points[sample.gpu].push_back({static_cast<double>(sample.time_ns) / 1e9, used});
        if (sample.memory_total_bytes)
            left[sample.gpu] = static_cast<double>(*sample.memory_total_bytes) - used;
    }
    for (const auto& [gpu, series] : points) {
        std::optional<Growth> growth = straight_rise(series);
        if (!growth) continue;
        Finding finding = growth_finding(fmt::format("the memory of GPU {}", gpu), *growth,
                                         left[gpu], steps_per_second(record));
        finding.fix = kDetach;
        out.push_back(finding);
        return;
    }
}

void slower_steps(const RunRecord& record, std::vector<Finding>& out) {
    constexpr std::size_t kLeast = 60, kParts = 5;
    if (record.steps.size() < kLeast) return;
    std::vector<double> lengths;
    for (const StepRecord& step : record.steps)
        lengths.push_back(static_cast<double>(step.duration_ns));
    // Other work on the machine only makes steps longer, so the shortest few steps of each part
    // show the trend.
    double per_part = 0.8 * static_cast<double>(lengths.size()) / kParts;
    std::vector<double> shortest = parts_of(lengths, kParts, std::clamp(3 / per_part, 0.02, 0.1));
    double risen = shortest.back() - shortest.front();
    if (risen < 0.15 * shortest.front()) return;
    for (std::size_t i = 1; i < kParts; ++i) {
        double one = shortest[i] - shortest[i - 1];
        if (one < 0.05 * risen || one > 0.6 * risen) return;
    }
    std::vector<double> parts = parts_of(lengths, kParts);
    double grown = parts.back() - parts.front();
    if (grown < 0.15 * parts.front()) return;
    double mean = 0;
    for (double part : parts) mean += part / static_cast<double>(kParts);
    Finding finding{.id = "F35",
                    .count = static_cast<std::int64_t>(record.steps.size()),
                    .confidence = Confidence::medium};
    finding.sources = {"run record"};
    finding.share_percent = 100.0 * (mean - parts.front()) / mean;
    finding.ms_per_step = (mean - parts.front()) / 1e6;
    finding.evidence = fmt::format(
        "a step takes {:.1f} ms in the first fifth of the run and {:.1f} ms in the last ({:+.0f} "
        "%), over {} steps",
        parts.front() / 1e6, parts.back() / 1e6, 100.0 * grown / parts.front(),
        record.steps.size());
    double likely = mean / parts.front();
    finding.gain = {1.0, likely, parts.back() / parts.front()};
    finding.assumes = "the steps stay as fast as they were at the start";
    if (std::ranges::find(out, "F29", &Finding::id) != out.end())
        finding.evidence += "; the GPU was throttled meanwhile (F29)";
    out.push_back(finding);
}

}  // namespace

void trend_findings(const RunRecord& record, std::vector<Finding>& findings) {
    host_memory(record, findings);
    device_memory(record, findings);
    slower_steps(record, findings);
}

}  // namespace saturate
