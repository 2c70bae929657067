// SPDX-License-Identifier: Apache-2.0
#include "support/nvml_replay/driver.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

namespace saturate::nvml_replay {

namespace {

constexpr std::size_t kRecords = 256;

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

std::string_view plain_name(std::string_view symbol) {
    for (std::string_view prefix : {"nvmlDeviceGet", "nvmlSystemGet", "nvml"}) {
        if (symbol.starts_with(prefix)) {
            symbol.remove_prefix(prefix.size());
            break;
        }
    }
    for (std::string_view suffix : {"_v2", "_v3"}) {
        if (symbol.ends_with(suffix)) symbol.remove_suffix(suffix.size());
    }
    return symbol;
}

}  // namespace

struct CallCounts::Record {
    char name[56];
    std::uint64_t count;
};

CallCounts::CallCounts() {
    std::string path = environment("SATURATE_NVML_CALLS");
    if (path.empty()) return;
    int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || ::ftruncate(fd, kRecords * sizeof(Record)) != 0) return;
    void* mapped =
        ::mmap(nullptr, kRecords * sizeof(Record), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (mapped != MAP_FAILED) records_ = static_cast<Record*>(mapped);
}

CallCounts::~CallCounts() {
    if (records_) ::munmap(records_, kRecords * sizeof(Record));
}

void CallCounts::add(std::string_view name, bool breaks_rules) {
    if (!records_) return;
    char key[sizeof(Record::name)] = {};
    std::snprintf(key, sizeof key, "%s%.*s", breaks_rules ? "!" : "", static_cast<int>(name.size()),
                  name.data());
    for (std::size_t i = 0; i < kRecords; ++i) {
        Record& record = records_[i];
        if (record.name[0] == 0) std::memcpy(record.name, key, sizeof key);
        if (std::memcmp(record.name, key, sizeof key) == 0) {
            ++record.count;
            return;
        }
    }
}

Driver& Driver::instance() {
    static Driver driver;
    return driver;
}

Driver::Driver() {
    std::string clock = environment("SATURATE_NVML_CLOCK");
    if (clock.starts_with("step:")) step_ = parse_number(clock.substr(5)).value_or(1);
    if (clock.starts_with("real:")) factor_ = parse_number(clock.substr(5)).value_or(1);
}

nvmlReturn_t Driver::start() {
    if (!recording) {
        std::string path = environment("SATURATE_NVML_RECORDING");
        if (path.empty()) return NVML_ERROR_DRIVER_NOT_LOADED;
        try {
            recording = std::make_unique<Recording>(Recording::read(path));
        } catch (const Failure& error) {
            std::fprintf(stderr, "nvml replay: %s\n", error.what());
            return NVML_ERROR_UNKNOWN;
        }
        start_ns_ = now_ns();
        start_us = static_cast<std::uint64_t>(wall_ns() / 1000);
    }
    ++starts;
    return NVML_SUCCESS;
}

nvmlReturn_t Driver::stop() {
    if (starts == 0) return NVML_ERROR_UNINITIALIZED;
    --starts;
    return NVML_SUCCESS;
}

double Driver::now() const {
    if (step_ > 0) return stepped_;
    return static_cast<double>(now_ns() - start_ns_) * 1e-9 * factor_;
}

void Driver::pulse(const void* device, const void* function, std::int64_t arg) {
    if (step_ <= 0) return;
    if (asked_.insert({{device, function}, arg}).second) return;
    stepped_ += step_;
    asked_.clear();
    asked_.insert({{device, function}, arg});
}

nvmlDevice_t Driver::handle(int gpu, int mig) {
    for (Device& device : devices) {
        if (device.gpu == gpu && device.mig == mig) return reinterpret_cast<nvmlDevice_t>(&device);
    }
    devices.push_back({gpu, mig});
    return reinterpret_cast<nvmlDevice_t>(&devices.back());
}

std::uint64_t Driver::latency_us(std::string_view call) const {
    const Json& latency = recording->header()["library"]["latency_us"];
    const Json& mine = latency.is_object() ? latency[call] : latency;
    return static_cast<std::uint64_t>(mine.integer().value_or(0));
}

Call::Call(const char* symbol) : driver(Driver::instance()), symbol_(symbol), lock_(driver.mutex) {
    driver.counts.add(symbol, false);
    if (driver.starts == 0) {
        status = fault(NVML_ERROR_UNINITIALIZED);
        return;
    }
    // A slow driver holds its lock during the delay, like the real one.
    if (std::uint64_t us = driver.latency_us(plain_name(symbol)))
        std::this_thread::sleep_for(std::chrono::microseconds(us));
}

Call::Call(const char* symbol, nvmlDevice_t handle) : Call(symbol) {
    if (status != NVML_SUCCESS) return;
    const auto* asked = reinterpret_cast<const Device*>(handle);
    bool known = false;
    for (const Device& one : driver.devices) known = known || &one == asked;
    if (!known) {
        status = fault(NVML_ERROR_INVALID_ARGUMENT);
        return;
    }
    device = *asked;
    const Answer* every = answer("*");
    if (every && every->t <= driver.now() && every->rc != 0)
        status = static_cast<nvmlReturn_t>(every->rc);
}

const Answer* Call::answer(std::string_view call, std::int64_t arg, std::int64_t scope) const {
    return driver.recording->at({.gpu = device.gpu, .call = call, .arg = arg, .scope = scope},
                                driver.now());
}

nvmlReturn_t Call::fault(nvmlReturn_t code) {
    driver.counts.add(symbol_, true);
    return code;
}

nvmlReturn_t give_text(const Json& text, char* out, unsigned length) {
    auto content = text.string();
    if (!content) return NVML_ERROR_NOT_SUPPORTED;
    if (content->size() + 1 > length) return NVML_ERROR_INSUFFICIENT_SIZE;
    std::memset(out, kPoison, length);
    std::memcpy(out, content->c_str(), content->size() + 1);
    return NVML_SUCCESS;
}

nvmlValue_t typed_value(const Json& value, int type) {
    nvmlValue_t out;
    poison(&out);
    double number = value.number().value_or(0);
    std::int64_t whole = value.integer().value_or(static_cast<std::int64_t>(number));
    switch (type) {
        case NVML_VALUE_TYPE_DOUBLE:
            out.dVal = number;
            break;
        case NVML_VALUE_TYPE_UNSIGNED_INT:
            out.uiVal = static_cast<unsigned>(whole);
            break;
        case NVML_VALUE_TYPE_UNSIGNED_LONG:
            out.ulVal = static_cast<unsigned long>(whole);
            break;
        case NVML_VALUE_TYPE_SIGNED_LONG_LONG:
            out.sllVal = whole;
            break;
        case NVML_VALUE_TYPE_SIGNED_INT:
            out.siVal = static_cast<int>(whole);
            break;
        case NVML_VALUE_TYPE_UNSIGNED_SHORT:
            out.usVal = static_cast<unsigned short>(whole);
            break;
        default:
            out.ullVal = static_cast<unsigned long long>(whole);
    }
    return out;
}

}  // namespace saturate::nvml_replay
