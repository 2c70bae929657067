// SPDX-License-Identifier: Apache-2.0
// The live view of monitor on a terminal: numbers, graphs and processes, redrawn at each tick.
// cmd_monitor owns it and uses it from one thread. Handles all keys except quit itself (pause, GPU,
// units), and changes of the terminal size.
#pragma once

#include <memory>

#include "telemetry/sample.h"
#include "telemetry/thresholds.h"
#include "words/words.h"

namespace saturate {

struct ScreenSettings {
    Thresholds thresholds;
    Language language = Language::english;
    bool colour = true;
};

class Screen {
  public:
    // Takes over the terminal. Throws MachineError if there is none or it cannot be drawn on.
    explicit Screen(const ScreenSettings& settings);
    ~Screen();  // restores the terminal
    Screen(const Screen&) = delete;
    Screen& operator=(const Screen&) = delete;

    void update(const Snapshot& snapshot);

    enum class Key { none, quit };
    // Handles typed keys and a changed size, without waiting. Call it if input_fd() has input,
    // after SIGWINCH, and before each update.
    Key key();
    [[nodiscard]] int input_fd() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
