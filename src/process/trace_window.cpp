// SPDX-License-Identifier: Apache-2.0
#include "process/trace_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "base/clock.h"
#include "base/compress.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace saturate {

namespace {

constexpr std::int64_t kSteadySteps = 30;
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kLargestTrace = 1u << 30;
// The script waits this much longer than the window for its trace ...
constexpr std::int64_t kToWriteNs = 5 * kSecond;
// ... and at most this much longer while the trace is incomplete.
constexpr std::int64_t kLongestWriteNs = 60 * kSecond;

// The profiler writes in place. A trace is complete if it ends with a brace and has stopped
// growing.
bool ends_whole(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary | std::ios::ate);
    auto size = static_cast<std::int64_t>(in.tellg());
    if (size < 2) return false;
    auto length = std::min<std::int64_t>(size, 16);
    std::string end(static_cast<std::size_t>(length), ' ');
    in.seekg(size - length);
    in.read(end.data(), length);
    return trim(end).ends_with('}');
}

// True for versions before 2.7, which never ask the socket. False as long as the facts are missing.
bool is_too_old_to_ask(const PythonProcess& process) {
    std::string version = process.facts["torch"].string().value_or("");
    std::vector<std::string_view> parts = split(version, '.');
    if (parts.size() < 2) return false;
    auto major = parse_integer(parts[0]), minor = parse_integer(parts[1]);
    return major && minor && std::pair(*major, *minor) < std::pair(2L, 7L);
}

}  // namespace

TraceWindow::TraceWindow(const std::filesystem::path& folder, bool is_wanted, int steps)
    : folder_(folder), state_(is_wanted ? State::waiting : State::off), steps_(steps) {
    if (!is_wanted) return;
    try {
        server_.emplace(folder);
    } catch (const MachineError& error) {  // the job is watched without a trace
        state_ = State::off;
        no_server_ = error.problems().front().found;
    }
}

void TraceWindow::answer(PythonJob& job) {
    if (server_) server_->answer([&](std::int64_t pid) { return may_begin(job, pid); });
}

// A script that ends while its profiler records crashes in the profiler's exit handlers, and two
// profilers at once break each other. So the process is told of the window and waits for its end.
bool TraceWindow::may_begin(PythonJob& job, std::int64_t pid) {
    PythonProcess* process = job.process(pid);
    std::int64_t now = now_ns();
    if (!process || !process->ring.open_window(now + length_ns_ + kToWriteNs)) return false;
    begun_ns_ = now;
    return true;
}

// Closes the window or extends the time for which the script would wait for it.
void TraceWindow::watch_open(PythonProcess& process) {
    std::int64_t now = now_ns();
    if (state_ == State::written || now - begun_ns_ > length_ns_ + kLongestWriteNs) {
        process.ring.close_window();
        begun_ns_ = 0;
    } else {
        process.ring.extend_window(std::max(now, begun_ns_ + length_ns_) + kToWriteNs);
    }
}

std::filesystem::path TraceWindow::file_of(const PythonProcess& process) const {
    // Kineto appends the pid to the file name; the shim's own window does the same.
    return folder_ / fmt::format("trace_{}.json", process.pid);
}

void TraceWindow::ask(PythonProcess& process) {
    double step_ms = process.account.step_ms().value_or(10);
    asked_ns_ = now_ns();
    state_ = State::asked;
    if (server_->has_asked(process.pid)) {
        double length = steps_ > 0 ? steps_ * step_ms : std::clamp(6 * step_ms, 500.0, 5000.0);
        int milliseconds = static_cast<int>(std::max(length, 20.0));
        length_ns_ = KinetoServer::kWarmUpNs + milliseconds * 1'000'000LL;
        server_->request(process.pid, KinetoServer::window(folder_ / "trace.json", milliseconds));
    } else {  // an older torch: the shim records, which costs a pause
        double count = steps_ > 0 ? steps_ : 500.0 / std::max(step_ms, 0.1);
        process.account.set_disturbed(true);
        process.ring.ask_profile(
            static_cast<int>(std::clamp(count, 4.0, steps_ > 0 ? 250.0 : 20.0)));
    }
}

bool TraceWindow::is_whole(PythonProcess& process, Recorder& recorder) {
    std::filesystem::path file = file_of(process);
    std::error_code error;
    std::uintmax_t size = std::filesystem::file_size(file, error);
    if (error || size == 0) return false;
    if (size != std::exchange(size_, size) || !ends_whole(file)) return false;
    process.account.set_disturbed(false);
    recorder.event({.kind = EventKind::note,
                    .time_ns = asked_ns_,
                    .duration_ns = now_ns() - asked_ns_,
                    .step = process.account.steps(),
                    .text = "profiler window",
                    .values = Json::object({{"bytes", size}})});
    state_ = State::written;
    return true;
}

void TraceWindow::poll(PythonProcess* process, Recorder& recorder) {
    if (!process) return;
    if (state_ == State::asked) {
        if (server_->is_delivered(process->pid)) process->account.set_disturbed(true);
        (void)is_whole(*process, recorder);
        if (begun_ns_ != 0) watch_open(*process);
    }
    if (state_ != State::waiting) return;
    std::int64_t running = process->last_step_ns - process->first_step_ns;
    std::int64_t steps = process->account.steps();
    bool is_steady =
        steps >= kSteadySteps ? running > kSecond : steps >= 8 && running > 10 * kSecond;
    // A process reports every few seconds that it can be asked.
    bool can_answer =
        server_->has_asked(process->pid) || is_too_old_to_ask(*process) || running > 15 * kSecond;
    if (is_steady && can_answer) ask(*process);
}

void TraceWindow::finish(PythonProcess* process, const std::filesystem::path& record,
                         Recorder& recorder, std::vector<std::string>& notes) {
    if (!no_server_.empty()) notes.push_back("no profiler window: " + no_server_);
    if (!process || (state_ != State::asked && state_ != State::written)) return;
    if (state_ == State::asked) {
        std::error_code error;
        size_ = std::filesystem::file_size(file_of(*process), error);  // the writer is gone
        if (error || !is_whole(*process, recorder)) {
            notes.emplace_back(process->facts["own_profiler"].boolean().value_or(false)
                                   ? "no profiler window: the script runs its own profiler"
                                   : "the command ended before the profiler window was written");
            return;
        }
    }
    // Compressed only now: the cores belong to the job while it runs.
    write_file_whole(record / "trace.json.gz",
                     gzip(read_file(file_of(*process), kLargestTrace, "a trace")));
}

}  // namespace saturate
