// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/trace_read.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <iterator>
#include <thread>

#include "base/compress.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "diagnosis/sqlite.h"
#include "diagnosis/trace_bytes.h"
#include "diagnosis/trace_json.h"
#include "diagnosis/trace_nsys.h"
#include "diagnosis/trace_repair.h"

namespace saturate {
namespace {

constexpr std::size_t kLongestEvent = 64 << 20;  // a longer one is dropped
constexpr std::size_t kLongestValue = 16 << 20;  // of a key other than the events

constexpr std::string_view kHow = "saturate diagnose --how prints how to record one";

class TraceReader {
  public:
    TraceReader(ByteStream& stream, std::string file)
        : stream_(stream), window_(stream), builder_(trace_) {
        trace_.file = std::move(file);
    }

    Trace read() {
        window_.want(kChunk);
        if (window_.view().starts_with("\xef\xbb\xbf")) window_.drop(3);  // a byte order mark
        std::optional<char> first = window_.peek();
        if (!first) fail("is empty");
        if (*first == '[') {
            read_events();
        } else if (*first == '{') {
            window_.drop(1);
            read_object();
        } else {
            std::string_view kind = foreign_kind(window_.view().substr(0, 4096));
            fail(kind.empty() ? fmt::format("is not JSON: it starts with {}",
                                            in_quotes(window_.view().substr(0, 16)))
                              : fmt::format("is {}, not a profiler trace", kind));
        }
        if (stream_.torn()) trace_.losses.truncated = true;
        trace_.json_bytes = window_.total();
        builder_.finish();
        check_kind();
        finish(trace_);
        return std::move(trace_);
    }

  private:
    [[noreturn]] void fail(std::string found) const {
        throw UserError({.where = {trace_.file},
                         .found = std::move(found),
                         .expected = "a trace of the PyTorch profiler",
                         .fix = std::string(kHow)});
    }

    void read_object();
    std::optional<std::string> read_key();
    std::optional<std::string> read_value();
    void read_events();
    bool read_slowly(std::string_view text);
    void read_one(std::string_view text);
    bool parse_copy(std::string_view text);
    void use(const std::string& key, const std::string& value);
    void check_kind();

