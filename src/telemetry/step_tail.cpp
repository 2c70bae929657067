// SPDX-License-Identifier: Apache-2.0
#include "telemetry/step_tail.h"

#include <fstream>

#include "base/error.h"
#include "telemetry/record_json.h"

namespace saturate {

namespace {
constexpr std::size_t kMostBytes = 4u << 20;  // per call: about 20,000 steps
}

std::vector<StepRecord> StepTail::next() {
    std::ifstream file(folder_ / "steps.jsonl", std::ios::binary);
    if (!file || !file.seekg(read_bytes_)) return {};
    std::string text(kMostBytes, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    std::vector<StepRecord> steps;
    std::size_t at = 0;
    for (std::size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
        try {
            std::string_view line = std::string_view(text).substr(at, end - at);
            auto step = plain_step(line, 0);
            if (!step) step = step_of(Json::parse(line, ""), 0);
            if (step) steps.push_back(*step);
        } catch (const UserError&) {
        }
    }
    // We never write a line longer than the buffer; skip it, or it would be read for ever.
    if (at == 0 && text.size() == kMostBytes) at = kMostBytes;
    read_bytes_ += static_cast<std::streamoff>(at);
    return steps;
}

}  // namespace saturate
