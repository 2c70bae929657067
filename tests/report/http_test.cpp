// SPDX-License-Identifier: Apache-2.0
#include "report/http.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "support/serving.h"

namespace saturate {
namespace {

// Sends a request as it stands and gives the whole answer.
std::string ask(const HttpAddress& address, const std::string& request) {
    int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(address.port);
    ::inet_pton(AF_INET, address.host.c_str(), &where.sin_addr);
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&where), sizeof where), 0);
    EXPECT_EQ(::send(fd, request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    std::string out;
    char buffer[4096];
    for (ssize_t got; (got = ::recv(fd, buffer, sizeof buffer, 0)) > 0;)
        out.append(buffer, static_cast<std::size_t>(got));
    ::close(fd);
    return out;
}

std::string get(const HttpAddress& address, const std::string& path,
                const std::string& method = "GET") {
    return ask(address,
               fmt::format("{} {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", method, path));
}

std::string body(const std::string& answer) { return answer.substr(answer.find("\r\n\r\n") + 4); }

std::string message(auto&& act) {
    try {
        act();
    } catch (const Failure& error) {
        return error.what();
    }
    return "";
}

class HttpServerTest : public testing::Test {
  protected:
    HttpServer server{{.host = "127.0.0.1", .port = 0}, "--prometheus"};
};

TEST_F(HttpServerTest, AnswersWithWhatWasPublishedLast) {
    EXPECT_NE(server.address().port, 0);
    server.publish("/metrics", "text/plain", "one 1\n");
    EXPECT_EQ(body(get(server.address(), "/metrics")), "one 1\n");
    server.publish("/metrics", "text/plain", "one 2\n");
    std::string answer = get(server.address(), "/metrics");
    EXPECT_EQ(body(answer), "one 2\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK")) << answer;
    EXPECT_NE(answer.find("Content-Type: text/plain\r\n"), std::string::npos) << answer;
}

TEST_F(HttpServerTest, OtherPathsAre404AndNameWhatIsThere) {
    server.publish("/metrics", "text/plain", "");
    std::string answer = get(server.address(), "/../etc/passwd");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 404")) << answer;
    EXPECT_EQ(body(answer), "not found; this server has:\n/metrics\n");
}

TEST_F(HttpServerTest, OtherMethodsAre405) {
    server.publish("/metrics", "text/plain", "");
    for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
        std::string answer = get(server.address(), "/metrics", method);
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 405")) << method << answer;
        EXPECT_NE(answer.find("Allow: GET"), std::string::npos) << answer;
    }
}

TEST_F(HttpServerTest, AnEndlessHeaderIsRefused) {
    std::string answer = ask(server.address(), "GET /metrics HTTP/1.1\r\nHost: x\r\nX-Long: " +
                                                   std::string(64 * 1024, 'a') + "\r\n\r\n");
    // Hung up on, or told so: never served, and the next one is.
    EXPECT_EQ(answer.find("200 OK"), std::string::npos) << answer;
    server.publish("/metrics", "text/plain", "still here\n");
    EXPECT_EQ(body(get(server.address(), "/metrics")), "still here\n");
}

