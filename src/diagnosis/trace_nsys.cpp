// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/trace_nsys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <unordered_map>

#include "base/compress.h"
#include "base/error.h"
#include "base/text.h"
#include "diagnosis/nsys_names.h"
#include "diagnosis/sqlite.h"
#include "diagnosis/trace_build.h"

namespace saturate {
namespace {

constexpr std::string_view kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr std::string_view kCopies = "CUPTI_ACTIVITY_KIND_MEMCPY";
constexpr std::string_view kSets = "CUPTI_ACTIVITY_KIND_MEMSET";
constexpr std::string_view kGraphs = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
constexpr std::string_view kCalls = "CUPTI_ACTIVITY_KIND_RUNTIME";
constexpr std::string_view kSyncs = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";

constexpr std::string_view kExpected = "an export of Nsight Systems with CUDA traced";
constexpr std::string_view kExport = "nsys export --type sqlite report.nsys-rep";
constexpr std::string_view kRecord =
    "nsys profile --trace=cuda,nvtx python train.py, then nsys export --type sqlite";

// One process with its trace and the lanes of its threads and streams.
struct Process {
    Trace trace;
    std::map<std::int64_t, std::uint16_t> threads;
    std::map<std::pair<std::int64_t, std::int64_t>, std::uint16_t> streams;

    std::uint16_t add_lane(Lane lane) {
        if (trace.lanes.size() >= 65'000) return 0;  // no program has so many; share one
        trace.lanes.push_back(std::move(lane));
        return static_cast<std::uint16_t>(trace.lanes.size() - 1);
    }
    std::uint16_t thread(std::int64_t id) {
        auto [place, is_new] = threads.try_emplace(id, 0);
        if (is_new) {
            Lane lane;
            lane.process = std::to_string((id >> 24) & 0xffffff);
            lane.thread = std::to_string(id & 0xffffff);
            place->second = add_lane(std::move(lane));
        }
        return place->second;
    }
    std::uint16_t stream(std::int64_t device, std::int64_t id) {
        auto [place, is_new] = streams.try_emplace({device, id}, 0);
        if (is_new) {
            Lane lane;
            lane.gpu = true;
            lane.device = static_cast<int>(device);
            lane.stream = id;
            place->second = add_lane(std::move(lane));
        }
        return place->second;
    }
    // If the profiler marked no steps, takes ranges that the user numbered as steps: the outermost
    // ones on the thread of the first.
    void mark_steps() {
        const std::vector<Event>& events = trace.events;
        if (std::ranges::any_of(events, [&](const Event& event) {
                return trace.name(event).starts_with("ProfilerStep#");
            }))
            return;
        std::vector<Event*> marks;
        for (Event& event : trace.events) {
            if (event.category == Category::annotation && step_number(trace.name(event)))
                marks.push_back(&event);
        }
        std::ranges::stable_sort(marks, {}, [](const Event* e) { return e->start_ns; });
        const Event* last = nullptr;
        for (Event* mark : marks) {
            if (last && (mark->lane != last->lane || mark->start_ns < last->end_ns())) continue;
            mark->name =
                trace.names.add(fmt::format("ProfilerStep#{}", *step_number(trace.name(*mark))));
            last = mark;
        }
    }
};

class NsysReader {
  public:
    explicit NsysReader(const SqliteFile& database) : db_(database) {}
    std::vector<Trace> read();

  private:
    void check_tables() const;
    void find_processes();
    Process* of(std::optional<std::int64_t> global);
    Event* add(Process& process, const SqliteRows& rows, Category category);
    void read_gpu(std::string_view table);
    void read_calls();
    void read_ranges();
    void read_overhead();
    void read_threads();
    void read_devices();
    [[nodiscard]] std::string_view string(std::optional<std::int64_t> id) const {
        auto found = id ? strings_.find(*id) : strings_.end();
        return found == strings_.end() ? std::string_view() : std::string_view(found->second);
    }

