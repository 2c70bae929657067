// SPDX-License-Identifier: Apache-2.0
// Speaks to the server as Kineto in a PyTorch process does.
#include "telemetry/kineto_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "base/error.h"
#include "support/run.h"

namespace saturate {
namespace {

class Client {
  public:
    explicit Client(const std::filesystem::path& folder) : server_(address(folder / "dynolog")) {
        fd_ = ::socket(AF_UNIX, SOCK_DGRAM, 0);
        sockaddr_un own = address(folder / "client");
        EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&own), sizeof own), 0);
    }
    ~Client() { ::close(fd_); }

    void send(const std::string& type, const std::vector<std::int32_t>& body) {
        std::string message(40 + body.size() * 4, '\0');
        std::uint64_t size = body.size() * 4;
        std::memcpy(message.data(), &size, 8);
        std::memcpy(message.data() + 8, type.data(), type.size());
        std::memcpy(message.data() + 40, body.data(), size);
        raw(message);
    }
    void raw(const std::string& message) {
        ::sendto(fd_, message.data(), message.size(), 0, reinterpret_cast<sockaddr*>(&server_),
                 sizeof server_);
    }
    // The body of the next answer.
    std::string answer() {
        char message[4096];
        ssize_t got = ::recv(fd_, message, sizeof message, MSG_DONTWAIT);
        return got < 40 ? "none" : std::string(message + 40, static_cast<std::size_t>(got) - 40);
    }

  private:
    static sockaddr_un address(const std::filesystem::path& path) {
        sockaddr_un out{};
        out.sun_family = AF_UNIX;
        std::strncpy(out.sun_path, path.c_str(), sizeof out.sun_path - 1);
        return out;
    }
    int fd_ = -1;
    sockaddr_un server_;
};

// {what, pids, job (two words), pid}
std::vector<std::int32_t> question(std::int32_t what, std::int32_t pid) {
    return {what, 1, 0, 0, pid};
}

const auto always = [](std::int64_t) { return true; };

TEST(KinetoServerTest, GivesTheConfigurationOnceToTheProcessThatIsMeant) {
    TemporaryFolder folder;
    KinetoServer server(folder.path());
    Client client(folder.path());
    client.send("ctxt", {0, 77, 0, 0});
    server.answer(always);
    EXPECT_EQ(client.answer(), std::string("\1\0\0\0", 4));
    EXPECT_TRUE(server.has_asked(77));
    EXPECT_FALSE(server.has_asked(78));

    server.request(77, "A=1\n");
    client.send("req", question(3, 78));
    client.send("req", question(1, 77));  // asks for events, not for traces
    client.send("req", question(3, 77));
    client.send("req", question(3, 77));
    server.answer(always);
    EXPECT_EQ(client.answer(), "");
    EXPECT_EQ(client.answer(), "");
    EXPECT_EQ(client.answer(), "A=1\n");
    EXPECT_EQ(client.answer(), "");
    EXPECT_TRUE(server.is_delivered(77));
    EXPECT_FALSE(server.is_delivered(78));
}

TEST(KinetoServerTest, AWindowThatMayNotBeginWaitsForTheNextQuestion) {
    TemporaryFolder folder;
    KinetoServer server(folder.path());
    Client client(folder.path());
    server.request(77, "A=1\n");
    client.send("req", question(3, 77));
    server.answer([](std::int64_t) { return false; });
    EXPECT_EQ(client.answer(), "");
    EXPECT_FALSE(server.is_delivered(77));
    client.send("req", question(3, 77));
    server.answer(always);
    EXPECT_EQ(client.answer(), "A=1\n");
}

TEST(KinetoServerTest, IgnoresWhatItDoesNotKnow) {
    TemporaryFolder folder;
    KinetoServer server(folder.path());
    Client client(folder.path());
    client.raw("short");
    client.send("odd", {1, 2, 3, 4, 5});
    client.send("req", {1});
    server.answer(always);
    EXPECT_EQ(client.answer(), "none");
}

TEST(KinetoServerTest, SaysWhenTheFolderTakesNoSocket) {
    std::filesystem::path longer = "/tmp/" + std::string(120, 'x');
    EXPECT_THROW(KinetoServer{longer}, MachineError);
}

}  // namespace
}  // namespace saturate
