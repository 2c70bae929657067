// SPDX-License-Identifier: Apache-2.0
// Follows the Python processes of a job through the data of their shims: finds their rings in a
// folder, turns ring records into steps and events of a run record (one per rank), and keeps their
// facts. A process counts from its first training step on. Polled by process/run_job, from one
// thread.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "telemetry/account.h"
#include "telemetry/python_totals.h"
#include "telemetry/recorder.h"
#include "telemetry/step_ring.h"

namespace saturate {

struct PythonProcess {
    explicit PythonProcess(StepRing opened) : ring(std::move(opened)) {}

    StepRing ring;
    std::int64_t pid = 0;
    int rank = 0;  // in the job; without ranks, the order of the first steps
    int world_size = 1;
    Recorder* recorder = nullptr;  // null until it trains
    RunAccount account;
    PythonTotals totals;
    std::int64_t gc_ns = 0, gc_longest_ns = 0;
    std::int64_t first_step_ns = 0, last_step_ns = 0;
    Json facts;  // the latest from the shim; null if none yet
    std::int64_t facts_stamp = 0;

    // Not recorded as an event yet: an evaluation in progress, a loader that started.
    EventRecord evaluation;
    std::int64_t evaluation_batches = 0;
    std::uint32_t evaluation_loader = 0;
    std::int64_t loader_start_ns = 0, loader_took_ns = 0;
    std::int64_t evaluation_took_ns = 0;  // loader_took_ns when the evaluation began
    std::uint32_t loader_started = 0;

    [[nodiscard]] bool trains() const { return recorder != nullptr; }
    [[nodiscard]] Json python_json() const;  // python.json of its run record
};

class PythonJob {
  public:
    // `recorder_for` is called once for each process that trains.
    PythonJob(std::filesystem::path folder,
              std::function<Recorder*(const PythonProcess&)> recorder_for);

    // `is_last`: the processes have ended, so read everything.
    void poll(bool is_last);
    void ask_facts();
    [[nodiscard]] std::vector<std::unique_ptr<PythonProcess>>& processes() { return processes_; }
    [[nodiscard]] PythonProcess* process(std::int64_t pid);  // null if unknown
    [[nodiscard]] PythonProcess* first();                    // lowest rank that trains, or null
    [[nodiscard]] std::int64_t steps() const;                // the most steps of any process
    // Returns the version of torch that a process imported, whether it trained or not, or "".
    [[nodiscard]] std::string torch_version() const;

  private:
    void find_rings();
    void take(PythonProcess& process, const RingRecord& record);
    void begin(PythonProcess& process, const RingRecord& first_step);
    static void take_evaluation(PythonProcess& process, const RingRecord& record);
    static void take_step(PythonProcess& process, const RingRecord& record);
    static void end_evaluation(PythonProcess& process);
    void read_facts(PythonProcess& process);

    std::filesystem::path folder_;
    std::function<Recorder*(const PythonProcess&)> recorder_for_;
    std::vector<std::unique_ptr<PythonProcess>> processes_;
    int without_rank_ = 0;
};

}  // namespace saturate
