// SPDX-License-Identifier: Apache-2.0
// What every device with streams has in common: the order of its streams, the device that memory is
// asked for on, and what becomes of it all when the device is lost.
#include "engine/stream_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "engine/fake_streams.h"

namespace saturate {
namespace {

using testing::ElementsAre;

FakeStreams* fake = nullptr;  // of the test that runs: the calls of a library know no object
std::set<void*> locked;       // memory

void* lock_memory(std::size_t bytes) {
    fake->memory_on.push_back(FakeStreams::current_index());
    return *locked.insert(::operator new(bytes)).first;
}
void unlock_memory(void* memory) {
    fake->memory_on.push_back(FakeStreams::current_index());
    locked.erase(memory);
    ::operator delete(memory);
}

// Streams of the fake kind; the tensors are the CPU's.
class Streamed final : public StreamBackend {
  public:
    explicit Streamed(c10::DeviceIndex index)
        : StreamBackend(
              {FakeStreams::kType, index},
              std::make_shared<PinnedMemory>(torch::Device(FakeStreams::kType, index),
                                             PinnedMemory::Calls{lock_memory, unlock_memory}),
              true) {}
    ~Streamed() override {
        if (Streamed::is_lost()) abandon();
    }
    [[nodiscard]] torch::Device device() const override { return torch::kCPU; }
    [[nodiscard]] std::string name() const override { return "streams"; }
    [[nodiscard]] bool has_bf16() const override { return false; }
    [[nodiscard]] DeviceProof proves() const override { return {}; }
    [[nodiscard]] bool is_lost() noexcept override { return fake->has_failed; }
    [[nodiscard]] DeviceMemory memory() const override { return {}; }
    void reset_peak() override {}
    std::unique_ptr<CapturedStep> capture(const std::function<void()>& work) override {
        in_turn(work);
        return nullptr;
    }
    void empty_cache() override { fake->note("empty"); }
};

class StreamBackendTest : public testing::Test {
  protected:
    StreamBackendTest() { fake = &streams_; }
    ~StreamBackendTest() override {
        device_.reset();
        for (void* memory : std::exchange(locked, {})) ::operator delete(memory);
        fake = nullptr;
    }

    // What is asked for goes to the stream that is the current one.
    void compute(const char* what) { streams_.note(what + (" on " + FakeStreams::stream_name())); }
    Upload upload() {
        static const FieldSpec kSpec{.name = "x", .element = Element::float32, .shape = {1}};
        static float number = 3;
        field_ = {&kSpec, reinterpret_cast<std::byte*>(&number)};
        std::shared_ptr<void> slab(&number, [this](void*) { ++slabs_back_; });
        return device_->start_upload({.size = 1, .fields = {&field_, 1}, .slab = slab});
    }
    std::vector<std::string> take_asked() { return std::exchange(streams_.asked, {}); }

