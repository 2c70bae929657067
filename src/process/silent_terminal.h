// SPDX-License-Identifier: Apache-2.0
// The input of a trial: a terminal without a user. It has a size, because scripts ask for it (`stty
// size`), and a read from it gets end-of-file. Lives as long as the trial.
#pragma once

namespace saturate {

class SilentTerminal {
  public:
    SilentTerminal();
    ~SilentTerminal();
    SilentTerminal(const SilentTerminal&) = delete;
    SilentTerminal& operator=(const SilentTerminal&) = delete;

    // Input of a child; -1: no terminal is available here.
    [[nodiscard]] int fd() const { return terminal_; }

  private:
    int far_end_ = -1, terminal_ = -1;
};

}  // namespace saturate
