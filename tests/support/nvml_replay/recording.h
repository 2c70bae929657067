// SPDX-License-Identifier: Apache-2.0
// A recording of NVML's answers (docs/nvml-recording.md), looked up by GPU, call, selector and
// time. Constant after reading, so any thread may use it. Values stay text until they are needed,
// so that a benchmark measures the GPU reader and not this class.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace saturate::nvml_replay {

struct Question {
    int gpu = -1;  // -1: the system
    std::string_view call;
    std::int64_t arg = -1;
    std::int64_t scope = 0;
    auto operator<=>(const Question&) const = default;
};

struct Answer {
    Question question;
    double t = 0;
    int rc = 0;
    int type = 3;           // nvmlValueType_t
    std::string_view text;  // the value as JSON; empty if none

    [[nodiscard]] Json value() const { return text.empty() ? Json() : Json::parse(text, "value"); }
};

class Recording {
  public:
    // Throws UserError with file and line.
    static Recording read(const std::string& path);

    [[nodiscard]] const Json& header() const { return header_; }
    [[nodiscard]] int gpu_count() const { return static_cast<int>(header_["gpus"].items().size()); }
    [[nodiscard]] const Json& gpu(int index) const;  // the GPU's part of the header

    // Returns the answer that is valid at `t`, or null if the call was never recorded.
    [[nodiscard]] const Answer* at(const Question& question, double t) const;
    // Returns all answers by time, for calls that accumulate lines (Samples, ProcessUtilization).
    [[nodiscard]] std::span<const Answer> all(const Question& question) const;

  private:
    Answer read_line(std::string_view line, const std::string& path, int number) const;

    std::unique_ptr<std::string> text_;  // the answers point into it
    Json header_;
    std::vector<Answer> answers_;  // sorted by question, then time
};

}  // namespace saturate::nvml_replay
