// SPDX-License-Identifier: Apache-2.0
// Writes the loader's statistics to the run record: a note at the end of an epoch, at most every
// few seconds, and one when the loader ends. Called from the consumer's thread.
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
    void write(const LoaderStats& stats);  // writes nothing if no batch was returned

  private:
    Recorder& recorder_;
    std::int64_t last_ns_ = 0;
};

}  // namespace saturate
