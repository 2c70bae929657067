// SPDX-License-Identifier: Apache-2.0
// The messages between a Python process and its loader process: a frame is five whole numbers
// (kind, bytes of payload, three that depend on the kind) and the payload. Over a Unix socket, so
// that memory can be handed over with a frame. read() from one thread, write() from any.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace saturate {

enum class FrameKind : std::int64_t {
    // from Python
    open = 1,   // a: bytes of the JSON request, the rest of the payload are its blobs
    start = 2,  // a: epoch, b: batch, c: generation; begins there, whatever went on before
    give = 3,   // a: so many more batches may be sent; payload: slabs that are free again
    stats = 4,
    // to Python
    opened = 11,   // payload: JSON
    slab = 12,     // a: its number, b: bytes; the memory comes along
    batch = 13,    // a: slab, b: samples, c: generation; payload: which samples, if asked for
    end = 14,      // of an epoch; c: generation
    skipped = 15,  // payload: JSON, a sample that cannot be used
    error = 16,    // payload: JSON
    told = 17,     // payload: JSON, the answer to stats
};

struct Frame {
    FrameKind kind = FrameKind::open;
    std::int64_t a = 0, b = 0, c = 0;
    std::string payload = {};
};

class FrameSocket {
  public:
    // Does not own `socket`.
    explicit FrameSocket(int socket);

    // Blocks. Nothing when the other side is gone, or the process that started this one.
    [[nodiscard]] std::optional<Frame> read();
    // Several frames in one go, see append_frame(). False when the other side is gone.
    bool write(std::string_view bytes);
    // A frame with the memory of a slab, which stays open here.
    bool write(const Frame& frame, int memory);

  private:
    [[nodiscard]] bool read_exactly(char* to, std::size_t bytes);
    // What is there, at least a byte; 0 when the other side is gone.
    [[nodiscard]] std::size_t receive(char* to, std::size_t most);

    int socket_;
    pid_t parent_;
    std::array<char, 4096> came_;        // so that a frame takes one system call ...
    std::size_t taken_ = 0, there_ = 0;  // ... and what of it was not asked for yet
    std::mutex mutex_;
};

void append_frame(std::string& out, const Frame& frame);

}  // namespace saturate
