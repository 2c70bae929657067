// SPDX-License-Identifier: Apache-2.0
// The loader process as a thread of the test, which plays the Python side of the socket.
#include "pipeline/serve_batches.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <thread>

#include "base/json.h"
#include "pipeline/serve_frames.h"
#include "support/run.h"

namespace saturate {
namespace {

// Numbers 0, 1, 2, ... as an .npy file.
std::string npy_of(int count) {
    std::string head =
        fmt::format("{{'descr': '<i8', 'fortran_order': False, 'shape': ({},), }}", count);
    head.resize(117, ' ');
    head += '\n';
    std::string out("\x93NUMPY\x01\x00", 8);
    out += static_cast<char>(head.size());
    out += '\0';
    out += head;
    for (std::int64_t i = 0; i < count; ++i)
        out.append(reinterpret_cast<const char*>(&i), sizeof i);
    return out;
}

std::string request(const std::string& path, const std::string& more = "") {
    return fmt::format(
        R"({{"source":{{"kind":"arrays","path":"{}"}},"blobs":{{}},"batch_size":4,"workers":2,)"
        R"("prefetch":2,"memory_bytes":0,"shuffle":true,"drop_last":true,"seed":3,"rank":0,"world":1,)"
        R"("bad_samples_max":9,"sample_ms_max":60000,"tells_samples":true{}}})",
        path, more);
}

class ServeBatchesTest : public testing::Test {
  protected:
    ServeBatchesTest() {
        (void)!::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data());
        server_ = std::jthread([this] {
            serve_batches(ends_[1]);
            ::shutdown(ends_[1], SHUT_RDWR);
        });
    }
    ~ServeBatchesTest() override {
        ::shutdown(ends_[0], SHUT_RDWR);
        server_.join();
        for (const auto& [number, slab] : slabs_) ::munmap(slab.data, slab.bytes);
        ::close(ends_[0]);
        ::close(ends_[1]);
    }

    void send(const Frame& frame) {
        std::string bytes;
        append_frame(bytes, frame);
        ASSERT_EQ(::send(ends_[0], bytes.data(), bytes.size(), 0),
                  static_cast<ssize_t>(bytes.size()));
    }
    void open(const std::string& text) {
        send({.kind = FrameKind::open,
              .a = static_cast<std::int64_t>(text.size()),
              .payload = text});
    }
    void give(std::int64_t credits, const std::vector<std::int64_t>& slabs = {}) {
        send({.kind = FrameKind::give,
              .a = credits,
              .payload = std::string(reinterpret_cast<const char*>(slabs.data()),
                                     slabs.size() * sizeof(std::int64_t))});
    }

    // The next frame; memory that comes with it is mapped.
    Frame receive() {
        std::array<std::int64_t, 5> head{};
        int memory = -1;
        read_exactly(head.data(), sizeof head, &memory);
        Frame frame{static_cast<FrameKind>(head[0]), head[2], head[3], head[4], {}};
        frame.payload.resize(static_cast<std::size_t>(head[1]));
        read_exactly(frame.payload.data(), frame.payload.size(), nullptr);
        if (frame.kind == FrameKind::slab) {
            auto bytes = static_cast<std::size_t>(frame.b);
            void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
            EXPECT_NE(data, MAP_FAILED);
            ::close(memory);
            slabs_[frame.a] = {data, bytes};
        }
        return frame;
    }
    // The next frame that is not new memory.
    Frame expect(FrameKind kind) {
        Frame frame = receive();
        while (frame.kind == FrameKind::slab) frame = receive();
        EXPECT_EQ(frame.kind, kind) << frame.payload;
        return frame;
    }
    // The numbers of a batch, from the shared memory.
    std::vector<std::int64_t> numbers(const Frame& batch) {
        std::vector<std::int64_t> out(static_cast<std::size_t>(batch.b));
        std::memcpy(out.data(), slabs_.at(batch.a).data, out.size() * sizeof(std::int64_t));
        return out;
    }
    static std::vector<std::int64_t> told(const Frame& batch) {
        std::vector<std::int64_t> out(batch.payload.size() / sizeof(std::int64_t));
        std::memcpy(out.data(), batch.payload.data(), batch.payload.size());
        return out;
    }

    TemporaryFolder folder_;
    std::string path_ = folder_.file("x.npy", npy_of(20)).string();

