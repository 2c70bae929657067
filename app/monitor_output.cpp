// SPDX-License-Identifier: Apache-2.0
#include "monitor_output.h"

#include <fmt/format.h>

#include <cstdio>
#include <ctime>

#include "screen.h"
#include "show.h"
#include "telemetry/record_json.h"

namespace saturate {

namespace {

// Writes and flushes whole lines, so that the reader of a pipe sees each tick.
bool put(std::FILE* file, const std::string& text) {
    return std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
}

std::string clock_text(std::int64_t wall_ns, const char* format) {
    std::time_t seconds = wall_ns / 1'000'000'000;
    std::tm parts{};
    ::localtime_r(&seconds, &parts);
    char text[64];
    return {text, std::strftime(text, sizeof text, format, &parts)};
}

class LineOutput final : public MonitorOutput {
  public:
    explicit LineOutput(const MonitorOutputSettings& settings) : settings_(settings) {}
    void start(const MonitorStart& start) override {
        for (const std::string& note : start.notes) show(stderr, "note: {}\n", note);
        if (start.snapshot.gpus.empty()) {
            show(stderr, "note: no GPU is watched: {}\n", start.snapshot.devices_absent_because);
        }
        for (const GpuIdentity& gpu : start.snapshot.gpus) {
            show(stderr, "note: GPU {} is {}{}{}\n", gpu.index,
                 gpu.name.empty() ? "unknown" : gpu.name,
                 gpu.mig.value_or(false) ? ", split into MIG instances, which report no utilisation"
                                         : "",
                 gpu.fault ? ", " + *gpu.fault : "");
        }
    }
    void tick(const Snapshot& snapshot) override {
        std::string out;
        for (const std::string& line : tick_lines(snapshot)) {
            out += fmt::format("{} {}\n", clock_text(snapshot.wall_ns, "%H:%M:%S"), shown(line));
        }
        read_ = put(settings_.lines_to_stderr ? stderr : stdout, out) && read_;
    }
    void finish(const Summary& summary, const std::string&) override {
        show(stdout, "\n{}", summary_text(summary, settings_.steps));
        read_ = std::fflush(stdout) == 0 && read_;
    }
    [[nodiscard]] int input_fd() const override { return -1; }
    bool wants_to_quit() override { return false; }
    [[nodiscard]] bool is_read() const override { return read_; }

  private:
    MonitorOutputSettings settings_;
    bool read_ = true;
};

Json process_object(const ProcessRow& row) {
    return Json::object({{"gpu", row.gpu},
                         {"pid", row.process.pid},
                         {"pid_is", row.pid_here ? "visible" : "host pid"},
                         {"command", row.command},
                         {"user", row.user},
                         {"gpu_memory_bytes", row.process.memory_bytes},
                         {"sm_percent", row.process.sm_percent},
                         {"cpu_percent", row.cpu_percent},
                         {"memory_bytes", row.memory_bytes},
                         {"slurm_job", row.slurm_job},
                         {"container", row.container}});
}

class JsonOutput final : public MonitorOutput {
  public:
    void start(const MonitorStart& start) override {
        Json gpus = Json::array();
        for (const GpuIdentity& gpu : start.snapshot.gpus) {
            std::optional<std::string> capability;
            if (gpu.capability)
                capability = fmt::format("{}.{}", gpu.capability->major, gpu.capability->minor);
            gpus.add(Json::object({{"gpu", gpu.index},
                                   {"name", gpu.name},
                                   {"uuid", gpu.uuid},
                                   {"pci_bus_id", gpu.pci_bus_id},
                                   {"capability", capability},
                                   {"memory_total_bytes", gpu.memory_total_bytes},
                                   {"mig", gpu.mig},
                                   {"fault", gpu.fault}}));
        }
        std::optional<std::string> absent;
        if (!start.snapshot.devices_absent_because.empty())
            absent = start.snapshot.devices_absent_because;
        Json body = Json::object({{"source", start.source},
                                  {"interval_seconds", start.snapshot.interval_seconds},
                                  {"driver_version", start.snapshot.driver_version},
                                  {"gpus", gpus},
                                  {"gpus_absent_because", absent},
                                  {"notes", Json::array_of(start.notes)}});
        line(Json::object({{"schema", 1}, {"start", body}}).line());
    }
    void tick(const Snapshot& snapshot) override {
        std::string out =
            fmt::format("{{\"schema\":1,\"tick\":{},\"t_ns\":{},\"wall_ns\":{},\"gpus\":[",
                        snapshot.tick, snapshot.time_ns - snapshot.started_ns, snapshot.wall_ns);
        for (const DeviceSample& device : snapshot.devices) {
            if (out.back() != '[') out += ',';
            append_device(out, device, snapshot.started_ns);
        }
        out += "],\"host\":";
        append_host(out, snapshot.host, snapshot.host.time_ns == 0 ? 0 : snapshot.started_ns);
        Json processes = Json::array();
        for (const ProcessRow& row : snapshot.processes) processes.add(process_object(row));
        line(out + ",\"processes\":" + processes.line() + "}");
    }
    void finish(const Summary& summary, const std::string& ended) override {
        Json object = summary_object(summary);
        object.set("ended", ended);
        line(Json::object({{"schema", 1}, {"summary", object}}).line());
    }
    [[nodiscard]] int input_fd() const override { return -1; }
    bool wants_to_quit() override { return false; }
    [[nodiscard]] bool is_read() const override { return read_; }

