// SPDX-License-Identifier: Apache-2.0
#include "report/timeline_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "base/json.h"
#include "diagnosis/kernels.h"
#include "diagnosis/trace_build.h"

namespace saturate {
namespace {

constexpr std::size_t kDepthMost = 6;     // rows per thread
constexpr std::size_t kThreadsMost = 12;  // those with the most events
constexpr std::size_t kNameMost = 240;    // bytes

// The kinds that determine the colour of an event, in the order of `kinds` in timeline_script.js.
enum class DrawnKind { compute, communication, copy, set, op, call, range, python };

struct Drawn {
    std::int64_t start_ns;
    std::int64_t duration_ns;
    std::uint32_t name;
    DrawnKind kind;
    std::uint8_t depth;
};

struct DrawnLane {
    std::uint16_t lane = 0;
    std::vector<Drawn> events;
    std::vector<std::int64_t> open;  // ends of the open events
};

const Step& median_step(const Timeline& line) {
    std::vector<const Step*> steps;
    for (const Step& step : line.steps) steps.push_back(&step);
    auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
    std::ranges::nth_element(steps, middle, {}, [](const Step* step) { return step->length_ns(); });
    return **middle;
}

std::optional<DrawnKind> kind_of(const Trace& trace, const Event& event, KernelClasses& classes) {
    switch (event.category) {
        case Category::kernel:
            return classes.of(event) == KernelClass::communication ? DrawnKind::communication
                                                                   : DrawnKind::compute;
        case Category::memcpy:
            return DrawnKind::copy;
        case Category::memset:
            return DrawnKind::set;
        case Category::op:
            return DrawnKind::op;
        case Category::runtime:
            return DrawnKind::call;
        case Category::annotation:
            return DrawnKind::range;
        case Category::python:  // frames of libraries would hide the rest
            return is_user_frame(trace.name(event)) ? std::optional(DrawnKind::python)
                                                    : std::nullopt;
        default:
            return std::nullopt;
    }
}

// Collects the events by lane, each on the row below the events that are open when it starts.
std::vector<DrawnLane> collect(const Trace& trace, const Step& step, StepData& out) {
    std::vector<DrawnLane> lanes(trace.lanes.size());
    KernelClasses classes(trace);
    for (const Event& event : trace.events) {
        if (event.start_ns >= step.end_ns) break;
        if (event.end_ns() <= step.start_ns) continue;
        std::optional<DrawnKind> kind = kind_of(trace, event, classes);
        if (!kind) continue;
        DrawnLane& lane = lanes[event.lane];
        while (!lane.open.empty() && lane.open.back() <= event.start_ns) lane.open.pop_back();
        std::size_t depth = lane.open.size();
        if (depth >= kDepthMost) {
            ++out.left_out;
            continue;
        }
        lane.open.push_back(event.end_ns());
        lane.events.push_back({event.start_ns - step.start_ns, event.duration_ns, event.name, *kind,
                               static_cast<std::uint8_t>(depth)});
    }
    for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i].lane = static_cast<std::uint16_t>(i);
    std::erase_if(lanes, [](const DrawnLane& lane) { return lane.events.empty(); });
    return lanes;
}

// Sorts the lanes: first the streams of the analysed GPU, then other streams, then the launching
// threads, then the rest.
void order(const Timeline& line, std::vector<DrawnLane>& lanes, StepData& out) {
    auto rank = [&](const DrawnLane& drawn) {
        const Lane& lane = line.trace->lanes[drawn.lane];
        if (lane.gpu) return lane.device == line.device ? 0 : 1;
        return std::ranges::count(line.host_lanes, drawn.lane) > 0 ? 2 : 3;
    };
    std::ranges::stable_sort(lanes, [&](const DrawnLane& a, const DrawnLane& b) {
        int first = rank(a), second = rank(b);
        return first != second ? first < second : a.events.size() > b.events.size();
    });
    std::size_t threads = 0, total = 0;
    std::erase_if(lanes, [&](const DrawnLane& lane) {
        bool too_many = !line.trace->lanes[lane.lane].gpu && ++threads > kThreadsMost;
        if (too_many) out.left_out += lane.events.size();
        return too_many;
    });
    for (DrawnLane& lane : lanes) {
        std::size_t room = kDrawnEventsMost - std::min(kDrawnEventsMost, total);
        if (lane.events.size() > room) {
            out.left_out += lane.events.size() - room;
            lane.events.resize(room);
        }
        total += lane.events.size();
    }
    out.events = total;
}

std::string label_of(const Lane& lane) {
    if (lane.gpu && lane.stream >= 0)
        return fmt::format("GPU {} stream {}", lane.device, lane.stream);
    if (!lane.name.empty()) return lane.name;
    return fmt::format("{} {}", lane.gpu ? "GPU" : "thread", lane.thread);
}

// Appends a JSON string without "<", so that no name can end the script element.
void append_text(std::string& out, std::string_view text) {
    std::string quoted;
    append_json_string(quoted, text);
    for (char c : quoted) {
        if (c == '<')
            out += "\\u003c";
        else
            out += c;
    }
}

// Appends ,"key":[1,2,3] with the result of `value` for each item.
template <typename Items, typename Value>
void append_column(std::string& out, std::string_view key, const Items& items, Value value) {
    fmt::format_to(std::back_inserter(out), ",\"{}\":[", key);
    bool is_first = true;
    for (const auto& item : items) {
        if (!is_first) out += ',';
        is_first = false;
        fmt::format_to(std::back_inserter(out), "{}", value(item));
    }
    out += ']';
}

void append_lane(std::string& out, const Lane& lane, const std::vector<Drawn>& events,
                 const std::unordered_map<std::uint32_t, std::size_t>& ids, Language language) {
    out += "{\"label\":";
    append_text(out, translated(label_of(lane), language));
    out += lane.gpu ? ",\"gpu\":true" : ",\"gpu\":false";
    std::int64_t last = 0;
    append_column(out, "start", events, [&](const Drawn& event) {
        return event.start_ns - std::exchange(last, event.start_ns);
    });
    append_column(out, "length", events, [](const Drawn& event) { return event.duration_ns; });
    append_column(out, "name", events, [&](const Drawn& event) { return ids.at(event.name); });
    out += ",\"kind\":\"";  // one digit each
    for (const Drawn& event : events) out += static_cast<char>('0' + static_cast<int>(event.kind));
    out += "\",\"depth\":\"";
    for (const Drawn& event : events) out += static_cast<char>('0' + event.depth);
    out += "\"}";
}

void append_gaps(std::string& out, const Timeline& line, const Step& step, Language language) {
    std::vector<const Gap*> gaps;
    for (const Gap& gap : line.gaps) {
        if (gap.end_ns > step.start_ns && gap.start_ns < step.end_ns) gaps.push_back(&gap);
    }
    out += "\"gaps\":{\"causes\":[";
    for (std::size_t i = 0; i < kCauses; ++i) {
        if (i > 0) out += ',';
        append_text(out, translated(cause_text(static_cast<Cause>(i)), language));
    }
    out += ']';
    auto start = [&](const Gap* gap) { return std::max(gap->start_ns, step.start_ns); };
    append_column(out, "start", gaps, [&](const Gap* gap) { return start(gap) - step.start_ns; });
    append_column(out, "length", gaps,
                  [&](const Gap* gap) { return std::min(gap->end_ns, step.end_ns) - start(gap); });
    append_column(out, "cause", gaps,
                  [](const Gap* gap) { return static_cast<int>(gap->main_cause()); });
    // Pairs of cause and nanoseconds.
    append_column(out, "parts", gaps, [](const Gap* gap) {
        std::string parts = "[";
        for (std::size_t i = 0; i < kCauses; ++i) {
            if (gap->causes[i] > 0)
                parts += fmt::format("{}{},{}", parts.size() > 1 ? "," : "", i, gap->causes[i]);
        }
        return parts + "]";
    });
    out += '}';
}

// Appends the texts of the script, translated, by their English text.
void append_words(std::string& out, Language language) {
    out += "\"words\":{";
    std::string_view comma;
    for (const char* english :
         {"kernel", "communication", "memory copy", "memory set", "operator", "runtime call",
          "marked range", "GPU idle, by cause", "GPU idle", "starts at"}) {
        out += std::exchange(comma, ",");
        append_text(out, english);
        out += ':';
        append_text(out, translated(english, language));
    }
    out += '}';
}

}  // namespace

