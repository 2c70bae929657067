// SPDX-License-Identifier: Apache-2.0
#include "engine/tensorboard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cstring>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/host.h"

namespace saturate {

namespace {

// The subset of protocol buffers that events need: (field << 3 | wire type), then the value.
enum Wire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void varint(std::string& out, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
    out += static_cast<char>(value);
}

template <typename T>
void fixed(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void key(std::string& out, int field, Wire wire) {
    varint(out, static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire));
}

void bytes(std::string& out, int field, std::string_view content) {
    key(out, field, kBytes);
    varint(out, content.size());
    out += content;
}

// Fields of Event: 1 wall_time, 2 step, 3 file_version, 5 summary.
std::string event_head() {
    std::string out;
    key(out, 1, kFixed64);
    fixed(out, static_cast<double>(wall_ns()) / 1e9);
    return out;
}

std::uint32_t masked(std::string_view data) {
    std::uint32_t crc = crc32c(data.data(), data.size());
    return std::rotr(crc, 15) + 0xa282ead8u;
}

}  // namespace

TensorBoardFile::TensorBoardFile(const std::filesystem::path& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    path_ = folder / fmt::format("events.out.tfevents.{}.{}.{}", wall_ns() / 1'000'000'000,
                                 host_name(), ::getpid());
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd_ < 0) {
        throw MachineError({.where = {path_.string()},
                            .found = fmt::format("cannot be written: {}", std::strerror(errno)),
                            .expected = "a folder for TensorBoard's files"});
    }
    std::string event = event_head();
    bytes(event, 3, "brain.Event:2");
    record(event);
    flush();
}

TensorBoardFile::~TensorBoardFile() {
    flush();
    ::close(fd_);
}

// Fields of Summary: 1 value (repeated); of Value: 1 tag, 2 simple_value.
void TensorBoardFile::scalar(std::string_view tag, std::int64_t step, double number) {
    std::string value;
    bytes(value, 1, tag);
    key(value, 2, kFixed32);
    fixed(value, static_cast<float>(number));
    std::string summary;
    bytes(summary, 1, value);
    std::string event = event_head();
    key(event, 2, kVarint);
    varint(event, static_cast<std::uint64_t>(step));
    bytes(event, 5, summary);
    record(event);
}

// A record has its length, a checksum of the length, the event, and a checksum of the event.
void TensorBoardFile::record(const std::string& event) {
    std::string length;
    fixed(length, static_cast<std::uint64_t>(event.size()));
    waiting_ += length;
    fixed(waiting_, masked(length));
    waiting_ += event;
    fixed(waiting_, masked(event));
}

void TensorBoardFile::flush() {
    std::size_t at = 0;
    while (failure_.empty() && at < waiting_.size()) {
        ssize_t done = ::write(fd_, waiting_.data() + at, waiting_.size() - at);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) failure_ = fmt::format("{}: {}", path_.string(), std::strerror(errno));
        if (done > 0) at += static_cast<std::size_t>(done);
    }
    waiting_.clear();
}

}  // namespace saturate
