// SPDX-License-Identifier: Apache-2.0
// A fake kind of device that only has streams and events, behind LibTorch's own interface. It logs
// the requests to each stream and runs nothing. For tests of stream_backend.h, also with a lost
// device.
#pragma once

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

namespace saturate {

// While it exists, it provides the devices of type PrivateUse1. Only one at a time.
class FakeStreams final : public c10::impl::DeviceGuardImplInterface {
  public:
    static constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;

    FakeStreams() {
        device_ = 0;
        stream_ = 0;
        place() = this;
    }
    ~FakeStreams() override { place() = nullptr; }

    // "record 1 on copies", "compute waits for 1", ... Events are numbered by first recording;
    // compute is the initial stream of every thread, copies the high-priority stream.
    mutable std::vector<std::string> asked;
    bool has_failed = false;                  // every call fails from now on
    bool events_pass = true;                  // true: at once; false: never
    std::vector<c10::DeviceIndex> memory_on;  // devices on which memory was locked or released

    [[nodiscard]] static c10::DeviceIndex current_index() { return device_; }
    void note(const std::string& what) const {
        TORCH_CHECK(!has_failed, "CUDA error: device-side assert triggered");
        std::lock_guard lock(mutex_);
        asked.push_back(what);
    }
    [[nodiscard]] static std::string stream_name() { return kNames[stream_]; }

    [[nodiscard]] c10::DeviceType type() const override { return kType; }
    [[nodiscard]] c10::Device exchangeDevice(c10::Device device) const override {
        c10::Device before = getDevice();
        setDevice(device);
        return before;
    }
    [[nodiscard]] c10::Device getDevice() const override { return {kType, device_}; }
    void setDevice(c10::Device device) const override {
        TORCH_CHECK(!has_failed, "CUDA error: device-side assert triggered");
        device_ = device.index();
    }
    void uncheckedSetDevice(c10::Device device) const noexcept override {
        device_ = device.index();
    }
    [[nodiscard]] c10::DeviceIndex deviceCount() const noexcept override { return 8; }

    [[nodiscard]] c10::Stream getStream(c10::Device device) const override {
        return c10::Stream(c10::Stream::UNSAFE, device, stream_);
    }
    [[nodiscard]] c10::Stream getStreamFromGlobalPool(c10::Device device,
                                                      bool goes_first) const override {
        return c10::Stream(c10::Stream::UNSAFE, device, goes_first ? 1 : 2);
    }
    [[nodiscard]] c10::Stream exchangeStream(c10::Stream stream) const override {
        c10::Stream before = getStream(stream.device());
        stream_ = stream.id();
        return before;
    }
    void synchronizeStream(const c10::Stream& stream) const override {
        note(std::string("synchronise ") + kNames[stream.id()]);
    }

    void record(void** event, const c10::Stream& stream, c10::DeviceIndex,
                c10::EventFlag) const override {
        if (!*event) *event = reinterpret_cast<void*>(++events_);
        note("record " + number(*event) + " on " + kNames[stream.id()]);
    }
    void block(void* event, const c10::Stream& stream) const override {
        note(std::string(kNames[stream.id()]) + " waits for " + number(event));
    }
    [[nodiscard]] bool queryEvent(void*) const override {
        TORCH_CHECK(!has_failed, "CUDA error: device-side assert triggered");
        return events_pass;
    }
    void synchronizeEvent(void* event) const override { note("synchronise " + number(event)); }
    void destroyEvent(void*, c10::DeviceIndex) const noexcept override { ++destroyed; }
    [[nodiscard]] double elapsedTime(void*, void*, c10::DeviceIndex) const override { return 2.5; }
    mutable int destroyed = 0;

  private:
    static constexpr const char* kNames[] = {"compute", "copies", "apart"};
    static std::atomic<const DeviceGuardImplInterface*>& place() {
        return c10::impl::device_guard_impl_registry[static_cast<std::size_t>(kType)];
    }
    static std::string number(void* event) {
        return std::to_string(reinterpret_cast<std::uintptr_t>(event));
    }

    inline static thread_local c10::DeviceIndex device_ = 0;
    inline static thread_local c10::StreamId stream_ = 0;
    mutable std::mutex mutex_;
    mutable std::uintptr_t events_ = 0;
};

}  // namespace saturate
