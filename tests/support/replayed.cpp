// SPDX-License-Identifier: Apache-2.0
#include "support/replayed.h"

#include <cstring>

#include "base/file.h"
#include "base/text.h"

namespace saturate {

std::map<std::string, std::string> replay_environment(const Replayed& replayed,
                                                      const std::string& replay_folder) {
    return {
        {"LD_LIBRARY_PATH", replay_folder + "/" + replayed.variant},
        {"SATURATE_NVML_RECORDING", replay_folder + "/scenarios/" + replayed.scenario + ".jsonl"},
        {"SATURATE_NVML_CLOCK", replayed.clock}};
}

std::map<std::string, std::uint64_t> replay_calls(const std::filesystem::path& file) {
    constexpr std::size_t kRecord = 64, kName = 56;
    std::string bytes = read_file(file, 1 << 20, "the counts");
    std::map<std::string, std::uint64_t> out;
    for (std::size_t at = 0; at + kRecord <= bytes.size(); at += kRecord) {
        std::uint64_t count = 0;
        std::memcpy(&count, bytes.data() + at + kName, sizeof count);
        if (count) out[bytes.c_str() + at] = count;
    }
    return out;
}

std::vector<Json> json_lines(const std::string& text) {
    std::vector<Json> out;
    for (std::string_view line : split(text, '\n')) {
        if (!trim(line).empty()) out.push_back(Json::parse(line, "stdout"));
    }
    return out;
}

}  // namespace saturate
