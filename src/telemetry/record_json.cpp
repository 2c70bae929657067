// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record_json.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "telemetry/record_fields.h"

namespace saturate {

namespace {

// Appends the members of one object; leaves out absent values.
class ObjectText {
  public:
    explicit ObjectText(std::string& out) : out_(out) { out_ += '{'; }
    void close() { out_ += '}'; }

    std::string& key(std::string_view name) {
        if (!first_) out_ += ',';
        first_ = false;
        out_ += '"';
        out_ += name;
        out_ += "\":";
        return out_;
    }
    void put(std::string_view name, std::int64_t value) {
        fmt::format_to(std::back_inserter(key(name)), "{}", value);
    }
    void put(std::string_view name, double value) {
        if (std::isfinite(value)) {
            fmt::format_to(std::back_inserter(key(name)), "{}", value);
        } else {
            key(name) += "null";
        }
    }
    void put(std::string_view name, std::string_view text) { append_json_string(key(name), text); }
    void put(std::string_view name, std::uint64_t value) {
        fmt::format_to(std::back_inserter(key(name)), "{}", value);
    }
    template <typename T>
    void put(std::string_view name, const std::optional<T>& value) {
        if (value)
            put(name,
                static_cast<std::conditional_t<std::is_same_v<T, int>, std::int64_t, T>>(*value));
    }
    void put(std::string_view name, const std::optional<std::string>& value) {
        if (value) put(name, std::string_view(*value));
    }

