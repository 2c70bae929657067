// SPDX-License-Identifier: Apache-2.0
// A terminal that nobody sits at, as the input of a trial: it has a size, as scripts ask for theirs
// (`stty size`), and whoever reads from it finds the end. Lives as long as the trial does.
#pragma once

namespace saturate {

class SilentTerminal {
  public:
    SilentTerminal();
    ~SilentTerminal();
    SilentTerminal(const SilentTerminal&) = delete;
    SilentTerminal& operator=(const SilentTerminal&) = delete;

    // To be the input of a child; -1: this system has no terminals to give.
    [[nodiscard]] int fd() const { return terminal_; }

  private:
    int far_end_ = -1, terminal_ = -1;
};

}  // namespace saturate
