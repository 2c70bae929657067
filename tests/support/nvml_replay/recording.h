// SPDX-License-Identifier: Apache-2.0
// A recording of NVML's answers (docs/nvml-recording.md), looked up by GPU, call, selector and
// time. Read once, then constant: any thread may ask.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/json.h"

namespace saturate::nvml_replay {

struct Answer {
    double t = 0;
    int rc = 0;
    int type = 3;  // nvmlValueType_t
    Json value;
};

struct Question {
    int gpu = -1;  // -1: the system
    std::string_view call;
    std::int64_t arg = -1;
    std::int64_t scope = 0;
};

class Recording {
  public:
    // Throws UserError naming file and line.
    static Recording read(const std::string& path);

    [[nodiscard]] const Json& header() const { return header_; }
    [[nodiscard]] int gpu_count() const { return static_cast<int>(header_["gpus"].items().size()); }
    [[nodiscard]] const Json& gpu(int index) const;  // its part of the header

    // The answer that holds at `t`; null when the call was never recorded.
    [[nodiscard]] const Answer* at(const Question& question, double t) const;
    // All answers, for the calls whose lines add up (Samples, ProcessUtilization); null when none.
    [[nodiscard]] const std::vector<Answer>* all(const Question& question) const;

  private:
    using Key = std::tuple<int, std::string, std::int64_t, std::int64_t>;
    struct Less {
        using is_transparent = void;
        using View = std::tuple<int, std::string_view, std::int64_t, std::int64_t>;
        static View view(const Key& key) {
            return {std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key)};
        }
        static View view(const Question& q) { return {q.gpu, q.call, q.arg, q.scope}; }
        bool operator()(const auto& a, const auto& b) const { return view(a) < view(b); }
    };

    Json header_;
    std::map<Key, std::vector<Answer>, Less> answers_;
};

}  // namespace saturate::nvml_replay
