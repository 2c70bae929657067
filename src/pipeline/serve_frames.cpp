// SPDX-License-Identifier: Apache-2.0
#include "pipeline/serve_frames.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace saturate {

namespace {

using Head = std::array<std::int64_t, 5>;

// Only to notice a dead parent while one of its other children keeps the socket open.
constexpr timeval kLookAfter{.tv_sec = 1, .tv_usec = 0};
constexpr std::int64_t kPayloadMax = std::int64_t{1} << 36;

}  // namespace

FrameSocket::FrameSocket(int socket) : socket_(socket), parent_(::getppid()) {
    (void)::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &kLookAfter, sizeof kLookAfter);
}

std::size_t FrameSocket::receive(char* to, std::size_t most) {
    while (true) {
        ssize_t got = ::recv(socket_, to, most, 0);
        if (got >= 0) return static_cast<std::size_t>(got);
        if (errno == EAGAIN && ::getppid() != parent_) return 0;
        if (errno != EINTR && errno != EAGAIN) return 0;
    }
}

bool FrameSocket::read_exactly(char* to, std::size_t bytes) {
    while (bytes > 0) {
        std::size_t part = std::min(bytes, there_ - taken_);
        if (part > 0) {
            std::memcpy(to, came_.data() + taken_, part);
            taken_ += part;
        } else if (bytes >= came_.size()) {
            part = receive(to, bytes);
            if (part == 0) return false;
        } else {
            taken_ = 0;
            there_ = receive(came_.data(), came_.size());
            if (there_ == 0) return false;
        }
        to += part;
        bytes -= part;
    }
    return true;
}

std::optional<Frame> FrameSocket::read() {
    Head head{};
    if (!read_exactly(reinterpret_cast<char*>(head.data()), sizeof head)) return std::nullopt;
    Frame frame{.kind = static_cast<FrameKind>(head[0]), .a = head[2], .b = head[3], .c = head[4]};
    if (head[1] < 0 || head[1] > kPayloadMax) return std::nullopt;
    frame.payload.resize(static_cast<std::size_t>(head[1]));
    if (!read_exactly(frame.payload.data(), frame.payload.size())) return std::nullopt;
    return frame;
}

bool FrameSocket::write(std::string_view bytes) {
    std::lock_guard lock(mutex_);
    while (!bytes.empty()) {
        ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}

bool FrameSocket::write(const Frame& frame, int memory) {
    std::string bytes;
    append_frame(bytes, frame);
    iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof memory)> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof memory);
    std::memcpy(CMSG_DATA(rights), &memory, sizeof memory);
    ssize_t sent = 0;
    {
        std::lock_guard lock(mutex_);
        do {
            sent = ::sendmsg(socket_, &message, MSG_NOSIGNAL);
        } while (sent < 0 && errno == EINTR);
    }
    // Few enough bytes to be sent whole or not at all: the socket blocks until there is room.
    return sent == static_cast<ssize_t>(bytes.size());
}

void append_frame(std::string& out, const Frame& frame) {
    Head head{static_cast<std::int64_t>(frame.kind),
              static_cast<std::int64_t>(frame.payload.size()), frame.a, frame.b, frame.c};
    out.append(reinterpret_cast<const char*>(head.data()), sizeof head);
    out.append(frame.payload);
}

}  // namespace saturate
