// SPDX-License-Identifier: Apache-2.0
#include "telemetry/kineto_server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace saturate {

namespace {

constexpr std::size_t kHeadBytes = 40;   // size and type
constexpr std::int32_t kActivities = 2;  // bit of a request: asks for traces, not for events

template <typename T>
T value_at(const char* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

void send_to(int fd, const sockaddr_un& to, socklen_t length, std::string_view type,
             std::string_view body) {
    std::string message(kHeadBytes, '\0');
    std::uint64_t size = body.size();
    std::memcpy(message.data(), &size, sizeof size);
    std::memcpy(message.data() + 8, type.data(), type.size());
    message += body;
    // Ignore errors: the process may have ended.
    ::sendto(fd, message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&to), length);
}

}  // namespace

KinetoServer::KinetoServer(const std::filesystem::path& folder) : path_(folder / "dynolog") {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::string text = path_.string();
    int error = ENAMETOOLONG;
    if (text.size() < sizeof address.sun_path) {
        std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
        socket_ = Descriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        bool is_bound =
            socket_.is_open() &&
            ::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
        error = is_bound ? 0 : errno;
    }
    if (error == 0) return;
    throw MachineError({.where = {text},
                        .found = fmt::format("cannot create a socket: {}", std::strerror(error)),
                        .expected = "a folder with a short path, in which sockets can be created"});
}

KinetoServer::~KinetoServer() { ::unlink(path_.c_str()); }

void KinetoServer::answer(const std::function<bool(std::int64_t pid)>& may_begin) {
    char message[8192];
    while (true) {
        sockaddr_un from{};
        socklen_t length = sizeof from;
        ssize_t got = ::recvfrom(socket_.get(), message, sizeof message, 0,
                                 reinterpret_cast<sockaddr*>(&from), &length);
        if (got < 0) return;
        if (static_cast<std::size_t>(got) < kHeadBytes) continue;
        std::string type(message + 8, ::strnlen(message + 8, 32));
        const char* body = message + kHeadBytes;
        std::size_t size = static_cast<std::size_t>(got) - kHeadBytes;
        if (type == "ctxt" && size >= 16) {
            asked_.insert(value_at<std::int32_t>(body + 4));
            auto known = static_cast<std::int32_t>(asked_.size());
            send_to(socket_.get(), from, length, "ctxt",
                    {reinterpret_cast<const char*>(&known), sizeof known});
        } else if (type == "req" && size >= 20) {
            auto what = value_at<std::int32_t>(body);
            std::int64_t pid = value_at<std::int32_t>(body + 16);
            asked_.insert(pid);
            std::string configuration;
            auto wanted = wanted_.find(pid);
            if ((what & kActivities) != 0 && wanted != wanted_.end() && may_begin(pid)) {
                configuration = std::move(wanted->second);
                wanted_.erase(wanted);
                delivered_.insert(pid);
            }
            send_to(socket_.get(), from, length, "req", configuration);
        }
    }
}

std::string KinetoServer::window(const std::filesystem::path& file, int milliseconds) {
    return fmt::format(
        "ACTIVITIES_LOG_FILE={}\nACTIVITIES_WARMUP_PERIOD_SECS={}\nACTIVITIES_DURATION_MSECS={}\n"
        "PROFILE_REPORT_INPUT_SHAPES=true\nPROFILE_WITH_STACK=false\n",
        file.string(), kWarmUpNs / 1'000'000'000, milliseconds);
}

}  // namespace saturate
