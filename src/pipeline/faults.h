// SPDX-License-Identifier: Apache-2.0
// Keeps the list of unusable samples: counts each once, names it in an event, and ends the run if
// there are too many. Used by the loader's workers; any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>

#include "telemetry/recorder.h"

namespace saturate {

class Faults {
  public:
    // `samples`: how many can be drawn.
    Faults(std::int64_t samples, std::int64_t most, Recorder& recorder)
        : samples_(samples), most_(most), recorder_(recorder) {}

    [[nodiscard]] bool is_bad(std::int64_t index) const;
    [[nodiscard]] std::int64_t count() const { return count_; }
    // Throws UserError if more samples are bad than allowed, or no good sample is left.
    void add(std::int64_t index, const std::string& name, const std::string& why);

  private:
    std::int64_t samples_, most_;
    Recorder& recorder_;
    std::atomic<std::int64_t> count_ = 0;
    mutable std::mutex mutex_;
    std::set<std::int64_t> bad_;
};

}  // namespace saturate
