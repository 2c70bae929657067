// SPDX-License-Identifier: Apache-2.0
// Writes a run record: a folder with run.json, steps.jsonl, samples.jsonl, events.jsonl and, at the
// end, summary.json. Producers leave their records in bounded lists (a short lock, no allocation
// for a step); one thread inside turns them into text and writes them five times a second, so that
// a process that is killed loses less than a second. What does not fit is dropped and counted.
#pragma once

#include <filesystem>
#include <memory>

#include "telemetry/recorder.h"

namespace saturate {

struct RecordWriterSettings {
    std::size_t steps_max = 16384;  // waiting to be written
    std::size_t others_max = 16384;
    int flush_milliseconds = 200;
};

struct RecordDrops {
    std::uint64_t steps = 0;
    std::uint64_t events = 0;
    std::uint64_t samples = 0;
};

class RecordWriter final : public Recorder {
  public:
    // Makes the folder and writes run.json. Throws UserError when the folder holds something
    // already, MachineError when it cannot be written.
    RecordWriter(const std::filesystem::path& folder, const RunInfo& info,
                 const RecordWriterSettings& settings = {});
    ~RecordWriter() override;  // writes what is waiting; without finish() there is no summary

    void step(const StepRecord& record) noexcept override;
    void event(EventRecord record) noexcept override;
    void device(DeviceSample sample) noexcept override;
    void host(HostSample sample) noexcept override;

    // Writes what is waiting, then summary.json with the drops filled in. Nothing is recorded
    // after it. Throws MachineError when part of the record could not be written.
    void finish(RunSummary summary);

    // Blocks until what was recorded before the call is in the files.
    void flush();

    [[nodiscard]] RecordDrops drops() const;
    // Why writing failed (a full disk), or empty. Recording goes on and counts as dropped.
    [[nodiscard]] std::string failure() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
