// SPDX-License-Identifier: Apache-2.0
// The samples that cannot be used: each counted once, named in an event, and the end of the run
// when they are too many. Used by the loader's workers; any thread.
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
    // `samples`: that can be drawn.
    Faults(std::int64_t samples, std::int64_t most, Recorder& recorder)
        : samples_(samples), most_(most), recorder_(recorder) {}

    [[nodiscard]] bool is_bad(std::int64_t index) const;
    [[nodiscard]] std::int64_t count() const { return count_; }
    // Throws UserError when there are more than allowed, or no good sample is left.
    void add(std::int64_t index, const std::string& name, const std::string& why);

  private:
    std::int64_t samples_, most_;
    Recorder& recorder_;
    std::atomic<std::int64_t> count_ = 0;
    mutable std::mutex mutex_;
    std::set<std::int64_t> bad_;
};

}  // namespace saturate
