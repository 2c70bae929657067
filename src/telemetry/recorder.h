// SPDX-License-Identifier: Apache-2.0
// Receives the steps, events and samples of a running job. RecordWriter writes a run record,
// MemoryRecorder keeps everything for tests, NullRecorder drops it. Called from any thread; never
// blocks, never throws.
#pragma once

#include <mutex>
#include <vector>

#include "telemetry/record.h"
#include "telemetry/sample.h"

namespace saturate {

class Recorder {
  public:
    virtual ~Recorder() = default;
    virtual void step(const StepRecord& record) noexcept = 0;
    virtual void event(EventRecord record) noexcept = 0;
    virtual void device(DeviceSample sample) noexcept = 0;
    virtual void host(HostSample sample) noexcept = 0;
};

class NullRecorder final : public Recorder {
  public:
    void step(const StepRecord&) noexcept override {}
    void event(EventRecord) noexcept override {}
    void device(DeviceSample) noexcept override {}
    void host(HostSample) noexcept override {}
};

// Keeps everything in order of arrival, for tests.
class MemoryRecorder final : public Recorder {
  public:
    void step(const StepRecord& record) noexcept override { keep(steps, record); }
    void event(EventRecord record) noexcept override { keep(events, std::move(record)); }
    void device(DeviceSample sample) noexcept override { keep(devices, std::move(sample)); }
    void host(HostSample sample) noexcept override { keep(hosts, std::move(sample)); }

    // Read these only when no other thread records any more.
    std::vector<StepRecord> steps;
    std::vector<EventRecord> events;
    std::vector<DeviceSample> devices;
    std::vector<HostSample> hosts;

  private:
    template <typename T>
    void keep(std::vector<T>& list, T value) {
        std::lock_guard lock(mutex_);
        list.push_back(std::move(value));
    }
    std::mutex mutex_;
};

}  // namespace saturate