  private:
    struct Mapped {
        void* data = nullptr;
        std::size_t bytes = 0;
    };
    void read_exactly(void* to, std::size_t bytes, int* memory) {
        auto* at = static_cast<char*>(to);
        while (bytes > 0) {
            iovec part{at, bytes};
            alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
            msghdr message{};
            message.msg_iov = &part;
            message.msg_iovlen = 1;
            message.msg_control = control.data();
            message.msg_controllen = control.size();
            ssize_t got = ::recvmsg(ends_[0], &message, 0);
            if (got <= 0) throw std::runtime_error("the server hung up");
            cmsghdr* rights = CMSG_FIRSTHDR(&message);
            if (rights && memory) std::memcpy(memory, CMSG_DATA(rights), sizeof *memory);
            at += got;
            bytes -= static_cast<std::size_t>(got);
        }
    }

    std::array<int, 2> ends_{};
    std::jthread server_;
    std::map<std::int64_t, Mapped> slabs_;
};

TEST_F(ServeBatchesTest, BatchesLieInMemoryThatBothSee) {
    open(request(path_));
    Json opened = Json::parse(expect(FrameKind::opened).payload, "opened");
    EXPECT_EQ(opened["samples"].integer(), 20);
    EXPECT_EQ(opened["batches"].integer(), 5);
    send({.kind = FrameKind::start, .a = 0, .b = 0, .c = 1});
    std::vector<std::int64_t> seen;
    for (int epoch = 0; epoch < 2; ++epoch) {
        for (int i = 0; i < 5; ++i) {
            give(1);
            Frame batch = expect(FrameKind::batch);
            EXPECT_EQ(numbers(batch), told(batch));
            for (std::int64_t number : numbers(batch)) seen.push_back(number);
            give(0, {batch.a});
        }
        give(1);  // room for one of the next epoch
        EXPECT_EQ(expect(FrameKind::end).c, 1);
        Frame early = expect(FrameKind::batch);
        send({.kind = FrameKind::start, .a = epoch + 1, .b = 0, .c = 1});
        give(0, {early.a});
    }
    std::ranges::sort(seen);
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < 40; ++i) all.push_back(i / 2);
    EXPECT_EQ(seen, all);
}

TEST_F(ServeBatchesTest, BeginsAnywhereAndWhatWasToldBeforeIsOfAnotherGeneration) {
    open(request(path_));
    (void)expect(FrameKind::opened);
    send({.kind = FrameKind::start, .a = 7, .b = 0, .c = 1});
    give(4);
    std::vector<std::vector<std::int64_t>> batches;
    for (int i = 0; i < 4; ++i) {
        Frame batch = expect(FrameKind::batch);
        batches.push_back(numbers(batch));
        if (i < 2) give(0, {batch.a});
    }
    send({.kind = FrameKind::start, .a = 7, .b = 2, .c = 2});
    give(2);
    for (std::size_t i = 2; i < 4; ++i) {
        Frame batch = expect(FrameKind::batch);
        EXPECT_EQ(batch.c, 2);
        EXPECT_EQ(numbers(batch), batches[i]);
    }
}

TEST_F(ServeBatchesTest, MemoryThatSomebodyElseSeesIsNotFilledAgain) {
    open(request(path_));
    (void)expect(FrameKind::opened);
    send({.kind = FrameKind::start, .a = 0, .b = 0, .c = 1});
    give(1);
    Frame first = expect(FrameKind::batch);
    std::vector<std::int64_t> before = numbers(first);
    give(0, {~first.a});
    for (int i = 0; i < 40; ++i) {
        give(1);
        Frame frame = receive();
        while (frame.kind == FrameKind::slab || frame.kind == FrameKind::end) frame = receive();
        ASSERT_EQ(frame.kind, FrameKind::batch);
        EXPECT_NE(frame.a, first.a);
        give(0, {frame.a});
    }
    EXPECT_EQ(numbers(first), before);
}

TEST_F(ServeBatchesTest, ErrorsAreTold) {
    open(request(folder_.path() / "nothing.npy"));
    Json error = Json::parse(expect(FrameKind::error).payload, "error");
    EXPECT_EQ(error["kind"].string(), "user");
    EXPECT_THAT(*error["text"].string(), testing::HasSubstr("nothing.npy"));
    open(request(path_));  // another try
    (void)expect(FrameKind::opened);
    send({.kind = FrameKind::start, .a = 0, .b = 77, .c = 1});
    EXPECT_THAT(expect(FrameKind::error).payload, testing::HasSubstr("batch 77"));
    send({.kind = FrameKind::stats});
    (void)expect(FrameKind::told);
}

TEST_F(ServeBatchesTest, EndsAtAnyMomentWithBatchesUnderWay) {
    open(request(path_));
    (void)expect(FrameKind::opened);
    send({.kind = FrameKind::start, .a = 0, .b = 0, .c = 1});
    give(100);  // the destructor hangs up while they come
    (void)expect(FrameKind::batch);
}

}  // namespace
}  // namespace saturate
