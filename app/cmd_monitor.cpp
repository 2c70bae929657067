// SPDX-License-Identifier: Apache-2.0
// monitor: samples until the time is over, the job ends or the user stops it, then prints a
// verdict. The samples are kept in any case.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "arguments.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/output_file.h"
#include "base/text.h"
#include "commands.h"
#include "cuda/nvml.h"
#include "dispatch.h"
#include "exit_code.h"
#include "monitor_output.h"
#include "process/child.h"
#include "process/page_server.h"
#include "process/run_folder.h"
#include "process/signals.h"
#include "process/watch.h"
#include "report/http.h"
#include "report/http_guard.h"
#include "report/prometheus.h"
#include "show.h"
#include "telemetry/record_writer.h"
#include "telemetry/sampler.h"

namespace saturate {

namespace {

struct MonitorSettings {
    SamplerSettings sampler;
    double duration_seconds = 0;  // 0: no limit
    std::optional<std::int64_t> pid;
    std::vector<std::string> command;
    std::optional<std::string> record_file, replay_file, run_folder, prometheus, serve;
    std::optional<std::string> job_folder;  // the run record of the watched job
    MonitorOutputSettings output;
};

std::vector<int> gpu_list(const std::string& text) {
    std::vector<int> gpus;
    for (std::string_view part : split(text, ',')) {
        auto index = parse_integer(trim(part));
        if (!index || *index < 0 || *index > 1023) {
            throw UserError({.found = fmt::format("--gpu is {}", in_quotes(text)),
                             .expected = "comma-separated numbers, such as 0,2",
                             .fix = "--gpu 0,2"});
        }
        if (std::ranges::find(gpus, *index) == gpus.end()) gpus.push_back(static_cast<int>(*index));
    }
    return gpus;
}

void refuse_together(const Arguments& arguments, std::string_view one, std::string_view other) {
    if (!arguments.has(one) || !arguments.has(other)) return;
    throw UserError(
        {.found = fmt::format("{} and {} are both given", one, other), .expected = "one of them"});
}

MonitorSettings monitor_settings(const Arguments& arguments) {
    MonitorSettings out;
    constexpr double kYear = 366.0 * 24 * 3600;
    out.sampler.interval_seconds = *arguments.number("--interval", 0.1, 3600);
    out.duration_seconds = *arguments.number("--duration", 0, kYear);
    if (auto list = arguments.text("--gpu")) out.sampler.gpus = gpu_list(*list);
    out.pid = arguments.whole("--pid", 1, 1L << 22);
    out.command = arguments.command;
    if (auto file = arguments.text("--record")) {
        if (*file == "-")
            throw UserError(Problem{.found = "--record is -", .expected = "the name of a file"});
        OutputRule rule{.force = arguments.has("--force")};
        if (auto replayed = arguments.text("--replay")) rule.inputs.emplace_back(*replayed);
        out.record_file = OutputFile(*file, rule).path().string();
    }
    out.replay_file = arguments.text("--replay");
    if (auto folder = arguments.text("--output")) out.run_folder = output_folder(*folder).string();
    out.prometheus = arguments.text("--prometheus");
    out.serve = arguments.text("--serve");
    // The live page needs a record.
    if (out.serve && !out.run_folder) out.run_folder = new_run_folder("monitor").string();
    out.job_folder = arguments.text("--run");
    refuse_together(arguments, "--json", "--csv");
    refuse_together(arguments, "--record", "--replay");
    refuse_together(arguments, "--pid", "--replay");
    refuse_together(arguments, "--run", "--replay");
    if (out.pid && !out.command.empty()) {
        throw UserError(
            Problem{.found = "--pid and a command are both given", .expected = "one of them"});
    }
    if (out.replay_file && !out.command.empty()) {
        throw UserError(
            Problem{.found = "--replay and a command are both given", .expected = "one of them"});
    }
    Thresholds& limits = out.output.thresholds;
    limits.good_percent = *arguments.number("--good", 0, 100);
    limits.low_percent = *arguments.number("--low", 0, 100);
    limits.fluctuation_points = *arguments.number("--fluctuation", 0, 100);
    limits.temperature_celsius = *arguments.number("--hot", 0, 200);
    limits.cpu_percent = *arguments.number("--cpu", 0, 100);
    if (limits.low_percent > limits.good_percent) {
        throw UserError({.found = fmt::format("--low is {} and --good is {}", limits.low_percent,
                                              limits.good_percent),
                         .expected = "--low no higher than --good"});
    }
    out.output.steps = {.run_folder = out.run_folder.value_or("")};
    bool on_terminal = ::isatty(0) && ::isatty(1) && out.command.empty();
    out.output.form = arguments.has("--json")  ? MonitorForm::json
                      : arguments.has("--csv") ? MonitorForm::csv
                      : on_terminal            ? MonitorForm::screen
                                               : MonitorForm::lines;
    out.output.lines_to_stderr = !out.command.empty();
    return out;
}

Devices devices_of(const MonitorSettings& settings, NvmlRecorder* recorder,
                   const std::function<std::int64_t()>& now) {
    if (settings.replay_file) {
        NvmlRecording recording = open_nvml_recording(*settings.replay_file, now);
        return {.reader = std::move(recording.reader),
                .source = "recording " + *settings.replay_file,
                .notes = std::move(recording.notes),
                .recorded_seconds = recording.seconds};
    }
    // Waking a sleeping GPU is fine here, because the watched job does so anyway.
    bool wake = settings.pid.has_value() || !settings.command.empty();
    return open_gpus({.wake = wake, .recorder = recorder}, settings.job_folder);
}

RunInfo info_of(const MonitorSettings& settings, const Devices& devices, std::int64_t start_ns) {
    RunInfo info = run_info("monitor", settings.command, devices, start_ns);
    info.extra = Json::object({{"source", devices.source},
                               {"interval_seconds", settings.sampler.interval_seconds},
                               {"watched_pid", settings.pid}});
    return info;
}

class Monitor {
  public:
    explicit Monitor(MonitorSettings settings) : settings_(std::move(settings)) {}
    int run();

