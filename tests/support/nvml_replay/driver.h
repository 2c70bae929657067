// SPDX-License-Identifier: Apache-2.0
// The state of the fake libnvidia-ml.so.1: the recording, its clock, handles and counts. Every
// exported function first creates a Call, which holds the single lock until the function returns.
//
//   SATURATE_NVML_RECORDING  the recording (docs/nvml-recording.md); unset: "driver not loaded"
//   SATURATE_NVML_CLOCK      real (default), real:FACTOR, or step:SECONDS: the recording's time
//                            advances when a reading is requested again, so that no test has to
//                            wait
//   SATURATE_NVML_CALLS      a file with the current number of calls of each function: records of
//                            64 bytes, name[56] and a 64-bit count; "!name" counts calls that break
//                            the rules (struct version, size, handle)
#pragma once

#include <nvml.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "support/nvml_replay/recording.h"

namespace saturate::nvml_replay {

constexpr unsigned char kPoison = 0xA5;

// The target of an nvmlDevice_t: a GPU, or an instance of one in MIG mode.
struct Device {
    int gpu = 0;
    int mig = -1;  // index of an instance of the GPU; -1: the GPU itself
};

// Counts in a file, so that they survive any end of the process.
class CallCounts {
  public:
    CallCounts();  // SATURATE_NVML_CALLS
    ~CallCounts();
    void add(std::string_view name, bool breaks_rules);

  private:
    struct Record;
    Record* records_ = nullptr;
};

class Driver {
  public:
    static Driver& instance();  // made by the first call, kept until the process ends

    nvmlReturn_t start();
    nvmlReturn_t stop();

    std::mutex mutex;
    int starts = 0;
    std::unique_ptr<Recording> recording;
    std::deque<Device> devices;  // addresses are the handles
    std::uint64_t start_us = 0;  // since 1970, at t = 0
    CallCounts counts;

    [[nodiscard]] double now() const;  // on the time axis of the recording
    // Turns a time of the recording into NVML's microseconds since 1970.
    [[nodiscard]] unsigned long long stamp(double t) const {
        return start_us + static_cast<unsigned long long>(t * 1e6);
    }
    void pulse(const void* device, const void* function, std::int64_t arg);
    nvmlDevice_t handle(int gpu, int mig = -1);
    [[nodiscard]] std::uint64_t latency_us(std::string_view call) const;

  private:
    Driver();
    double factor_ = 1;
    double step_ = 0;  // 0: real time
    double stepped_ = 0;
    std::int64_t start_ns_ = 0;
    std::set<std::pair<std::pair<const void*, const void*>, std::int64_t>> asked_;
};

// One call of an exported function: counts, delays and checks it. If `status` is not NVML_SUCCESS,
// the function must return it at once.
class Call {
  public:
    explicit Call(const char* symbol);              // the system
    Call(const char* symbol, nvmlDevice_t device);  // a GPU or an instance
    nvmlReturn_t status = NVML_SUCCESS;
    Driver& driver;
    Device device;

    [[nodiscard]] const Json& facts() const { return driver.recording->gpu(device.gpu); }
    [[nodiscard]] const Answer* answer(std::string_view call, std::int64_t arg = -1,
                                       std::int64_t scope = 0) const;
    // Counts a broken rule and returns `code`.
    nvmlReturn_t fault(nvmlReturn_t code);

  private:
    const char* symbol_;
    std::unique_lock<std::mutex> lock_;
};

template <typename T>
void poison(T* out, std::size_t count = 1) {
    std::memset(static_cast<void*>(out), kPoison, sizeof(T) * count);
}

// Writes text as NVML does: INSUFFICIENT_SIZE if the buffer is too short. Poisons the rest of it.
nvmlReturn_t give_text(const Json& text, char* out, unsigned length);

template <typename T>
nvmlReturn_t give_number(const Json& value, T* out) {
    auto number = value.number();
    if (!number) return NVML_ERROR_NOT_SUPPORTED;
    // Integers beyond 2^53 must not be converted through a double.
    auto whole = value.integer();
    *out = whole ? static_cast<T>(*whole) : static_cast<T>(*number);
    return NVML_SUCCESS;
}

// Answers a reading that is one number.
template <typename T>
nvmlReturn_t read_number(const char* symbol, nvmlDevice_t device, std::string_view name, T* out,
                         std::int64_t arg = -1) {
    Call call(symbol, device);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!out) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    call.driver.pulse(device, symbol, arg);
    poison(out);
    const Answer* answer = call.answer(name, arg);
    if (!answer) return NVML_ERROR_NOT_SUPPORTED;
    if (answer->rc != 0) return static_cast<nvmlReturn_t>(answer->rc);
    return give_number(answer->value(), out);
}

// Answers a fact of the header that is one number or a boolean.
template <typename T>
nvmlReturn_t read_fact(const char* symbol, nvmlDevice_t device, std::string_view name, T* out) {
    Call call(symbol, device);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!out) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    poison(out);
    const Json& fact = call.facts()[name];
    if (auto flag = fact.boolean()) {
        *out = static_cast<T>(*flag ? 1 : 0);
        return NVML_SUCCESS;
    }
    return give_number(fact, out);
}

nvmlValue_t typed_value(const Json& value, int type);

}  // namespace saturate::nvml_replay
