// SPDX-License-Identifier: Apache-2.0
// Looks up a finding in the catalogue of remedies and returns the settings that its fix changes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/finding.h"
#include "remedies/facts.h"
#include "telemetry/record_reader.h"

namespace saturate {

// In the order of the catalogue; the settings that accompany a remedy follow it.
[[nodiscard]] std::vector<SettingChange> cures(std::string_view finding, const Facts& facts);
[[nodiscard]] std::string cure_of(const std::vector<SettingChange>& settings,
                                  std::string_view key);  // empty if there is none

// Returns the facts about machine and job that a run record holds, without loader times.
[[nodiscard]] Facts record_facts(const RunRecord& record);

}  // namespace saturate