  private:
    std::string& out_;
    bool first_ = true;
};

template <typename Record, typename Value>
using Field = RecordField<Record, Value>;

template <typename Record, typename Value, std::size_t N>
void put_all(ObjectText& object, const Record& record, const Field<Record, Value> (&fields)[N]) {
    for (const auto& field : fields) object.put(field.name, record.*field.member);
}

void take(const Json& json, std::optional<double>& value) { value = json.number(); }
void take(const Json& json, std::optional<std::int64_t>& value) { value = json.integer(); }
void take(const Json& json, std::optional<std::string>& value) { value = json.string(); }
void take(const Json& json, std::optional<int>& value) {
    if (auto whole = json.integer()) value = static_cast<int>(*whole);
}
void take(const Json& json, std::optional<std::uint64_t>& value) {
    if (auto whole = json.integer()) {
        if (*whole >= 0) value = static_cast<std::uint64_t>(*whole);
    } else if (auto real = json.number(); real && *real >= 0 && *real < 1.8446744073709552e19) {
        value = static_cast<std::uint64_t>(*real);  // from 2^63 on the parser gives a real number
    }
}

template <typename Record, typename Value, std::size_t N>
void take_all(const Json& line, Record& record, const Field<Record, Value> (&fields)[N]) {
    for (const auto& field : fields) take(line[field.name], record.*field.member);
}

constexpr DeviceField kDeviceFields[] = {
    {"utilization_percent", &DeviceSample::utilization_percent},
    {"memory_utilization_percent", &DeviceSample::memory_utilization_percent},
    {"sm_active_percent", &DeviceSample::sm_active_percent},
    {"sm_occupancy_percent", &DeviceSample::sm_occupancy_percent},
    {"tensor_active_percent", &DeviceSample::tensor_active_percent},
    {"dram_active_percent", &DeviceSample::dram_active_percent},
    {"memory_total_bytes", nullptr, &DeviceSample::memory_total_bytes},
    {"memory_used_bytes", nullptr, &DeviceSample::memory_used_bytes},
    {"memory_reserved_bytes", nullptr, &DeviceSample::memory_reserved_bytes},
    {"power_watts", &DeviceSample::power_watts},
    {"power_instant_watts", &DeviceSample::power_instant_watts},
    {"power_limit_watts", &DeviceSample::power_limit_watts},
    {"energy_joules", &DeviceSample::energy_joules},
    {"temperature_celsius", &DeviceSample::temperature_celsius},
    {"memory_temperature_celsius", &DeviceSample::memory_temperature_celsius},
    {"clock_sm_mhz", &DeviceSample::clock_sm_mhz},
    {"clock_sm_max_mhz", &DeviceSample::clock_sm_max_mhz},
    {"clock_memory_mhz", &DeviceSample::clock_memory_mhz},
    {"throttle_reasons", nullptr, &DeviceSample::throttle_reasons},
    {"pcie_tx_bytes", nullptr, &DeviceSample::pcie_tx_bytes},
    {"pcie_rx_bytes", nullptr, &DeviceSample::pcie_rx_bytes},
    {"nvlink_tx_bytes", nullptr, &DeviceSample::nvlink_tx_bytes},
    {"nvlink_rx_bytes", nullptr, &DeviceSample::nvlink_rx_bytes},
    {"ecc_uncorrected", nullptr, &DeviceSample::ecc_uncorrected},
};

constexpr Field<HostSample, double> kHostReals[] = {
    {"cpu_percent", &HostSample::cpu_percent},
    {"io_wait_percent", &HostSample::io_wait_percent},
    {"own_cpu_percent", &HostSample::own_cpu_percent},
};
constexpr Field<HostSample, int> kHostCounts[] = {
    {"cores", &HostSample::cores},
    {"running", &HostSample::running},
};
constexpr Field<HostSample, std::uint64_t> kHostBytes[] = {
    {"memory_total_bytes", &HostSample::memory_total_bytes},
    {"memory_available_bytes", &HostSample::memory_available_bytes},
    {"own_memory_bytes", &HostSample::own_memory_bytes},
};

constexpr Field<TreeSample, double> kTreeReals[] = {
    {"cpu_percent", &TreeSample::cpu_percent},
    {"main_thread_percent", &TreeSample::main_thread_percent},
    {"worker_cpu_percent", &TreeSample::worker_cpu_percent},
    {"run_queue_percent", &TreeSample::run_queue_percent},
    {"io_wait_percent", &TreeSample::io_wait_percent},
};
constexpr Field<TreeSample, std::uint64_t> kTreeBytes[] = {
    {"read_bytes", &TreeSample::read_bytes},
    {"read_call_bytes", &TreeSample::read_call_bytes},
    {"memory_bytes", &TreeSample::memory_bytes},
};
constexpr Field<TreeSample, std::string> kTreeNames[] = {
    {"slurm_job", &TreeSample::slurm_job},
    {"container", &TreeSample::container},
};

constexpr std::string_view kProcessKinds[] = {"compute", "graphics", "mps"};

}  // namespace

std::span<const DeviceField> device_fields() { return kDeviceFields; }

void append_step(std::string& out, const StepRecord& record, std::int64_t origin_ns) {
    ObjectText object(out);
    object.put("step", record.step);
    object.put("t_ns", record.start_ns - origin_ns);
    object.put("duration_ns", record.duration_ns);
    put_all(object, record, kStepFields);
    object.put("loss", record.loss);
    object.close();
}

std::optional<StepRecord> step_of(const Json& line, std::int64_t origin_ns) {
    auto step = line["step"].integer(), start = line["t_ns"].integer(),
         duration = line["duration_ns"].integer();
    if (!step || !start || !duration) return std::nullopt;
    StepRecord record{.step = *step, .start_ns = *start + origin_ns, .duration_ns = *duration};
    take_all(line, record, kStepFields);
    for (const auto& [name, value] : line.members()) {
        // A loss that was read but is not finite (NaN, infinity) is written as null.
        if (name == "loss") record.loss = value.number().value_or(std::nan(""));
    }
    return record;
}

void append_event(std::string& out, const EventRecord& record, std::int64_t origin_ns) {
    ObjectText object(out);
    object.put("event", event_name(record.kind));
    object.put("t_ns", record.time_ns - origin_ns);
    object.put("duration_ns", record.duration_ns);
    object.put("step", record.step);
    object.put("text", std::string_view(record.text));
    if (!record.values.is_null()) object.key("values") += record.values.line();
    object.close();
}

std::optional<EventRecord> event_of(const Json& line, std::int64_t origin_ns) {
    auto name = line["event"].string();
    auto time = line["t_ns"].integer();
    if (!name || !time) return std::nullopt;
    EventRecord record{.time_ns = *time + origin_ns};
    auto kind = event_kind(*name);
    record.kind = kind.value_or(EventKind::note);
    record.duration_ns = line["duration_ns"].integer();
    record.step = line["step"].integer();
    record.text = line["text"].string().value_or("");
    if (!kind) record.text = fmt::format("{}: {}", *name, record.text);  // a kind added later
    record.values = line["values"];
    return record;
}

void append_device(std::string& out, const DeviceSample& sample, std::int64_t origin_ns) {
    ObjectText object(out);
    object.put("type", std::string_view("gpu"));
    object.put("t_ns", sample.time_ns - origin_ns);
    object.put("took_ns", sample.took_ns);
    object.put("gpu", static_cast<std::int64_t>(sample.gpu));
    object.put("fault", sample.fault);
    for (const DeviceField& field : kDeviceFields) {
        if (field.real) {
            object.put(field.name, sample.*field.real);
        } else {
            object.put(field.name, sample.*field.count);
        }
    }
    object.put("performance_state", sample.performance_state);
    bool any_throttle = false;
    for (const auto& field : kThrottleFields)
        any_throttle |= (sample.throttle.*field.member).has_value();
    if (any_throttle) {
        object.key("throttle");
        ObjectText times(out);
        put_all(times, sample.throttle, kThrottleFields);
        times.close();
    }
    if (!sample.utilization_ring.empty()) {
        object.key("utilization_ring") += '[';
        for (const DriverSample& entry : sample.utilization_ring) {
            if (out.back() != '[') out += ',';
            fmt::format_to(std::back_inserter(out), "[{},{}]", entry.wall_us, entry.percent);
        }
        out += ']';
    }
    if (sample.processes) {
        object.key("processes") += '[';
        for (const GpuProcess& process : *sample.processes) {
            if (out.back() != '[') out += ',';
            ObjectText entry(out);
            entry.put("pid", process.pid);
            entry.put("kind", kProcessKinds[static_cast<int>(process.kind)]);
            entry.put("memory_bytes", process.memory_bytes);
            entry.put("sm_percent", process.sm_percent);
            entry.close();
        }
        out += ']';
    }
    object.close();
}

std::optional<DeviceSample> device_of(const Json& line, std::int64_t origin_ns) {
    auto gpu = line["gpu"].integer(), time = line["t_ns"].integer();
    if (line["type"].string() != "gpu" || !gpu || !time) return std::nullopt;
    DeviceSample sample{.gpu = static_cast<int>(*gpu), .time_ns = *time + origin_ns};
    sample.took_ns = line["took_ns"].integer().value_or(0);
    sample.fault = line["fault"].string();
    for (const DeviceField& field : kDeviceFields) {
        if (field.real) {
            take(line[field.name], sample.*field.real);
        } else {
            take(line[field.name], sample.*field.count);
        }
    }
    take(line["performance_state"], sample.performance_state);
    take_all(line["throttle"], sample.throttle, kThrottleFields);
    for (const Json& entry : line["utilization_ring"].items()) {
        if (entry.items().size() != 2) continue;
        auto at = entry.items()[0].integer();
        auto percent = entry.items()[1].number();
        if (at && percent) sample.utilization_ring.push_back({*at, *percent});
    }
    if (!line["processes"].is_array()) return sample;
    sample.processes.emplace();
    for (const Json& entry : line["processes"].items()) {
        GpuProcess process{.pid = entry["pid"].integer().value_or(0)};
        for (int i = 0; i < 3; ++i) {
            if (entry["kind"].string() == kProcessKinds[i])
                process.kind = static_cast<GpuProcessKind>(i);
        }
        take(entry["memory_bytes"], process.memory_bytes);
        take(entry["sm_percent"], process.sm_percent);
        sample.processes->push_back(process);
    }
    return sample;
}

namespace {

void append_tree(std::string& out, const TreeSample& tree) {
    ObjectText object(out);
    object.put("root_pid", tree.root_pid);
    if (tree.ended) object.key("ended") += "true";
    object.put("processes", static_cast<std::int64_t>(tree.processes));
    object.put("threads", static_cast<std::int64_t>(tree.threads));
    object.put("loader_workers", static_cast<std::int64_t>(tree.loader_workers));
    put_all(object, tree, kTreeReals);
    put_all(object, tree, kTreeBytes);
    put_all(object, tree, kTreeNames);
    if (!tree.busiest.empty()) {
        object.key("busiest") += '[';
        for (const ThreadSample& thread : tree.busiest) {
            if (out.back() != '[') out += ',';
            ObjectText entry(out);
            entry.put("pid", thread.pid);
            entry.put("tid", thread.tid);
            entry.put("name", std::string_view(thread.name));
            entry.put("state", std::string_view(&thread.state, 1));
            entry.put("cpu_percent", thread.cpu_percent);
            entry.close();
        }
        out += ']';
    }
    object.close();
}

TreeSample tree_of(const Json& json) {
    TreeSample tree{.root_pid = json["root_pid"].integer().value_or(0)};
    tree.ended = json["ended"].boolean().value_or(false);
    tree.processes = static_cast<int>(json["processes"].integer().value_or(0));
    tree.threads = static_cast<int>(json["threads"].integer().value_or(0));
    tree.loader_workers = static_cast<int>(json["loader_workers"].integer().value_or(0));
    take_all(json, tree, kTreeReals);
    take_all(json, tree, kTreeBytes);
    take_all(json, tree, kTreeNames);
    for (const Json& entry : json["busiest"].items()) {
        ThreadSample thread{.pid = entry["pid"].integer().value_or(0),
                            .tid = entry["tid"].integer().value_or(0),
                            .name = entry["name"].string().value_or("")};
        std::string state = entry["state"].string().value_or("?");
        if (!state.empty()) thread.state = state[0];
        take(entry["cpu_percent"], thread.cpu_percent);
        tree.busiest.push_back(thread);
    }
    return tree;
}

}  // namespace

void append_host(std::string& out, const HostSample& sample, std::int64_t origin_ns) {
    ObjectText object(out);
    object.put("type", std::string_view("host"));
    object.put("t_ns", sample.time_ns - origin_ns);
    put_all(object, sample, kHostReals);
    put_all(object, sample, kHostCounts);
    put_all(object, sample, kHostBytes);
    if (sample.tree) {
        object.key("tree");
        append_tree(out, *sample.tree);
    }
    object.close();
}

std::optional<HostSample> host_of(const Json& line, std::int64_t origin_ns) {
    auto time = line["t_ns"].integer();
    if (line["type"].string() != "host" || !time) return std::nullopt;
    HostSample sample{.time_ns = *time + origin_ns};
    take_all(line, sample, kHostReals);
    take_all(line, sample, kHostCounts);
    take_all(line, sample, kHostBytes);
    if (line["tree"].is_object()) sample.tree = tree_of(line["tree"]);
    return sample;
}

}  // namespace saturate
