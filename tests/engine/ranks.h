// SPDX-License-Identifier: Apache-2.0
// Ranks of a job as threads of one process, for the tests of what they do together.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/free_port.h"
#include "engine/process_group.h"

namespace saturate {

// Quick to give up, for tests of ranks that are lost.
inline RankTimes short_times() {
    using std::chrono::milliseconds;
    return {.beat = milliseconds(50),
            .stale = milliseconds(300),
            .lost = milliseconds(600),
            .patience = milliseconds(1500)};
}

// Runs `work` on every rank; what each threw as text, empty when it did not.
inline std::vector<std::string> on_ranks(int count, const std::function<void(ProcessGroup&)>& work,
                                         RankTimes times = {}) {
    int port = free_port();
    std::vector<std::string> said(static_cast<std::size_t>(count));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < count; ++rank) {
        threads.emplace_back([&, rank] {
            try {
                ProcessGroup group({.rank = rank, .count = count, .port = port, .times = times});
                work(group);
            } catch (const std::exception& error) {
                said[static_cast<std::size_t>(rank)] = error.what();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    return said;
}

// A test that no rank complains.
inline void expect_together(int count, const std::function<void(ProcessGroup&)>& work) {
    for (const std::string& text : on_ranks(count, work)) EXPECT_EQ(text, "");
}

}  // namespace saturate
