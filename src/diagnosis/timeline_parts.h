// SPDX-License-Identifier: Apache-2.0
// The stages of make_timeline() in the order in which they run. The busy time is computed between
// find_steady() and judge_gaps(), in timeline.cpp. Only timeline*.cpp files include this header.
#pragma once

#include <algorithm>

#include "diagnosis/timeline.h"

namespace saturate {

// timeline_window.cpp: chooses the GPU to analyse, the window and its steps, and collects the GPU
// events in it with their launches and the launching threads.
void choose_window(Timeline& line);

// timeline_steady.cpp: leaves out the time that a longer run does not repeat.
void find_steady(Timeline& line);

// timeline_gaps.cpp: charges every gap to its causes and sums them up for the window and the steps.
void judge_gaps(Timeline& line);

// Finds the step that a time belongs to: the last one that started.
class StepCursor {
  public:
    explicit StepCursor(Timeline& line) : line_(line) {}
    // Calls part(step, nanoseconds) for each step that [start, end) touches. Call in order of time.
    template <typename Part>
    void split(std::int64_t start, std::int64_t end, Part part) {
        while (at_ + 1 < line_.steps.size() && line_.steps[at_ + 1].start_ns <= start) ++at_;
        std::size_t step = at_;
        while (start < end) {
            std::int64_t stop = step + 1 < line_.steps.size()
                                    ? std::min(end, std::max(start, line_.steps[step + 1].start_ns))
                                    : end;
            if (stop > start) part(line_.steps[step], stop - start);
            start = stop;
            if (start < end) ++step;
        }
    }

  private:
    Timeline& line_;
    std::size_t at_ = 0;
};

}  // namespace saturate
