// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/trace.h"

#include <algorithm>
#include <deque>
#include <unordered_map>

namespace saturate {
namespace {

// True for control characters of ASCII and for U+0080 to U+009F, which a terminal may take as the
// start of an escape sequence.
bool has_control(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        auto c = static_cast<unsigned char>(text[i]);
        if (c < 0x20 || c == 0x7f) return true;
        if (c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0)
            return true;
    }
    return false;
}

std::string without_control(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        auto c = static_cast<unsigned char>(text[i]);
        bool is_pair =
            c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
        out += c < 0x20 || c == 0x7f || is_pair ? '?' : text[i];
        i += is_pair;
    }
    return out;
}

}  // namespace

struct Names::Table {
    // The views point into blocks, which never move.
    std::vector<std::unique_ptr<char[]>> blocks;
    std::size_t used = 0;
    std::size_t size = 0;
    std::vector<std::string_view> texts = {std::string_view()};
    std::unordered_map<std::string_view, std::uint32_t> ids = {{std::string_view(), 0}};

    std::string_view keep(std::string_view text) {
        if (size - used < text.size()) {
            size = std::max<std::size_t>(text.size(), 64 << 10);
            blocks.push_back(std::make_unique_for_overwrite<char[]>(size));
            used = 0;
        }
        char* place = blocks.back().get() + used;
        std::copy(text.begin(), text.end(), place);
        used += text.size();
        return {place, text.size()};
    }
};

Names::Names() : table_(std::make_unique<Table>()) {}
Names::~Names() = default;
Names::Names(Names&&) noexcept = default;
Names& Names::operator=(Names&&) noexcept = default;

std::uint32_t Names::add(std::string_view text) {
    auto found = table_->ids.find(text);
    if (found != table_->ids.end()) return found->second;
    if (has_control(text)) {
        std::uint32_t clean = add(without_control(text));
        table_->ids.emplace(table_->keep(text), clean);
        return clean;
    }
    auto id = static_cast<std::uint32_t>(table_->texts.size());
    std::string_view kept = table_->keep(text);
    table_->texts.push_back(kept);
    table_->ids.emplace(kept, id);
    return id;
}

std::string_view Names::text(std::uint32_t id) const { return table_->texts[id]; }
std::size_t Names::size() const { return table_->texts.size(); }

std::optional<std::uint32_t> Names::find(std::string_view text) const {
    auto found = table_->ids.find(text);
    if (found == table_->ids.end()) return std::nullopt;
    return found->second;
}

const GpuDetail* Trace::gpu_detail(const Event& event) const {
    return is_gpu(event.category) && event.detail ? &gpu_details[event.detail - 1] : nullptr;
}

const OpDetail* Trace::op_detail(const Event& event) const {
    return event.category == Category::op && event.detail ? &op_details[event.detail - 1] : nullptr;
}

const TraceDevice* Trace::device(int id) const {
    for (const TraceDevice& device : devices) {
        if (device.id == id) return &device;
    }
    return devices.size() == 1 ? &devices[0] : nullptr;
}

void finish(Trace& trace) {
    std::vector<Event>& events = trace.events;
    if (events.empty()) return;
    // A single time stamp of 0 or 2^63 would stretch the window over decades.
    std::vector<std::int64_t> starts;
    starts.reserve(events.size());
    for (const Event& event : events) starts.push_back(event.start_ns);
    auto middle = starts.begin() + static_cast<std::ptrdiff_t>(starts.size() / 2);
    std::nth_element(starts.begin(), middle, starts.end());
    constexpr std::int64_t kDay = 86'400'000'000'000;
    std::int64_t median = *middle;
    auto is_implausible = [&](const Event& event) {
        return event.start_ns < median - kDay || event.start_ns > median + kDay ||
               event.duration_ns > kDay;
    };
    trace.losses.implausible_times += std::erase_if(events, is_implausible);
    if (events.empty()) return;
    std::ranges::stable_sort(events, [](const Event& a, const Event& b) {
        return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.duration_ns > b.duration_ns;
    });
    std::int64_t origin = events.front().start_ns;
    for (Event& event : events) event.start_ns -= origin;
    for (Flow& flow : trace.flows) flow.start_ns -= origin;
    trace.origin_ns += origin;
}

}  // namespace saturate
