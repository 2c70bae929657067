// SPDX-License-Identifier: Apache-2.0
// The live view on a real terminal, in tmux: start, keys, resize, quit.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "support/replayed.h"

namespace saturate {
namespace {

// A tmux server of its own, gone after the test.
class Terminal {
  public:
    Terminal(const std::string& command, const std::map<std::string, std::string>& environment,
             const std::string& size_x, const std::string& size_y)
        : socket_(fmt::format("saturate-test-{}", ::getpid())) {
        std::string line;
        for (const auto& [name, value] : environment) line += fmt::format("{}='{}' ", name, value);
        tmux({"-f", "/dev/null", "new-session", "-d", "-x", size_x, "-y", size_y,
              line + command + "; echo \"status $?\"; exec cat"});
    }
    ~Terminal() { tmux({"kill-server"}); }

    Ran tmux(std::vector<std::string> words) const {
        words.insert(words.begin(), {"tmux", "-u", "-L", socket_});
        return run(words, {.environment = {{"TMUX", ""}}});
    }
    [[nodiscard]] std::string pane() const { return tmux({"capture-pane", "-p"}).out; }
    // Looks until the text stands there; false after 20 s.
    [[nodiscard]] bool shows(const std::string& text) const {
        for (int look = 0; look < 400; ++look) {
            if (pane().find(text) != std::string::npos) return true;
            ::poll(nullptr, 0, 50);
        }
        return false;
    }

  private:
    std::string socket_;
};

class MonitorScreenTest : public testing::Test {
  protected:
    void SetUp() override {
        if (run({"tmux", "-V"}).status != 0) GTEST_SKIP() << "tmux is not installed";
    }
    std::map<std::string, std::string> environment_ = [] {
        auto out = replay_environment({.scenario = "gpu_lost"}, SATURATE_NVML_REPLAY);
        out["TERM"] = "screen-256color";
        return out;
    }();
    std::string command_ = std::string(SATURATE_BINARY) + " monitor --interval 0.1 --duration 0";
};

TEST_F(MonitorScreenTest, StartsFollowsKeysAndSizeAndQuits) {
    Terminal terminal(command_, environment_, "100", "30");
    ASSERT_TRUE(terminal.shows("H100 80GB HBM3")) << terminal.pane();
    EXPECT_TRUE(terminal.shows("Util       │")) << terminal.pane();
    EXPECT_TRUE(terminal.shows("lost: GPU is lost")) << terminal.pane();
    EXPECT_TRUE(terminal.shows("g GPU: all")) << terminal.pane();

    terminal.tmux({"send-keys", "g"});
    EXPECT_TRUE(terminal.shows("g GPU: 0")) << terminal.pane();
    terminal.tmux({"send-keys", "u"});
    EXPECT_TRUE(terminal.shows("64.4/86 GB")) << terminal.pane();
    terminal.tmux({"send-keys", "p"});
    EXPECT_TRUE(terminal.shows("[paused]")) << terminal.pane();
    terminal.tmux({"send-keys", "p"});

    terminal.tmux({"resize-window", "-x", "50", "-y", "12"});
    EXPECT_TRUE(terminal.shows("GPU   Util Memory   Temp")) << terminal.pane();
    EXPECT_EQ(terminal.pane().find("│"), std::string::npos) << "no graph on a small terminal";
    terminal.tmux({"resize-window", "-x", "120", "-y", "40"});
    EXPECT_TRUE(terminal.shows("Throttled by")) << terminal.pane();

    terminal.tmux({"send-keys", "q"});
    EXPECT_TRUE(terminal.shows("status ")) << terminal.pane();
    EXPECT_EQ(terminal.pane().find("q quit"), std::string::npos) << "the terminal is given back";
}

TEST_F(MonitorScreenTest, SpeaksChinese) {
    Terminal terminal(command_ + " --lang zh", environment_, "100", "30");
    EXPECT_TRUE(terminal.shows(
        "GPU 名称                   利用率    SM            显存         功耗   温度      频率"))
        << terminal.pane();
    EXPECT_TRUE(terminal.shows("q 退出  p 暂停")) << terminal.pane();
    terminal.tmux({"send-keys", "q"});
    EXPECT_TRUE(terminal.shows("status ")) << terminal.pane();
}

}  // namespace
}  // namespace saturate
