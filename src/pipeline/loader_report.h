// SPDX-License-Identifier: Apache-2.0
// What the loader leaves in the run record: a note at the end of an epoch, not more often than
// every few seconds, and one when it ends. Used by the loader from the consumer's thread.
#pragma once

#include <cstdint>

#include "base/json.h"
#include "pipeline/loader.h"

namespace saturate {

[[nodiscard]] Json loader_json(const LoaderStats& stats);

class LoaderReporter {
  public:
    explicit LoaderReporter(Recorder& recorder) : recorder_(recorder) {}
    void write_now_and_then(const LoaderStats& stats);
    void write(const LoaderStats& stats);  // nothing when no batch was given out

  private:
    Recorder& recorder_;
    std::int64_t last_ns_ = 0;
};

}  // namespace saturate