  private:
    void open();
    void loop();
    void tick(bool is_last);
    bool wait_until(std::int64_t deadline_ns);
    [[nodiscard]] bool is_over();
    void end_child();
    int finish();
    // A recording is replayed as fast as possible, but in real time for the live view.
    [[nodiscard]] bool is_virtual() const {
        return settings_.replay_file && settings_.output.form != MonitorForm::screen;
    }
    [[nodiscard]] std::int64_t time() const { return is_virtual() ? virtual_ns_ : now_ns(); }

    MonitorSettings settings_;
    Signals interrupts_{Signals::Role::stop};
    std::int64_t virtual_ns_ = now_ns();
    std::unique_ptr<Child> child_;
    std::unique_ptr<NvmlRecorder> nvml_recorder_;
    Devices devices_;
    std::optional<HostSampler> host_;
    NullRecorder nothing_;
    std::unique_ptr<RecordWriter> writer_;
    std::unique_ptr<HttpServer> server_;
    std::unique_ptr<Sampler> sampler_;
    std::optional<Summarizer> summarizer_;
    std::unique_ptr<MonitorOutput> output_;
    std::string ended_ = "done";
    bool told_full_ = false;
};

void Monitor::open() {
    if (settings_.record_file)
        nvml_recorder_ = std::make_unique<NvmlRecorder>(*settings_.record_file);
    devices_ = devices_of(settings_, nvml_recorder_.get(), [this] { return time(); });
    if (settings_.record_file && devices_.source != "nvml") {
        throw MachineError(
            {.found = fmt::format("nothing to record: {}", devices_.absent_because.empty()
                                                               ? devices_.notes.at(0)
                                                               : devices_.absent_because),
             .expected = "an NVIDIA driver"});
    }
    if (!settings_.sampler.gpus.empty() && !devices_.reader) {
        throw MachineError({.found = fmt::format("--gpu names a GPU, but this machine has none: {}",
                                                 devices_.absent_because),
                            .expected = "a machine with a GPU"});
    }
    summarizer_.emplace(settings_.output.thresholds);
    if (settings_.prometheus) {
        HttpAddress address = HttpAddress::parse(*settings_.prometheus, "--prometheus");
        server_ = std::make_unique<HttpServer>(
            address, "--prometheus", HttpHandler{}, HttpLimits{},
            [guard = HttpGuard::for_metrics(address)](const HttpRequest& request) {
                return guard.refusal(request);
            });
        show(stderr, "note: metrics are at http://{}/metrics\n", server_->address().text());
    }
    if (settings_.serve)
        show(stderr, "note: the live page is {}\n",
             start_page_server(*settings_.run_folder, *settings_.serve));
    HostSettings host{.watched_pid = settings_.pid};
    if (settings_.pid && !HostSampler(host).is_there(*settings_.pid)) {
        throw UserError({.found = fmt::format("no process {}", *settings_.pid),
                         .expected = "the pid of a running process"});
    }
    output_ = make_monitor_output(settings_.output);
    // Start the command last, so that no earlier error leaves it running.
    std::int64_t start = time();
    if (settings_.run_folder) {
        writer_ = std::make_unique<RecordWriter>(*settings_.run_folder,
                                                 info_of(settings_, devices_, start));
    }
    if (!settings_.command.empty()) {
        bool keep_stdout =
            settings_.output.form == MonitorForm::json || settings_.output.form == MonitorForm::csv;
        child_ = std::make_unique<Child>(settings_.command,
                                         ChildSettings{.output_to_stderr = keep_stdout});
        host.watched_pid = child_->pid();
    }
    if (!settings_.replay_file) host_.emplace(host);
    Recorder& recorder = writer_ ? static_cast<Recorder&>(*writer_) : nothing_;
    sampler_ =
        std::make_unique<Sampler>(settings_.sampler, devices_.reader.get(),
                                  host_ ? &*host_ : nullptr, devices_.absent_because, recorder);
}

void Monitor::tick(bool is_last) {
    std::int64_t at = time();
    std::int64_t wall = settings_.replay_file ? wall_ns() : wall_ns() - (now_ns() - at);
    const Snapshot& snapshot = sampler_->tick(at, wall, is_last);
    summarizer_->add(snapshot, sampler_->readings());
    output_->tick(snapshot);
    if (server_) server_->publish("/metrics", kPrometheusContentType, prometheus_text(snapshot));
    if (nvml_recorder_) nvml_recorder_->flush();
    if (writer_ && !told_full_) {
        std::string failure = writer_->failure();
        if (!failure.empty())
            show(stderr, "note: the run record cannot be written at the moment: {}\n", failure);
        told_full_ = !failure.empty();
    }
}

bool Monitor::is_over() {
    if (interrupts_.stop_signal() != 0 || !output_->is_read()) {
        ended_ = "interrupted";
        return true;
    }
    if (output_->wants_to_quit()) return true;
    if (child_ && child_->status()) return true;
    const auto& tree = sampler_->snapshot().host.tree;
    return settings_.pid && tree && tree->ended;
}

// Returns false if monitoring ends before the deadline.
bool Monitor::wait_until(std::int64_t deadline_ns) {
    if (is_virtual()) {
        virtual_ns_ = deadline_ns;
        return !is_over();
    }
    while (true) {
        auto woke = interrupts_.wait_until(deadline_ns, output_->input_fd());
        if (is_over()) return false;
        if (woke == Signals::Woke::deadline) return true;
    }
}

void Monitor::loop() {
    std::int64_t start = time();
    double seconds = settings_.duration_seconds;
    if (settings_.replay_file)
        seconds =
            seconds > 0 ? std::min(seconds, devices_.recorded_seconds) : devices_.recorded_seconds;
    bool is_bounded = seconds > 0 || settings_.replay_file;
    std::int64_t end = start + static_cast<std::int64_t>(seconds * 1e9);
    Deadlines deadlines(start, settings_.sampler.interval_seconds);
    while (true) {
        tick(is_bounded && time() >= end);
        if (is_over() || (is_bounded && time() >= end)) return;
        std::int64_t next = deadlines.next(time());
        sampler_->note_late(deadlines.lost());
        // Take the last tick at the very end, so that the whole requested time is covered.
        if (is_bounded) next = std::min(next, end);
        if (!wait_until(next)) {
            if (ended_ != "interrupted" && child_) tick(true);
            return;
        }
    }
}

// Waits for the command. Ctrl-C has reached it too; any other signal is passed on. If the command
// keeps running after that, its user decides when it ends.
void Monitor::end_child() {
    if (!child_) return;
    int signal = interrupts_.stop_signal();
    if (signal != 0 && signal != SIGINT) child_->signal(signal);
    if (child_->wait() != 0 && ended_ == "done") ended_ = "failed";
}

int Monitor::finish() {
    Summary summary = summarizer_->summary();
    output_->finish(summary, ended_);
    std::string trouble = nvml_recorder_ ? nvml_recorder_->finish() : "";
    std::optional<int> status;
    if (child_) status = child_->status();
    if (writer_) writer_->finish(run_summary(summary, ended_, status));
    if (!trouble.empty()) {
        throw MachineError({.found = fmt::format("the recording is incomplete: {}", trouble),
                            .expected = "free space on the disk"});
    }
    if (ended_ == "interrupted") return kInterrupted;
    return status.value_or(0) == 0 ? kDone : kJobFailed;
}

int Monitor::run() {
    open();
    output_->start(
        {.snapshot = sampler_->snapshot(), .notes = devices_.notes, .source = devices_.source});
    loop();
    end_child();
    return finish();
}

}  // namespace

int cmd_monitor(const Arguments& arguments) { return Monitor(monitor_settings(arguments)).run(); }

}  // namespace saturate
