// SPDX-License-Identifier: Apache-2.0
// Converts records and samples to JSON lines and back. Writing and reading use the same tables of
// fields, so that they cannot disagree; `monitor --json` and --csv use them too.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "telemetry/record.h"
#include "telemetry/sample.h"

namespace saturate {

// A numeric member of a DeviceSample and its name in the files.
struct DeviceField {
    std::string_view name;
    std::optional<double> DeviceSample::*real = nullptr;
    std::optional<std::uint64_t> DeviceSample::*count = nullptr;
};
[[nodiscard]] std::span<const DeviceField> device_fields();

// Each function appends one object without a newline. Times count from `origin_ns`.
void append_step(std::string& out, const StepRecord& record, std::int64_t origin_ns);
void append_event(std::string& out, const EventRecord& record, std::int64_t origin_ns);
void append_device(std::string& out, const DeviceSample& sample, std::int64_t origin_ns);
void append_host(std::string& out, const HostSample& sample, std::int64_t origin_ns);

// Returns nullopt if the line is of another kind or lacks a required member.
[[nodiscard]] std::optional<StepRecord> step_of(const Json& line, std::int64_t origin_ns);
// The same from text exactly as append_step() writes it. Several times as fast, for records of a
// million steps. Returns nullopt for any other text; use step_of() then.
[[nodiscard]] std::optional<StepRecord> plain_step(std::string_view line, std::int64_t origin_ns);
[[nodiscard]] std::optional<EventRecord> event_of(const Json& line, std::int64_t origin_ns);
// Like plain_step(), for lines without a fault and without processes.
[[nodiscard]] std::optional<DeviceSample> plain_device(std::string_view line,
                                                       std::int64_t origin_ns);
[[nodiscard]] std::optional<DeviceSample> device_of(const Json& line, std::int64_t origin_ns);
[[nodiscard]] std::optional<HostSample> host_of(const Json& line, std::int64_t origin_ns);

[[nodiscard]] Json info_json(const RunInfo& info);
[[nodiscard]] RunInfo info_of(const Json& json);
[[nodiscard]] Json summary_json(const RunSummary& summary);
[[nodiscard]] RunSummary summary_of(const Json& json);

}  // namespace saturate