    FakeStreams streams_;
    std::unique_ptr<Streamed> device_ = std::make_unique<Streamed>(c10::DeviceIndex(3));
    FieldView field_;
    int slabs_back_ = 0;
};

TEST_F(StreamBackendTest, WorkApartIsInTurnAlsoWhenItThrows) {
    device_->run_apart([&] { compute("warm up"); });
    EXPECT_THAT(take_asked(),
                ElementsAre("record 1 on compute", "apart waits for 1", "warm up on apart",
                            "record 2 on apart", "compute waits for 2"));
    EXPECT_THROW(device_->run_apart([&] {
        compute("warm up");
        throw std::runtime_error("no room");
    }),
                 std::runtime_error);
    compute("goes on");
    EXPECT_THAT(take_asked(),
                ElementsAre("record 3 on compute", "apart waits for 3", "warm up on apart",
                            "record 4 on apart", "compute waits for 4", "goes on on compute"));
}

// Whose index is not 0: a context on GPU 0 costs memory there, and fails where it is exclusive.
TEST_F(StreamBackendTest, PinnedMemoryIsOfTheRanksOwnDevice) {
    EXPECT_EQ(FakeStreams::current_index(), 3);
    std::thread loader([&] {
        void* memory = device_->slab_memory()->allocate(64);
        device_->slab_memory()->release(memory, 64);
        EXPECT_EQ(FakeStreams::current_index(), 0);  // as the thread had it
    });
    loader.join();
    EXPECT_THAT(streams_.memory_on, ElementsAre(3, 3));
}

TEST_F(StreamBackendTest, ACopyIsAwaitedByWhatComputesNotByTheHost) {
    Upload batch = upload();
    EXPECT_THAT(take_asked(), ElementsAre("record 1 on copies"));
    device_->await_upload(batch);
    EXPECT_THAT(take_asked(), ElementsAre("compute waits for 1"));
}

// The slab is held until the copy has passed, not until the host has asked for it.
TEST_F(StreamBackendTest, TheHostsMemoryIsHeldUntilTheCopyHasPassed) {
    streams_.events_pass = false;
    for (int i = 0; i < 2; ++i) (void)upload();
    EXPECT_EQ(slabs_back_, 0);
    (void)upload();  // two are under way already: the first is awaited
    EXPECT_EQ(slabs_back_, 1);
    EXPECT_THAT(take_asked(), testing::Contains("synchronise 1"));
    streams_.events_pass = true;
    (void)upload();
    EXPECT_EQ(slabs_back_, 3);
}

// What a step reads of a batch is ahead of a mark on its stream; before that nothing is freed.
TEST_F(StreamBackendTest, ABatchIsFreedOnceItsStepHasPassed) {
    streams_.events_pass = false;
    device_->await_upload(upload());
    (void)take_asked();
    (void)upload();
    EXPECT_THAT(take_asked(), testing::Contains("record 2 on compute"));
}

// The host launches faster than the device runs, and nothing else holds it up.
TEST_F(StreamBackendTest, TheHostWaitsOnceTheDeviceIsFarBehind) {
    constexpr std::int64_t kFloats = 16 << 20;  // 64 MiB
    std::vector<float> numbers(kFloats);
    FieldSpec spec{.name = "x", .element = Element::float32, .shape = {kFloats}};
    FieldView field{&spec, reinterpret_cast<std::byte*>(numbers.data())};
    streams_.events_pass = false;
    std::vector<bool> waited;
    for (int step = 0; step < 7; ++step) {
        (void)device_->start_upload({.size = 1, .fields = {&field, 1}});
        (void)take_asked();
        waited.push_back(device_->let_catch_up());
    }
    // The batch of step 6 is still with its step, as it were.
    EXPECT_THAT(waited, ElementsAre(false, false, false, false, false, true, true));
    EXPECT_THAT(take_asked(), ElementsAre(testing::StartsWith("synchronise ")));
}

TEST_F(StreamBackendTest, AReadingIsReadBehindWhatWasAskedForBefore) {
    auto reading = device_->start_reading(torch::full({3}, 5.0F));
    EXPECT_THAT(take_asked(), ElementsAre("record 1 on compute"));
    EXPECT_TRUE(torch::equal(reading->values(), torch::full({3}, 5.0F)));
    EXPECT_THAT(take_asked(), ElementsAre("synchronise 1"));
    // Page-locking waits for the device: a later reading uses the same memory.
    reading.reset();
    std::set<void*> before = locked;
    reading = device_->start_reading(torch::zeros({3}));
    EXPECT_EQ(locked, before);
}

// Weights are read while all that was asked for hangs behind a rank that is lost.
TEST_F(StreamBackendTest, WorkBesideWaitsForNothing) {
    device_->run_beside([&] { compute("read"); });
    EXPECT_THAT(take_asked(), ElementsAre("read on copies", "synchronise copies"));
}

TEST_F(StreamBackendTest, AStepIsTimedFromItsMarkToItsMark) {
    EXPECT_FALSE(device_->step_ns(0));
    device_->mark_begin(0);
    EXPECT_FALSE(device_->step_ns(0));
    device_->mark_end(0);
    EXPECT_EQ(device_->step_ns(0), 2'500'000);
    streams_.events_pass = false;
    EXPECT_FALSE(device_->step_ns(0));
    device_->mark_begin(512);  // takes its place
    EXPECT_FALSE(device_->step_ns(0));
}

// Every call fails after a device assert. What ends then must not throw: that would end the process
// with a signal, without the summary and its exit code.
TEST_F(StreamBackendTest, NothingThatEndsAsksADeviceThatIsLost) {
    for (std::int64_t step = 0; step < 4; ++step) {
        device_->mark_begin(step);
        device_->mark_end(step);
    }
    int before = streams_.destroyed;
    void* memory = device_->slab_memory()->allocate(64);
    Upload batch = upload();
    auto reading = device_->start_reading(torch::zeros({3}));
    EXPECT_ANY_THROW(device_->run_apart([&] {
        streams_.has_failed = true;
        compute("x");
    }));
    EXPECT_ANY_THROW(device_->synchronise());
    EXPECT_ANY_THROW((void)reading->values());
    device_->slab_memory()->release(memory, 64);
    batch = {};
    reading.reset();
    device_.reset();
    // Each event that is given back prints a warning: those of the steps, 1,024, are left alone.
    EXPECT_LT(streams_.destroyed - before, 8);
}

}  // namespace
}  // namespace saturate
