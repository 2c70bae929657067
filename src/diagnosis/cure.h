// SPDX-License-Identifier: Apache-2.0
// What the catalogue of remedies says to a finding, as the settings that its fix changes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/finding.h"
#include "remedies/facts.h"
#include "telemetry/record_reader.h"

namespace saturate {

// In order of the catalogue; what goes along with a remedy follows it.
[[nodiscard]] std::vector<SettingChange> cures(std::string_view finding, const Facts& facts);
[[nodiscard]] std::string cure_of(const std::vector<SettingChange>& settings,
                                  std::string_view key);  // empty: not among them

// What a run record tells of machine and job; without times of the loader.
[[nodiscard]] Facts record_facts(const RunRecord& record);

}  // namespace saturate
