// SPDX-License-Identifier: Apache-2.0
// Runs the ranks of a job as threads of one process, for tests of their cooperation.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/free_port.h"
#include "engine/process_group.h"

namespace saturate {

// Short timeouts, for tests of lost ranks.
inline RankTimes short_times() {
    using std::chrono::milliseconds;
    return {.beat = milliseconds(50),
            .stale = milliseconds(300),
            .lost = milliseconds(600),
            .patience = milliseconds(1500)};
}

// Runs `work` on every rank. Returns the error text of each rank, or "" if it did not throw.
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

// Runs `work` on every rank and expects that none throws.
inline void expect_together(int count, const std::function<void(ProcessGroup&)>& work) {
    for (const std::string& text : on_ranks(count, work)) EXPECT_EQ(text, "");
}

}  // namespace saturate
