// SPDX-License-Identifier: Apache-2.0
// The live view of monitor on a terminal: numbers, graphs and processes, redrawn at each tick.
// Owned by cmd_monitor, used from its one thread. Keys other than quit stay inside (pause, GPU,
// units), as does a change of the terminal's size.
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
    // Takes the terminal over. Throws MachineError when it is none or cannot be drawn on.
    explicit Screen(const ScreenSettings& settings);
    ~Screen();  // gives the terminal back as it was
    Screen(const Screen&) = delete;
    Screen& operator=(const Screen&) = delete;

    void update(const Snapshot& snapshot);

    enum class Key { none, quit };
    // Handles what was typed and a changed size, without waiting. Called when input_fd() has input,
    // after SIGWINCH, and before each update.
    Key key();
    [[nodiscard]] int input_fd() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