StepData typical_step(const Timeline& timeline, Language language) {
    StepData out;
    if (!timeline.trace || timeline.steps.empty()) return out;
    const Trace& trace = *timeline.trace;
    const Step& step = median_step(timeline);
    out.name = step.name;
    std::vector<DrawnLane> lanes = collect(trace, step, out);
    order(timeline, lanes, out);
    std::unordered_map<std::uint32_t, std::size_t> ids;
    std::string names, columns;
    for (const DrawnLane& lane : lanes) {
        for (const Drawn& event : lane.events) {
            if (!ids.try_emplace(event.name, ids.size()).second) continue;
            if (!names.empty()) names += ',';
            append_text(names, trace.names.text(event.name).substr(0, kNameMost));
        }
        if (!columns.empty()) columns += ",\n";
        append_lane(columns, trace.lanes[lane.lane], lane.events, ids, language);
    }
    out.json = fmt::format("{{\"length\":{},\"step\":", step.length_ns());
    append_text(out.json, step.name);
    out.json += ",\n\"names\":[" + names + "],\n\"lanes\":[" + columns + "],\n";
    append_gaps(out.json, timeline, step, language);
    if (language != Language::english) {
        out.json += ",\n";
        append_words(out.json, language);
    }
    out.json += '}';
    return out;
}

}  // namespace saturate
