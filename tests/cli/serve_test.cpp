// SPDX-License-Identifier: Apache-2.0
// serve as a process: what a browser, a stranger and a growing record meet.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "support/fuzz_serve.h"
#include "support/run.h"
#include "support/serving.h"

namespace saturate {
namespace {

using testing::HasSubstr;

class ServeTest : public testing::Test {
  protected:
    ServeTest() {
        write_run_record(root() / "before", 200, 1'000);
        write_run_record(root() / "after", 300, 2'000);
    }
    std::filesystem::path root() const { return folder_.path() / "runs"; }
    TemporaryFolder folder_;
};

TEST_F(ServeTest, AnswersListPageAndFileAndEndsWithStatus0) {
    Serving server(SATURATE_BINARY, {root()});
    EXPECT_EQ(server.url(), fmt::format("http://127.0.0.1:{}/", server.port()));
    std::string list = http_get(server.port(), "/");
    EXPECT_EQ(http_status(list), "200");
    EXPECT_THAT(list, HasSubstr("href=\"run?id=before\""));
    EXPECT_THAT(list, HasSubstr("Content-Security-Policy: default-src 'none'"));
    EXPECT_THAT(http_get(server.port(), "/run?id=before&id=after"), HasSubstr("<h2>Comparison"));
    EXPECT_THAT(http_get(server.port(), "/report.json?id=before"), HasSubstr("\"steps\": 200"));
    EXPECT_EQ(server.stop(), 0);
}

TEST_F(ServeTest, RefusesOtherHostsOriginsMethodsAndPlaces) {
    std::ofstream(folder_.path() / "secret.txt") << "the secret";
    Serving server(SATURATE_BINARY, {root()});
    auto status = [&](const std::string& target, const std::string& headers = "",
                      const std::string& host = "localhost") {
        std::string answer = http_get(server.port(), target, headers, host);
        EXPECT_THAT(answer, testing::Not(HasSubstr("the secret"))) << target;
        return http_status(answer);
    };
    EXPECT_EQ(status("/", "", "evil.example"), "421");
    EXPECT_EQ(status("/", "Origin: http://evil.example\r\n"), "403");
    for (const char* target :
         {"/../secret.txt", "/..%2fsecret.txt", "/%2e%2e/secret.txt", "/run?id=../secret.txt",
          "/run?id=..%2Fsecret", "/report.html?id=..", "/events?id=/etc", "/run.json",
          "/before/run.json", "/run?id=before%00", "/run?id=%2e%2e%2f%2e%2e%2fetc%2fpasswd"})
        EXPECT_EQ(status(target), "404") << target;
    for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "HEAD", "TRACE"}) {
        RawClient client(server.port());
        client.send(
            fmt::format("{} / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", method));
        EXPECT_EQ(http_status(client.read_all()), "405") << method;
    }
}

TEST_F(ServeTest, AGrowingRunIsToldToThoseWhoListen) {
    Serving server(SATURATE_BINARY, {"--live", root() / "after"});
    std::string page = http_body(http_get(server.port(), "/"));
    EXPECT_THAT(page, HasSubstr("\"steps\": 300"));
    RawClient listener(server.port());
    listener.send("GET /events?of=newest HTTP/1.1\r\nHost: localhost\r\n\r\n");
    std::string first = listener.read_until("\n\n");
    EXPECT_THAT(first, HasSubstr("Content-Type: text/event-stream"));
    append_steps(root() / "after", 300, 100);
    EXPECT_THAT(listener.read_until("data: "), HasSubstr("data: "));
    EXPECT_THAT(http_body(http_get(server.port(), "/")), HasSubstr("\"steps\": 400"));
}

// A client that listens and never reads, and one that never ends its request, hold nobody up.
TEST_F(ServeTest, ClientsThatDoNotReadHoldNobodyUp) {
    Serving server(SATURATE_BINARY, {root()});
    std::vector<RawClient> idle;
    for (int i = 0; i < 100; ++i) {
        idle.emplace_back(server.port());
        idle.back().send(i % 2 == 0 ? "GET /events?of=list HTTP/1.1\r\nHost: localhost\r\n\r\n"
                                    : "GET /run?id=after HTTP/1.1\r\nHost: localhost\r\nX: ");
    }
    EXPECT_EQ(http_status(http_get(server.port(), "/run?id=before")), "200");
    EXPECT_EQ(server.stop(), 0) << "and do not keep it from ending";
}

TEST_F(ServeTest, EndsWithTheProcessThatItBelongsTo) {
    Ran ran = run({"bash", "-c",
                   "exec 3< <(exec \"$0\" serve --listen=127.0.0.1:0 --pid $$ \"$1\"); read url "
                   "<&3; echo \"$url\"",
                   SATURATE_BINARY, root()});
    EXPECT_THAT(ran.out, HasSubstr("http://127.0.0.1:"));
    // The bash is gone: so is, soon, the server.
    auto port = static_cast<std::uint16_t>(std::stoi(ran.out.substr(ran.out.rfind(':') + 1)));
    bool is_there = true;
    for (int tries = 0; is_there && tries < 2000; ++tries) {
        try {
            http_get(port, "/");
        } catch (const std::runtime_error&) {
            is_there = false;
        }
    }
    EXPECT_FALSE(is_there);
}

TEST_F(ServeTest, AnotherAddressAsksForTheTokenThatItPrinted) {
    Serving server(SATURATE_BINARY, {"--token", root()});
    std::size_t at = server.url().find("/?token=");
    ASSERT_NE(at, std::string::npos) << server.url();
    EXPECT_EQ(http_status(http_get(server.port(), "/")), "401");
    EXPECT_EQ(http_status(http_get(server.port(), "/?token=0123")), "401");
    std::string answer = http_get(server.port(), server.url().substr(at));
    EXPECT_EQ(http_status(answer), "303");
    std::string token = server.url().substr(at + 8);
    EXPECT_EQ(http_status(http_get(server.port(), "/", "Cookie: saturate_token=" + token + "\r\n")),
              "200");
}

TEST_F(ServeTest, MistakesAreTheUsers) {
    Ran none = run({SATURATE_BINARY, "serve"});
    EXPECT_EQ(none.status, 2);
    EXPECT_EQ(none.err,
              "error: nothing to serve\n"
              "  expected: one folder: a run record, or a folder that holds some; or --live\n"
              "  fix:      saturate serve runs\n");
    Ran nowhere = run({SATURATE_BINARY, "serve", "nowhere"});
    EXPECT_EQ(nowhere.status, 2);
    EXPECT_EQ(nowhere.err,
              "error: nowhere: no such folder\n"
              "  expected: a run record, or a folder that holds some\n");
    Ran address = run({SATURATE_BINARY, "serve", root(), "--listen", "here"});
    EXPECT_EQ(address.status, 2);
    EXPECT_EQ(address.err,
              "error: --listen is \"here\"\n"
              "  expected: PORT, ADDRESS or ADDRESS:PORT, such as 8765 or 0.0.0.0:8765\n");
}

TEST_F(ServeTest, TwoSecondsOfNonsenseChangeNothing) {
    EXPECT_EQ(fuzz_serve(SATURATE_BINARY, folder_.path() / "fuzz", 2), "");
}

// The page belongs to the job: it is there while the job runs, and shows its record.
TEST_F(ServeTest, RunServesItsOwnRecord) {
    std::string record = folder_.path() / "record";
    Ran ran = run({SATURATE_BINARY, "run", "--serve=127.0.0.1:0", "-o", record, "--", "bash", "-c",
                   "echo started"});
    EXPECT_EQ(ran.status, 0);
    EXPECT_THAT(ran.err, HasSubstr("saturate: the live page is http://127.0.0.1:"));
    Ran taken = run({SATURATE_BINARY, "run", "--serve=192.0.2.1:0", "-o", record + "2", "--",
                     "bash", "-c", "echo started"});
    EXPECT_EQ(taken.status, 125);
    EXPECT_EQ(taken.out, "") << "the command is not started";
    EXPECT_THAT(taken.err, HasSubstr("192.0.2.1 is not an address of this machine"));
    EXPECT_THAT(taken.err, HasSubstr("error: --serve: there is no page server"));
}

TEST_F(ServeTest, MonitorServesWhileItWatches) {
    std::string script =
        "cd \"$1\"; \"$0\" monitor --serve=127.0.0.1:0 --json --interval 0.1 >/dev/null 2>err & "
        "pid=$!; while kill -0 $pid; do url=$(sed -n 's/.*the live page is //p' err); "
        "[ -z \"$url\" ] || page=$(curl -s \"$url\"); case $page in *'<h2>Measured'*) break;; "
        "esac; done; kill $pid; wait $pid; echo \"$page\"";
    if (run({"sh", "-c", "command -v curl"}).status != 0) GTEST_SKIP() << "curl is not installed";
    Ran ran = run({"bash", "-c", script, SATURATE_BINARY, folder_.path()});
    EXPECT_THAT(ran.out, HasSubstr("<html lang=\"en\">"));
    EXPECT_THAT(ran.out, HasSubstr(">running<"));
}

TEST_F(ServeTest, TrainServesItsOwnRecord) {
#ifndef SATURATE_HAS_ENGINE
    GTEST_SKIP() << "built without LibTorch";
#endif
    folder_.file("c.yaml", "job: tiny_mlp\ndataset_size: 512\nepochs: 2\nthreads: 1\n");
    RunWhere there{.folder = folder_.path()};
    std::vector<std::string> command{SATURATE_BINARY, "train", "--config", "c.yaml",
                                     "--device",      "cpu",   "--quiet"};
    auto with = [&](std::vector<std::string> words) {
        words.insert(words.begin(), command.begin(), command.end());
        return run(words, there);
    };
    Ran ran = with({"--serve=127.0.0.1:0", "-o", "record"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("the live page is http://127.0.0.1:"));
    Ran nowhere = with({"--serve=192.0.2.1:0", "-o", "other"});
    EXPECT_EQ(nowhere.status, 2);
    EXPECT_THAT(nowhere.err, HasSubstr("error: --serve: there is no page server"));
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "other")) << "nothing was begun";
}

}  // namespace
}  // namespace saturate
