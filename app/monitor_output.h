// SPDX-License-Identifier: Apache-2.0
// The output of monitor: lines, JSON, CSV or the live view. Used from one thread.
#pragma once

#include <memory>
#include <string>

#include "telemetry/sample.h"
#include "telemetry/summary.h"
#include "telemetry/summary_text.h"

namespace saturate {

struct MonitorStart {
    Snapshot snapshot;  // before the first tick: the watched GPUs
    std::vector<std::string> notes;
    std::string source;  // "driver", "recording FILE", "none"
};

class MonitorOutput {
  public:
    virtual ~MonitorOutput() = default;
    virtual void start(const MonitorStart& start) = 0;
    virtual void tick(const Snapshot& snapshot) = 0;
    virtual void finish(const Summary& summary, const std::string& ended) = 0;
    // For a view that reads keys; others return -1 and false.
    [[nodiscard]] virtual int input_fd() const = 0;
    virtual bool wants_to_quit() = 0;
    // False once the reader of our output has gone.
    [[nodiscard]] virtual bool is_read() const = 0;
};

enum class MonitorForm { lines, json, csv, screen };

struct MonitorOutputSettings {
    MonitorForm form = MonitorForm::lines;
    Thresholds thresholds;
    NextSteps steps;
    bool lines_to_stderr = false;  // stdout belongs to the command
};
[[nodiscard]] std::unique_ptr<MonitorOutput> make_monitor_output(
    const MonitorOutputSettings& settings);

}  // namespace saturate
