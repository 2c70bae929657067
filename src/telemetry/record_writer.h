// SPDX-License-Identifier: Apache-2.0
// Writes a run record: a folder with run.json, steps.jsonl, samples.jsonl, events.jsonl and, at the
// end, summary.json. Producers append to bounded lists (a short lock, no allocation for a step). An
// internal thread turns the records into text and writes them five times a second, so that a killed
// process loses less than a second. Records that do not fit are dropped and counted.
#pragma once

#include <filesystem>
#include <memory>

#include "telemetry/recorder.h"

namespace saturate {

struct RecordWriterSettings {
    std::size_t steps_max = 16384;  // most records waiting to be written
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
    // Creates the folder and writes run.json. Throws UserError if the folder is not empty, and
    // MachineError if it cannot be written.
    RecordWriter(const std::filesystem::path& folder, const RunInfo& info,
                 const RecordWriterSettings& settings = {});
    ~RecordWriter() override;  // writes waiting records; no summary without finish()

    void step(const StepRecord& record) noexcept override;
    void event(EventRecord record) noexcept override;
    void device(DeviceSample sample) noexcept override;
    void host(HostSample sample) noexcept override;

    // Writes the waiting records, then summary.json with the drops filled in. Later records are
    // dropped. Throws MachineError if part of the record could not be written.
    void finish(RunSummary summary);

    // Blocks until everything recorded before the call is in the files.
    void flush();

    [[nodiscard]] RecordDrops drops() const;
    // Returns why writing failed (a full disk), or "". Further records are accepted but count as
    // dropped.
    [[nodiscard]] std::string failure() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
