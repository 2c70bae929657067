// SPDX-License-Identifier: Apache-2.0
// What a search says while it works, on stderr: a line per trial, and on a terminal what is being
// measured now with the time that is gone.
#pragma once

#include <string>

namespace saturate {

class TuneProgress {
  public:
    TuneProgress(bool quiet, double budget_seconds);
    void line(const std::string& text);
    // Replaced by whatever comes next.
    void working(const std::string& what, double seconds);

  private:
    bool quiet_, on_terminal_;
    double budget_seconds_;
};

}  // namespace saturate