TEST_F(HttpServerTest, OldAndPipelinedRequestsAreAnswered) {
    server.publish("/metrics", "text/plain", "m\n");
    std::string old = ask(server.address(), "GET /metrics HTTP/1.0\r\n\r\n");
    EXPECT_NE(old.find(" 200 OK"), std::string::npos) << old;
    EXPECT_EQ(body(old), "m\n") << "and closed: this has ended";
    const std::string one = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
    std::string answers =
        ask(server.address(),
            one + one + "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    std::size_t count = 0;
    for (std::size_t at = 0; (at = answers.find("\r\n\r\nm\n", at)) != answers.npos; ++at) ++count;
    EXPECT_EQ(count, 3u) << answers;
}

// A server that would wait for ever for one who is not silent for as long, were it not for the
// time that a whole request and a whole answer may take.
class HttpTimeTest : public testing::Test {
  protected:
    static constexpr std::size_t kLarge = 64 << 20;
    HttpServer server{{.host = "127.0.0.1", .port = 0},
                      "--listen",
                      [](const HttpRequest& request) {
                          bool is_large = request.path == "/large";
                          HttpReply reply =
                              HttpReply::text(200, std::string(is_large ? kLarge : 1, 'x'));
                          if (request.path == "/stream") reply.channel = request.path;
                          return reply;
                      },
                      {.connections = 8,
                       .connections_per_client = 8,
                       .idle_seconds = 3600,
                       .request_time = std::chrono::milliseconds(150),
                       .answer_time = std::chrono::milliseconds(50)}};

    // Sends one byte of a header after another; whether it was hung up on.
    bool trickle(const std::string& start) {
        RawClient client(server.address().port);
        client.send(start);
        for (int i = 0; i < 10'000; ++i) {
            pollfd closed{client.fd(), POLLIN | POLLRDHUP, 0};
            if (::poll(&closed, 1, 5) > 0) return true;
            if (!client.send("a")) return true;
        }
        return false;
    }
};

TEST_F(HttpTimeTest, ARequestThatTricklesIsCutOff) {
    EXPECT_TRUE(trickle("GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "));
    EXPECT_TRUE(trickle("GE"));
    EXPECT_TRUE(trickle("GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;"));
}

TEST_F(HttpTimeTest, TheNextRequestOfAConnectionHasNoMoreTime) {
    RawClient client(server.address().port);
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\nX: ");
    EXPECT_EQ(http_body(client.read_all(60'000)), "x");
    char byte = 0;
    ssize_t got = ::recv(client.fd(), &byte, 1, MSG_DONTWAIT);
    EXPECT_TRUE(got == 0 || errno == ECONNRESET) << "closed, not only silent";
}

TEST_F(HttpTimeTest, AnAnswerThatIsNotTakenIsCutOffAndAStreamIsNot) {
    RawClient listener(server.address().port), sleeper(server.address().port);
    listener.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    listener.read_until("data: x\n\n");
    sleeper.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    sleeper.read_until("HTTP/1.1 200 OK");
    ASSERT_TRUE(trickle("GE")) << "by now the others' time is over too";
    EXPECT_LT(sleeper.read_all().size(), kLarge);
    server.push("/stream", "second");
    EXPECT_NE(listener.read_until("data: second\n\n").find("second"), std::string::npos);
}

TEST_F(HttpTimeTest, HalfOpenConnectionsTakeTheirPlacesForAWhileOnly) {
    std::vector<RawClient> half;
    for (int i = 0; i < 8; ++i) half.emplace_back(server.address().port).send("GET / HT");
    std::string answer;
    for (int tries = 0; tries < 10'000 && answer.empty(); ++tries) {
        RawClient next(server.address().port);
        next.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        answer = next.read_all();
    }
    EXPECT_EQ(http_status(answer), "200") << answer;
}

TEST_F(HttpServerTest, APortInUseIsTheUsersErrorWithAWayOut) {
    HttpAddress taken = server.address();
    EXPECT_EQ(message([&] { HttpServer again(taken, "--prometheus"); }),
              fmt::format("error: --prometheus: 127.0.0.1:{} is in use by another program\n"
                          "  expected: a free port\n  fix:      --prometheus=127.0.0.1:0",
                          taken.port));
    EXPECT_EQ(message([&] { HttpServer again({.host = "192.0.2.1", .port = 0}, "--prometheus"); }),
              "error: --prometheus: 192.0.2.1 is not an address of this machine\n"
              "  expected: 127.0.0.1, 0.0.0.0 for every network, or an address of this machine");
}

// A server whose one handler streams the channel that the path names.
class HttpStreamTest : public testing::Test {
  protected:
    std::unique_ptr<HttpServer> server = std::make_unique<HttpServer>(
        HttpAddress{.host = "127.0.0.1", .port = 0}, "--listen", [](const HttpRequest& request) {
            HttpReply reply = HttpReply::text(200, "first");
            reply.channel = request.path;
            return reply;
        });
    RawClient listen(const std::string& channel) {
        RawClient client(server->address().port);
        client.send(fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", channel));
        std::string start = client.read_until("data: first\n\n");
        EXPECT_NE(start.find("Content-Type: text/event-stream"), std::string::npos) << start;
        EXPECT_NE(start.find("data: first\n\n"), std::string::npos) << start;
        return client;
    }
};

TEST_F(HttpStreamTest, EachChannelHearsItsOwnEvents) {
    RawClient a = listen("/a"), b = listen("/b");
    EXPECT_EQ(server->channels(), (std::vector<std::string>{"/a", "/b"}));
    EXPECT_EQ(server->listeners(), 2u);
    server->push("/a", "for a");
    server->push("/b", "for b");
    EXPECT_NE(a.read_until("data: for a\n\n").find("for a"), std::string::npos);
    std::string heard = b.read_until("data: for b\n\n");
    EXPECT_NE(heard.find("for b"), std::string::npos);
    EXPECT_EQ(heard.find("for a"), std::string::npos);
}

TEST_F(HttpStreamTest, AListenerThatIsGoneIsForgottenAfterABeat) {
    { RawClient gone = listen("/a"); }
    RawClient stays = listen("/b");
    // Its closing may take the kernel a moment, and the server a beat to notice.
    for (int beats = 0; beats < 1000 && server->listeners() > 1; ++beats) {
        server->beat();
        stays.read_until(":\n\n");
    }
    EXPECT_EQ(server->channels(), (std::vector<std::string>{"/b"}));
}

// What waits for one that does not read is the newest event alone, however many there were.
TEST_F(HttpStreamTest, AListenerThatDoesNotReadHoldsNobodyUpAndGetsTheNewest) {
    RawClient sleeper = listen("/a"), reader = listen("/a");
    const std::string large(100'000, 'x');
    for (int i = 0; i < 200; ++i) server->push("/a", large + std::to_string(i) + ".");
    EXPECT_NE(reader.read_until("x199.").find("x199."), std::string::npos);
    std::string got = sleeper.read_until("x199.");
    EXPECT_NE(got.find("x199."), std::string::npos);
    EXPECT_LT(got.size(), 200 * large.size());
}

TEST_F(HttpStreamTest, EndingTheServerEndsTheStreams) {
    RawClient a = listen("/a"), b = listen("/b");
    server.reset();
    for (RawClient* client : {&a, &b}) {
        client->read_all();
        char byte = 0;
        EXPECT_EQ(::recv(client->fd(), &byte, 1, MSG_DONTWAIT), 0) << "closed, not only silent";
    }
}

TEST(HttpAddressTest, ReadsEveryForm) {
    auto text = [](const char* given) { return HttpAddress::parse(given, "--prometheus").text(); };
    EXPECT_EQ(text(""), "127.0.0.1:9838");
    EXPECT_EQ(text("9100"), "127.0.0.1:9100");
    EXPECT_EQ(text(":9100"), "127.0.0.1:9100");
    EXPECT_EQ(text("0.0.0.0"), "0.0.0.0:9838");
    EXPECT_EQ(text("0.0.0.0:9100"), "0.0.0.0:9100");
    EXPECT_EQ(text("[::1]:9100"), "[::1]:9100");
    EXPECT_EQ(text("[::1]"), "[::1]:9838");
    for (const char* bad :
         {"65536", "-1", "abc", "host.example:9100", "1.2.3.4.5", "[::1", "1:2:3"}) {
        EXPECT_EQ(
            message([&] { text(bad); }),
            fmt::format("error: --prometheus is \"{}\"\n"
                        "  expected: PORT, ADDRESS or ADDRESS:PORT, such as 9838 or 0.0.0.0:9838",
                        bad));
    }
}

}  // namespace
}  // namespace saturate
