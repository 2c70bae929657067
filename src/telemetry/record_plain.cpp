// SPDX-License-Identifier: Apache-2.0
// Reads lines exactly as we write them, without a JSON parser.
#include <charconv>
#include <iterator>
#include <utility>

#include "telemetry/record_fields.h"
#include "telemetry/record_json.h"

namespace saturate {

namespace {

// Reads objects, lists and numbers without spaces between them. The functions return false for
// anything else; the caller then uses the JSON parser.
class PlainText {
  public:
    explicit PlainText(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

    [[nodiscard]] bool is_at_end() const { return at_ == end_; }
    bool take(std::string_view text) {
        if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(text))
            return false;
        at_ += text.size();
        return true;
    }
    // Reading an integer from a real number stops at the point, and the next take() fails.
    template <typename Number>
    bool number(Number& value) {
        // from_chars also knows "inf" and "nan".
        const char* digit = at_ != end_ && *at_ == '-' ? at_ + 1 : at_;
        if (digit == end_ || *digit < '0' || *digit > '9') return false;
        auto [next, error] = std::from_chars(at_, end_, value);
        at_ = next;
        return error == std::errc();
    }
    template <typename Number>
    bool number(std::optional<Number>& value) {
        return number(value.emplace());
    }
    // Calls `member` with the name of each member, which then reads the value.
    template <typename Member>
    bool object(Member member) {
        if (!take("{")) return false;
        do {
            if (!take("\"")) return false;
            const char* begin = at_;
            while (at_ != end_ && *at_ != '"' && *at_ != '\\') ++at_;
            std::string_view name(begin, static_cast<std::size_t>(at_ - begin));
            if (!take("\":") || !member(name)) return false;
        } while (take(","));
        return take("}");
    }
    template <typename Item>
    bool list(Item item) {
        if (!take("[")) return false;
        do {
            if (!item()) return false;
        } while (take(","));
        return take("]");
    }

  private:
    const char* at_;
    const char* end_;
};

// Finds members by name. They come in the order of the table, so the search continues where it last
// ended.
template <typename Table>
class InOrder {
  public:
    explicit InOrder(const Table& table) : table_(table) {}
    auto find(std::string_view name) -> decltype(std::data(std::declval<const Table&>())) {
        for (std::size_t tries = 0; tries < std::size(table_); ++tries) {
            const auto* field = &table_[next_];
            next_ = next_ + 1 == std::size(table_) ? 0 : next_ + 1;
            if (field->name == name) return field;
        }
        return nullptr;
    }

  private:
    const Table& table_;
    std::size_t next_ = 0;
};

}  // namespace

std::optional<StepRecord> plain_step(std::string_view line, std::int64_t origin_ns) {
    StepRecord record;
    bool has_step = false, has_start = false, has_duration = false;
    PlainText text(line);
    InOrder fields(kStepFields);
    bool is_plain = text.object([&](std::string_view name) {
        if (name == "step") return has_step = text.number(record.step);
        if (name == "t_ns") return has_start = text.number(record.start_ns);
        if (name == "duration_ns") return has_duration = text.number(record.duration_ns);
        if (name == "loss") return text.number(record.loss);
        if (const auto* field = fields.find(name)) return text.number(record.*field->member);
        std::int64_t unknown = 0;
        return text.number(unknown);
    });
    if (!is_plain || !text.is_at_end() || !has_step || !has_start || !has_duration)
        return std::nullopt;
    record.start_ns += origin_ns;
    return record;
}

std::optional<DeviceSample> plain_device(std::string_view line, std::int64_t origin_ns) {
    DeviceSample sample;
    bool is_gpu = false, has_gpu = false, has_time = false;
    PlainText text(line);
    std::span<const DeviceField> table = device_fields();
    InOrder fields(table);
    bool is_plain = text.object([&](std::string_view name) {
        if (name == "type") return is_gpu = text.take("\"gpu\"");
        if (name == "gpu") return has_gpu = text.number(sample.gpu);
        if (name == "t_ns") return has_time = text.number(sample.time_ns);
        if (name == "took_ns") return text.number(sample.took_ns);
        if (name == "performance_state") return text.number(sample.performance_state);
        if (name == "throttle") {
            InOrder times(kThrottleFields);
            return text.object([&](std::string_view reason) {
                const auto* field = times.find(reason);
                return field && text.number(sample.throttle.*field->member);
            });
        }
        if (name == "utilization_ring") {
            return text.list([&] {
                DriverSample& entry = sample.utilization_ring.emplace_back();
                return text.take("[") && text.number(entry.wall_us) && text.take(",") &&
                       text.number(entry.percent) && text.take("]");
            });
        }
        const DeviceField* field = fields.find(name);
        if (!field) return false;
        return field->real ? text.number(sample.*field->real) : text.number(sample.*field->count);
    });
    if (!is_plain || !text.is_at_end() || !is_gpu || !has_gpu || !has_time) return std::nullopt;
    sample.time_ns += origin_ns;
    return sample;
}

}  // namespace saturate
