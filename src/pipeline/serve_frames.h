// SPDX-License-Identifier: Apache-2.0
// The messages between a Python process and its loader process. A frame is five whole numbers
// (kind, bytes of payload, three that depend on the kind) and the payload. Sent over a Unix socket,
// because it can also pass memory along with a frame. read() from one thread, write() from any.
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
    open = 1,   // a: bytes of the JSON request; the rest of the payload are its blobs
    start = 2,  // a: epoch, b: batch, c: generation; restarts there in any state
    give = 3,   // a: how many more batches may be sent; payload: slabs that are free again
    stats = 4,
    // to Python
    opened = 11,   // payload: JSON
    slab = 12,     // a: its number, b: bytes; passes the memory along
    batch = 13,    // a: slab, b: samples, c: generation; payload: sample indices, if requested
    end = 14,      // of an epoch; c: generation
    skipped = 15,  // payload: JSON, an unusable sample
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

    // Blocks. Returns nothing if the other side or the parent process is gone.
    [[nodiscard]] std::optional<Frame> read();
    // Sends one or more frames made by append_frame(). Returns false if the other side is gone.
    bool write(std::string_view bytes);
    // Sends a frame and passes a slab's memory along, which stays open here.
    bool write(const Frame& frame, int memory);

  private:
    [[nodiscard]] bool read_exactly(char* to, std::size_t bytes);
    // Returns what has arrived, at least one byte; 0 if the other side is gone.
    [[nodiscard]] std::size_t receive(char* to, std::size_t most);

    int socket_;
    pid_t parent_;
    std::array<char, 4096> came_;        // receive buffer, to save system calls ...
    std::size_t taken_ = 0, there_ = 0;  // ... and how much of it is used and filled
    std::mutex mutex_;
};

void append_frame(std::string& out, const Frame& frame);

}  // namespace saturate