    ByteStream& stream_;
    Trace trace_;
    TraceBytes window_;
    TraceBuilder builder_;
    EventParser parser_;
    std::string scratch_;
    std::vector<std::string> keys_;
    bool has_events_ = false;
};

// Continues after "{": reads the keys before traceEvents, the events, and the keys after them.
void TraceReader::read_object() {
    for (;;) {
        std::optional<char> next = window_.peek();
        if (next == ',') {
            window_.drop(1);
            continue;
        }
        if (next == '}') return;
        std::optional<std::string> key = next == '"' ? read_key() : std::nullopt;
        if (key) next = window_.peek();
        if (!key || next != ':') {
            trace_.losses.truncated = true;
            return;
        }
        window_.drop(1);
        next = window_.peek();
        if (*key == "traceEvents" && next == '[') {
            read_events();
            if (trace_.losses.truncated) return;
            continue;
        }
        keys_.push_back(*key);
        std::optional<std::string> value = read_value();
        if (!value) {
            trace_.losses.truncated = true;
            return;
        }
        use(*key, *value);
    }
}

std::optional<std::string> TraceReader::read_key() {
    window_.want(4096);
    std::string_view text = window_.view();
    std::size_t end = text.find('"', 1);
    if (end == std::string_view::npos || end > 4000) return std::nullopt;
    std::string key(text.substr(1, end - 1));
    window_.drop(end + 1);
    return key;
}

// Reads a value other than the events. Returns its text, or "" if it is too large to matter and was
// skipped.
std::optional<std::string> TraceReader::read_value() {
    std::optional<char> first = window_.peek();
    if (!first) return std::nullopt;
    for (std::size_t size = kChunk;; size *= 2) {
        window_.want(size);
        std::string_view text = window_.view();
        std::optional<std::size_t> end;
        if (*first == '{' || *first == '[') {
            end = value_end(text, 0);
        } else if (*first == '"') {
            std::size_t at = 1;
            while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
            if (at < text.size()) end = at + 1;
        } else {
            std::size_t at = text.find_first_of(",}] \n\r\t");
            if (at != std::string_view::npos) end = at;
        }
        if (end) {
            std::string value(text.substr(0, *end <= kLongestValue ? *end : 0));
            window_.drop(*end);
            return value;
        }
        if (window_.ended() || size > kLongestEvent * 4) return std::nullopt;
    }
}

// Starts at "[" and reads chunks of whole events. Overwrites the commas around a chunk to pass it
// to the parser as an array; if the parser rejects it, reads it event by event.
void TraceReader::read_events() {
    has_events_ = true;
    for (;;) {
        std::size_t size = 2 * kChunk;
        window_.want(size);
        std::optional<std::size_t> cut = last_boundary(window_.view());
        while (!cut && !window_.ended() && size < kLongestEvent) {
            size *= 2;
            window_.want(size);
            cut = last_boundary(window_.view());
        }
        if (!cut && !window_.ended()) {
            // One event exceeds the limit, or the text does not look like events: skip to the next.
            ++trace_.losses.dropped_events;
            window_.drop(window_.view().size() - 4096);
            while (!cut && window_.want(2 * kChunk)) {
                cut = next_boundary(window_.view(), 1);
                if (!cut && !window_.ended()) window_.drop(window_.view().size() - 4096);
            }
            if (!cut) {
                trace_.losses.truncated = true;
                return;
            }
            window_.drop(*cut);
            continue;
        }
        if (!cut) break;  // the last event, the end of the array and the text after it
        char* text = window_.data();
        text[0] = '[';
        text[*cut] = ']';
        TraceBuilder::Mark mark = builder_.mark();
        if (!parser_.parse(text, *cut + 1, builder_)) {
            builder_.rewind(mark);
            if (read_slowly({text, *cut})) return;
        }
        window_.drop(*cut);
    }
    std::string_view rest = window_.view();
    if (!read_slowly(rest)) trace_.losses.truncated = true;
}

// Reads events one by one, starting at "[" or ",". Returns true if the array ends within `text`;
// the window then starts after it.
bool TraceReader::read_slowly(std::string_view text) {
    std::size_t at = 1;
    for (;;) {
        while (at < text.size() && (text[at] == ',' || std::strchr(" \n\r\t", text[at]))) ++at;
        if (at >= text.size()) return false;
        if (text[at] == ']') {
            window_.drop(at + 1);
            return true;
        }
        if (text[at] != '{') {
            std::optional<std::size_t> next = next_boundary(text, at);
            ++trace_.losses.dropped_events;
            if (!next) return false;
            at = *next;
            continue;
        }
        std::optional<std::size_t> end = value_end(text, at);
        TraceBuilder::Mark mark = builder_.mark();
        if (end && parse_copy(text.substr(at, *end - at))) {
            at = *end;
            continue;
        }
        builder_.rewind(mark);
        std::optional<std::size_t> next = next_boundary(text, at + 1);
        std::size_t stop = next ? *next : text.size();
        if (!next && end) stop = *end;
        if (!next && !end && !window_.ended()) return false;
        read_one(text.substr(at, stop - at));
        at = stop;
    }
}

// Repairs and reads an event that does not parse, or drops and counts it.
void TraceReader::read_one(std::string_view text) {
    TraceBuilder::Mark mark = builder_.mark();
    std::string repaired = repair_event(text);
    std::size_t end = value_end(repaired, 0).value_or(0);
    if (end > 0 && parse_copy(std::string_view(repaired).substr(0, end))) {
        ++trace_.losses.repaired_events;
        return;
    }
    builder_.rewind(mark);
    ++trace_.losses.dropped_events;
}

bool TraceReader::parse_copy(std::string_view text) {
    scratch_.assign("[").append(text).append("]");
    std::size_t length = scratch_.size();
    scratch_.append(EventParser::kPadding, ' ');
    return parser_.parse(scratch_.data(), length, builder_);
}

void TraceReader::use(const std::string& key, const std::string& value) {
    if (value.empty()) return;
    if (key != "deviceProperties" && key != "distributedInfo") return;
    Json json;
    try {
        json = Json::parse(value, trace_.file);
    } catch (const UserError&) {
        return;  // these facts are helpful but not needed
    }
    if (key == "distributedInfo") {
        if (auto rank = json["rank"].integer()) trace_.rank = static_cast<int>(*rank);
        if (auto size = json["world_size"].integer()) trace_.world_size = static_cast<int>(*size);
        trace_.backend = json["backend"].string().value_or("");
        return;
    }
    for (const Json& item : json.items()) {
        TraceDevice device;
        device.id = static_cast<int>(item["id"].integer().value_or(0));
        device.name = trace_.names.text(trace_.names.add(item["name"].string().value_or("")));
        device.memory_bytes = static_cast<std::uint64_t>(
            std::max<std::int64_t>(0, item["totalGlobalMem"].integer().value_or(0)));
        if (auto major = item["computeMajor"].integer()) {
            device.capability =
                Capability{static_cast<int>(*major),
                           static_cast<int>(item["computeMinor"].integer().value_or(0))};
        }
        device.sm_count = static_cast<int>(item["numSms"].integer().value_or(0));
        trace_.devices.push_back(std::move(device));
    }
}

// Rejects files that are not traces of the PyTorch profiler, such as those without any known event.
void TraceReader::check_kind() {
    bool has_known = std::ranges::any_of(
        trace_.events, [](const Event& event) { return event.category != Category::other; });
    if (has_known) {
        trace_.kind = TraceKind::pytorch;
        return;
    }
    if (!has_events_) {
        auto has = [&](std::string_view key) { return std::ranges::count(keys_, key) > 0; };
        if (has("nodes") && has("schema"))
            fail("is a PyTorch execution trace (a graph without times)");
        if (has("segments") && has("device_traces")) fail("is a PyTorch memory snapshot");
        fail(trace_.losses.truncated ? "ends before any event"
                                     : "is JSON, but has no \"traceEvents\"");
    }
    if (trace_.events.empty()) {
        fail(trace_.losses.lost() > 0
                 ? fmt::format("contains no readable event ({} were dropped)", trace_.losses.lost())
                 : "contains no events");
    }
    fail(trace_.kind == TraceKind::tensorflow
             ? "is an XPlane trace of TensorFlow or JAX"
             : "contains no event of the PyTorch profiler (no known category)");
}

}  // namespace

std::string_view foreign_kind(std::string_view first_bytes) {
    auto has = [&](std::string_view text) {
        return first_bytes.find(text) != std::string_view::npos;
    };
    if (has("brain.Event:")) return "a TensorBoard event file";
    if (first_bytes.starts_with("SQLite format 3")) return "an SQLite file";
    if (has("/host:CPU") || has("/device:GPU") || has("/device:TPU")) return "an XPlane file";
    if (first_bytes.starts_with("PK\x03\x04")) return "a zip archive";
    if (first_bytes.starts_with("\x80\x02") || first_bytes.starts_with("\x80\x04"))
        return "a Python pickle";
    if (first_bytes.starts_with("<")) return "HTML or XML";
    return {};
}

namespace {

// Reads a file of either kind; each process in a file of Nsight Systems becomes a trace.
std::vector<Trace> read_any(const std::filesystem::path& path, const TraceOptions& options) {
    std::string first(kSqliteStart.size(), '\0');
    std::size_t got =
        open_stream(path, options.limit_bytes, "--limit")->read(first.data(), first.size());
    if (got == first.size() && first == kSqliteStart) return read_nsys(path, options);
    std::vector<Trace> traces;
    traces.push_back(read_trace(path, options));
    return traces;
}

}  // namespace

Trace read_trace(const std::filesystem::path& path, const TraceOptions& options) {
    std::unique_ptr<ByteStream> stream = open_stream(path, options.limit_bytes, "--limit");
    return TraceReader(*stream, path.string()).read();
}

Trace parse_trace(std::string_view bytes, const std::string& file, const TraceOptions& options) {
    std::unique_ptr<ByteStream> stream = open_stream_of(bytes, options.limit_bytes, "--limit");
    return TraceReader(*stream, file).read();
}

std::vector<Trace> read_traces(const std::vector<std::filesystem::path>& paths,
                               const TraceOptions& options) {
    std::vector<std::vector<Trace>> files(paths.size());
    std::vector<std::exception_ptr> errors(paths.size());
    std::atomic<std::size_t> next = 0;
    auto work = [&] {
        for (std::size_t i = next++; i < paths.size(); i = next++) {
            try {
                files[i] = read_any(paths[i], options);
            } catch (...) {
                errors[i] = std::current_exception();
            }
        }
    };
    {
        std::size_t count =
            std::min<std::size_t>(paths.size(), std::thread::hardware_concurrency());
        std::vector<std::jthread> threads;
        for (std::size_t i = 1; i < count; ++i) threads.emplace_back(work);
        work();
    }
    for (const std::exception_ptr& error : errors) {
        if (error) std::rethrow_exception(error);
    }
    std::vector<Trace> traces;
    for (std::vector<Trace>& file : files) std::ranges::move(file, std::back_inserter(traces));
    std::ranges::stable_sort(traces, {},
                             [](const Trace& trace) { return trace.rank.value_or(1 << 30); });
    return traces;
}

}  // namespace saturate