  private:
    void line(const std::string& text) { read_ = put(stdout, text + "\n") && read_; }
    bool read_ = true;
};

class CsvOutput final : public MonitorOutput {
  public:
    explicit CsvOutput(const MonitorOutputSettings& settings) : settings_(settings) {}
    void start(const MonitorStart& start) override {
        for (const std::string& note : start.notes) show(stderr, "note: {}\n", note);
        names_.clear();
        for (const GpuIdentity& gpu : start.snapshot.gpus) names_.push_back(quote(gpu.name));
        std::string head = "time,t_seconds,gpu,name,fault";
        for (const DeviceField& field : device_fields()) head += fmt::format(",{}", field.name);
        read_ = put(stdout,
                    head + ",host_cpu_percent,host_io_wait_percent,host_memory_available_bytes\n");
    }
    void tick(const Snapshot& snapshot) override {
        std::string out;
        std::string time =
            fmt::format("{}.{:03}", clock_text(snapshot.wall_ns, "%Y-%m-%dT%H:%M:%S"),
                        snapshot.wall_ns / 1'000'000 % 1000);
        double seconds = static_cast<double>(snapshot.time_ns - snapshot.started_ns) / 1e9;
        for (std::size_t i = 0; i < snapshot.devices.size(); ++i) {
            const DeviceSample& device = snapshot.devices[i];
            out += fmt::format("{},{:.3f},{},{},{}", time, seconds, device.gpu, names_[i],
                               quote(device.fault.value_or("")));
            for (const DeviceField& field : device_fields()) {
                if (field.real) {
                    out += cell(device.*field.real);
                } else {
                    out += cell(device.*field.count);
                }
            }
            out += host_cells(snapshot.host);
        }
        if (snapshot.devices.empty()) {  // no GPU: its cells stay empty
            out = fmt::format("{},{:.3f},,,{}", time, seconds,
                              std::string(device_fields().size(), ','));
            out += host_cells(snapshot.host);
        }
        read_ = put(stdout, out) && read_;
    }
    void finish(const Summary& summary, const std::string&) override {
        show(stderr, "{}", summary_text(summary, settings_.steps));
    }
    [[nodiscard]] int input_fd() const override { return -1; }
    bool wants_to_quit() override { return false; }
    [[nodiscard]] bool is_read() const override { return read_; }

  private:
    template <typename T>
    static std::string cell(const std::optional<T>& value) {
        return value ? fmt::format(",{}", *value) : ",";
    }
    static std::string host_cells(const HostSample& host) {
        return cell(host.cpu_percent) + cell(host.io_wait_percent) +
               cell(host.memory_available_bytes) + "\n";
    }
    static std::string quote(const std::string& text) {
        if (text.find_first_of(",\"\n") == std::string::npos) return text;
        std::string out = "\"";
        for (char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
        return out + "\"";
    }
    MonitorOutputSettings settings_;
    std::vector<std::string> names_;
    bool read_ = true;
};

// The live view, followed by the summary as text.
class ScreenOutput final : public MonitorOutput {
  public:
    explicit ScreenOutput(const MonitorOutputSettings& settings) : settings_(settings) {}
    void start(const MonitorStart&) override {
        screen_ = std::make_unique<Screen>(ScreenSettings{.thresholds = settings_.thresholds,
                                                          .language = shown_language(),
                                                          .colour = wants_colour(stdout)});
    }
    void tick(const Snapshot& snapshot) override { screen_->update(snapshot); }
    void finish(const Summary& summary, const std::string&) override {
        screen_.reset();
        show(stdout, summary_text(summary, settings_.steps));
    }
    [[nodiscard]] int input_fd() const override { return screen_ ? screen_->input_fd() : -1; }
    bool wants_to_quit() override { return screen_ && screen_->key() == Screen::Key::quit; }
    [[nodiscard]] bool is_read() const override { return true; }

  private:
    MonitorOutputSettings settings_;
    std::unique_ptr<Screen> screen_;
};

}  // namespace

std::unique_ptr<MonitorOutput> make_monitor_output(const MonitorOutputSettings& settings) {
    switch (settings.form) {
        case MonitorForm::json:
            return std::make_unique<JsonOutput>();
        case MonitorForm::csv:
            return std::make_unique<CsvOutput>(settings);
        case MonitorForm::screen:
            return std::make_unique<ScreenOutput>(settings);
        case MonitorForm::lines:
            break;
    }
    return std::make_unique<LineOutput>(settings);
}

}  // namespace saturate
