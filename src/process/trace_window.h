// SPDX-License-Identifier: Apache-2.0
// Records one window of the profiler in a running job: asks for it once steps are steady, and puts
// the trace into the record.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "telemetry/kineto_server.h"
#include "telemetry/python_job.h"

namespace saturate {

class TraceWindow {
  public:
    TraceWindow(const std::filesystem::path& folder, bool is_wanted, int steps);

    [[nodiscard]] bool is_served() const { return server_.has_value(); }
    [[nodiscard]] int fd() const { return server_ ? server_->fd() : -1; }
    void answer(PythonJob& job);
    // `process` is the process to profile; null: none trains yet.
    void poll(PythonProcess* process, Recorder& recorder);
    // Called after the job ended. Puts a complete trace into `record`/trace.json.gz and notes what
    // is missing.
    void finish(PythonProcess* process, const std::filesystem::path& record, Recorder& recorder,
                std::vector<std::string>& notes);

  private:
    enum class State { off, waiting, asked, written };
    [[nodiscard]] std::filesystem::path file_of(const PythonProcess& process) const;
    [[nodiscard]] bool may_begin(PythonJob& job, std::int64_t pid);
    void watch_open(PythonProcess& process);
    void ask(PythonProcess& process);
    bool is_whole(PythonProcess& process, Recorder& recorder);

    std::filesystem::path folder_;
    std::optional<KinetoServer> server_;
    State state_;
    int steps_;
    std::int64_t asked_ns_ = 0, length_ns_ = 0;
    std::int64_t begun_ns_ = 0;  // when the process was told to record; 0: not yet
    std::string no_server_;      // why there is no socket; empty: there is one
    std::uintmax_t size_ = 0;    // of the trace at the last look: it grows while it is written
};

}  // namespace saturate
