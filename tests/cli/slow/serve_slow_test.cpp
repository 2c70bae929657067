// SPDX-License-Identifier: Apache-2.0
// serve for longer: a minute of nonsense, and fifty clients of a run that grows.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>

#include "support/fuzz_serve.h"
#include "support/run.h"
#include "support/serving.h"

namespace saturate {
namespace {

TEST(ServeSlowTest, AMinuteOfNonsenseChangesNothing) {
    TemporaryFolder folder;
    EXPECT_EQ(fuzz_serve(SATURATE_BINARY, folder.path(), 60), "");
}

// Fifty pages that listen, and fetch the page whenever they are told to, as a browser does. The
// record has 20 minutes behind it and gets 100 steps a second.
TEST(ServeSlowTest, FiftyClientsTakeUnderTwoPercentOfACore) {
    using Clock = std::chrono::steady_clock;
    constexpr int kClients = 50, kStepsBefore = 120'000;
    constexpr double kSeconds = 60;
    TemporaryFolder folder;
    write_run_record(folder.path(), kStepsBefore);
    Serving server(SATURATE_BINARY, {"--live", folder.path()});
    std::vector<RawClient> clients;
    std::vector<pollfd> waiting;
    for (int i = 0; i < kClients; ++i) {
        clients.emplace_back(server.port());
        clients.back().send("GET /events?of=newest HTTP/1.1\r\nHost: localhost\r\n\r\n");
        waiting.push_back({clients.back().fd(), POLLIN, 0});
    }
    auto start = Clock::now();
    auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    double cpu = server.cpu_seconds(), fetched_bytes = 0;
    int fetches = 0, written = 0;
    while (seconds() < kSeconds) {
        ::poll(waiting.data(), waiting.size(), 100);
        int due = static_cast<int>(seconds() * 100);
        append_steps(folder.path(), kStepsBefore + written, due - written);
        written = due;
        for (int i = 0; i < kClients; ++i) {
            if ((waiting[static_cast<std::size_t>(i)].revents & POLLIN) == 0) continue;
            if (clients[static_cast<std::size_t>(i)].read_until("data: ").find("data: ") ==
                std::string::npos)
                continue;  // a sign of life
            std::string page = http_get(server.port(), "/");
            ASSERT_EQ(http_status(page), "200");
            fetched_bytes += static_cast<double>(page.size());
            ++fetches;
        }
    }
    double share = 100 * (server.cpu_seconds() - cpu) / seconds();
    std::string figures = fmt::format("{:.2f} % of a core, {} pages fetched, {:.0f} KB each", share,
                                      fetches, fetched_bytes / fetches / 1024);
    RecordProperty("figures", figures);
    fmt::print("{}\n", figures);
    EXPECT_GE(fetches, 2 * kClients) << "every page has followed";
    EXPECT_LT(share, 2.0) << figures;
    EXPECT_EQ(server.stop(), 0);
}

}  // namespace
}  // namespace saturate