    const SqliteFile& db_;
    bool one_process_ = false;             // the file does not name the process of an event
    std::map<std::int64_t, Process> all_;  // by global id of the process
    std::unordered_map<std::int64_t, std::string> strings_;
};

void NsysReader::check_tables() const {
    auto lacks = [&](std::string_view table) { return !db_.has(table); };
    std::vector<std::string> names = db_.tables();
    bool is_nsys = db_.has("StringIds") || db_.has("META_DATA_EXPORT");
    if (!is_nsys) {
        std::string shown =
            join(std::span(names).first(std::min<std::size_t>(names.size(), 5)), ", ");
        db_.fail(
            names.empty()
                ? "is an SQLite file without tables"
                : fmt::format(
                      "is an SQLite file of another program: its tables are {}, StringIds is not "
                      "among them",
                      in_quotes(shown, 120)));
    }
    if (lacks("StringIds")) db_.fail("has no table StringIds, which holds the names");
    if (lacks(kKernels) && lacks(kCopies) && lacks(kSets) && lacks(kGraphs))
        db_.fail(fmt::format("contains no GPU work: it has no table {}, {} or {}", kKernels,
                             kCopies, kSets),
                 std::string(kRecord));
    for (std::string_view table :
         {kKernels, kCopies, kSets, kGraphs, kCalls, std::string_view("NVTX_EVENTS")}) {
        for (std::string_view column : {"start", "end"}) {
            if (db_.has(table) && !db_.has(table, column))
                db_.fail(fmt::format("has no column {} in table {}", column, table));
        }
    }
}

// The upper bits of a thread or process id identify the process.
std::int64_t process_part(std::int64_t global) { return global & ~std::int64_t{0xffffff}; }

void NsysReader::find_processes() {
    for (std::string_view table : {kKernels, kCopies, kSets, kGraphs}) {
        if (!db_.has(table)) continue;
        SqliteRows rows(db_, table, {"globalPid"});
        while (rows.next()) {
            std::optional<std::int64_t> global = rows.integer(0);
            if (!global) one_process_ = true;
            if (!one_process_ && all_.size() < 1024) all_[process_part(*global)];
        }
    }
    if (one_process_) all_.clear();
    if (all_.empty()) all_[0];
    one_process_ = one_process_ || all_.contains(0);
}

Process* NsysReader::of(std::optional<std::int64_t> global) {
    if (one_process_) return &all_.begin()->second;
    if (!global) return nullptr;
    auto found = all_.find(process_part(*global));
    return found == all_.end() ? nullptr : &found->second;
}

// Adds an event; columns 0 and 1 are start and end. Returns null if the times are implausible.
Event* NsysReader::add(Process& process, const SqliteRows& rows, Category category) {
    std::optional<std::int64_t> start = rows.integer(0);
    std::optional<std::int64_t> end = rows.integer(1);
    TraceLosses& losses = process.trace.losses;
    if (!start || !end) {
        ++losses.dropped_events;
        return nullptr;
    }
    constexpr std::int64_t kMost = std::int64_t{1} << 61;  // sums of two stay in range
    if (*start > kMost || *start < -kMost || *end > kMost || *end < -kMost) {
        ++losses.implausible_times;
        return nullptr;
    }
    Event event;
    event.category = category;
    event.start_ns = *start;
    event.duration_ns = std::max<std::int64_t>(*end - *start, 0);
    if (*end < *start) ++losses.negative_durations;
    process.trace.events.push_back(event);
    return &process.trace.events.back();
}

std::uint32_t small(std::optional<std::int64_t> value) {
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(value.value_or(0), 0, 0xffffffff));
}

std::uint32_t product(const SqliteRows& rows, int first) {
    std::uint64_t out = 1;
    for (int i = 0; i < 3; ++i)
        out = std::min<std::uint64_t>(out * small(rows.integer(first + i)), 0xffffffff);
    return static_cast<std::uint32_t>(out);
}

void NsysReader::read_gpu(std::string_view table) {
    if (!db_.has(table)) return;
    SqliteRows rows(db_, table,
                    {"start", "end", "deviceId", "streamId", "correlationId", "globalPid",
                     "demangledName", "shortName", "gridX", "gridY", "gridZ", "blockX", "blockY",
                     "blockZ", "bytes", "copyKind", "srcKind", "dstKind"});
    Category category = table == kCopies ? Category::memcpy
                        : table == kSets ? Category::memset
                                         : Category::kernel;
    while (rows.next()) {
        Process* process = of(rows.integer(5));
        Event* event = process ? add(*process, rows, category) : nullptr;
        if (!event) continue;
        Trace& trace = process->trace;
        event->lane = process->stream(small(rows.integer(2)) & 0xffff, rows.integer(3).value_or(0));
        event->correlation = small(rows.integer(4));
        GpuDetail detail;
        detail.bytes =
            static_cast<std::uint64_t>(std::max<std::int64_t>(rows.integer(14).value_or(0), 0));
        if (table == kCopies) {
            event->name = trace.names.add(copy_name(rows.integer(15).value_or(0),
                                                    rows.integer(16).value_or(7),
                                                    rows.integer(17).value_or(7)));
        } else if (table == kSets) {
            event->name = trace.names.add("Memset (Device)");
        } else if (table == kGraphs) {
            event->name = trace.names.add("CUDA graph");  // recorded as a whole, not node by node
        } else {
            std::string_view name = string(rows.integer(6));
            if (name.empty()) name = string(rows.integer(7));
            event->name = trace.names.add(name.empty() ? "unnamed kernel" : name);
            detail.blocks = product(rows, 8);
            detail.threads = product(rows, 11);
        }
        if (detail.bytes == 0 && detail.blocks == 0) continue;
        trace.gpu_details.push_back(detail);
        event->detail = static_cast<std::uint32_t>(trace.gpu_details.size());
    }
}

void NsysReader::read_calls() {
    if (!db_.has(kCalls)) return;
    SqliteRows rows(db_, kCalls, {"start", "end", "globalTid", "correlationId", "nameId"});
    while (rows.next()) {
        Process* process = of(rows.integer(2));
        Event* event = process ? add(*process, rows, Category::runtime) : nullptr;
        if (!event) continue;
        event->lane = process->thread(rows.integer(2).value_or(0));
        event->correlation = small(rows.integer(3));
        event->name = process->trace.names.add(without_version(string(rows.integer(4))));
    }
}

void NsysReader::read_ranges() {
    if (!db_.has("NVTX_EVENTS")) return;
    SqliteRows rows(db_, "NVTX_EVENTS", {"start", "end", "globalTid", "text", "textId"});
    while (rows.next()) {
        if (!rows.integer(1)) continue;  // a mark, or a range that never ended
        std::string_view written = rows.text(3).empty() ? string(rows.integer(4)) : rows.text(3);
        Process* process = written.empty() ? nullptr : of(rows.integer(2));
        NvtxText text = split_nvtx(written);
        Event* event = process
                           ? add(*process, rows,
                                 category_of(text.is_op ? "cpu_op" : "user_annotation", text.name))
                           : nullptr;
        if (!event) continue;
        Trace& trace = process->trace;
        event->lane = process->thread(rows.integer(2).value_or(0));
        event->name = trace.names.add(text.name);
        if (event->category != Category::op || text.dims.empty()) continue;
        trace.op_details.push_back({trace.names.add(text.dims), 0, 0});
        event->detail = static_cast<std::uint32_t>(trace.op_details.size());
        trace.has_shapes = true;
    }
}

// Reads the synchronisations that the GPU recorded, and the overhead of the profiler.
void NsysReader::read_overhead() {
    if (db_.has(kSyncs)) {
        SqliteRows rows(db_, kSyncs,
                        {"start", "end", "deviceId", "streamId", "globalPid", "syncType"});
        constexpr std::array<std::string_view, 5> kNames = {
            "Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync"};
        while (rows.next()) {
            Process* process = of(rows.integer(4));
            Event* event = process ? add(*process, rows, Category::sync) : nullptr;
            if (!event) continue;
            event->lane =
                process->stream(small(rows.integer(2)) & 0xffff, rows.integer(3).value_or(0));
            std::uint32_t type = small(rows.integer(5));
            event->name = process->trace.names.add(kNames[type < kNames.size() ? type : 0]);
        }
    }
    if (!db_.has("PROFILER_OVERHEAD")) return;
    SqliteRows rows(db_, "PROFILER_OVERHEAD", {"start", "end", "globalTid", "nameId"});
    while (rows.next()) {
        Process* process = of(rows.integer(2));
        Event* event = process ? add(*process, rows, Category::overhead) : nullptr;
        if (!event) continue;
        event->lane = process->thread(rows.integer(2).value_or(0));
        event->name = process->trace.names.add(string(rows.integer(3)));
    }
}

void NsysReader::read_threads() {
    if (!db_.has("ThreadNames")) return;
    SqliteRows rows(db_, "ThreadNames", {"globalTid", "nameId"});
    while (rows.next()) {
        std::optional<std::int64_t> id = rows.integer(0);
        Process* process = id ? of(*id) : nullptr;
        if (!process) continue;
        auto found = process->threads.find(*id);
        if (found == process->threads.end()) continue;
        Lane& lane = process->trace.lanes[found->second];
        lane.name = fmt::format("thread {} ({})", lane.thread, string(rows.integer(1)));
    }
}

void NsysReader::read_devices() {
    if (!db_.has("TARGET_INFO_GPU")) return;
    SqliteRows rows(
        db_, "TARGET_INFO_GPU",
        {"id", "cuDevice", "name", "totalMemory", "smCount", "computeMajor", "computeMinor"});
    while (rows.next()) {
        TraceDevice device;
        device.id =
            static_cast<int>(small(rows.integer(1) ? rows.integer(1) : rows.integer(0)) & 0xffff);
        device.name = rows.text(2);
        device.memory_bytes =
            static_cast<std::uint64_t>(std::max<std::int64_t>(rows.integer(3).value_or(0), 0));
        device.sm_count = static_cast<int>(small(rows.integer(4)) & 0xffff);
        if (rows.integer(5))
            device.capability = Capability{static_cast<int>(small(rows.integer(5)) & 0xff),
                                           static_cast<int>(small(rows.integer(6)) & 0xff)};
        for (auto& [id, process] : all_) process.trace.devices.push_back(device);
    }
}

std::vector<Trace> NsysReader::read() {
    check_tables();
    SqliteRows strings(db_, "StringIds", {"id", "value"});
    while (strings.next()) {
        if (auto id = strings.integer(0)) strings_.try_emplace(*id, strings.text(1));
    }
    find_processes();
    for (std::string_view table : {kKernels, kCopies, kSets, kGraphs}) read_gpu(table);
    read_calls();
    read_ranges();
    read_overhead();
    read_threads();
    read_devices();
    std::vector<Trace> traces;
    for (auto& [id, process] : all_) {
        Trace& trace = process.trace;
        trace.file = db_.file();
        trace.kind = TraceKind::nsys;
        trace.json_bytes = db_.bytes();
        process.mark_steps();
        finish(trace);
        if (!trace.events.empty()) traces.push_back(std::move(trace));
    }
    if (traces.empty()) db_.fail("contains no events", std::string(kRecord));
    // GPU tables are read first, so lane 0 is the first stream of the process and has its device.
    std::ranges::stable_sort(traces, {}, [](const Trace& t) { return t.lanes[0].device; });
    for (std::size_t i = 0; traces.size() > 1 && i < traces.size(); ++i) {
        traces[i].rank = static_cast<int>(i);
        traces[i].world_size = static_cast<int>(traces.size());
        traces[i].file = fmt::format("{} (rank {})", db_.file(), i);
    }
    return traces;
}

}  // namespace

std::vector<Trace> parse_nsys(std::string bytes, const std::string& file) {
    SqliteFile database(std::move(bytes), file, {std::string(kExpected), std::string(kExport)});
    return NsysReader(database).read();
}

std::vector<Trace> read_nsys(const std::filesystem::path& path, const TraceOptions& options) {
    std::string first(kSqliteStart.size(), '\0');
    std::ifstream(path, std::ios::binary)
        .read(first.data(), static_cast<std::streamsize>(first.size()));
    if (first == kSqliteStart) {  // read it directly from disk
        SqliteFile database(path, {std::string(kExpected), std::string(kExport)});
        return NsysReader(database).read();
    }
    std::unique_ptr<ByteStream> stream = open_stream(path, options.limit_bytes, "--limit");
    constexpr std::size_t kPiece = 1 << 20;
    std::string bytes;
    for (std::size_t got = 1; got > 0;) {
        std::size_t size = bytes.size();
        bytes.resize(size + kPiece);
        got = stream->read(bytes.data() + size, kPiece);
        bytes.resize(size + got);
    }
    return parse_nsys(std::move(bytes), path.string());
}

}  // namespace saturate
