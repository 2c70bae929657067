// SPDX-License-Identifier: Apache-2.0
#include "train_sampler.h"

#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <map>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "process/gpus.h"
#include "telemetry/sampler.h"

namespace saturate {

namespace {

// Returns the counters of the training device; none if a CPU trains, even if there are GPUs.
Devices counters_of(DeviceBackend& backend) {
    if (auto own = backend.counters()) return {.reader = std::move(own)};
    if (backend.device().is_cpu()) return {};
    return open_gpus({.wake = true});
}

// Returns the GPU that trains, or an empty list (all GPUs) if the driver does not identify it.
std::vector<int> watched(const Devices& devices, const DeviceBackend& backend) {
    if (!devices.reader) return {};
    std::optional<int> own = gpu_at(devices.reader->driver(), backend.pci_bus_id());
    return own ? std::vector{*own} : std::vector<int>{};
}

}  // namespace

struct TrainSampler::Impl {
    Impl(Recorder& recorder, DeviceBackend& backend)
        : devices(counters_of(backend)),
          host({.watched_pid = ::getpid()}),
          sampler({.gpus = watched(devices, backend)}, devices.reader.get(), &host,
                  devices.absent_because, recorder),
          thread([this](const std::stop_token& stop) { work(stop); }) {}

    void work(const std::stop_token& stop) {
        ::pthread_setname_np(::pthread_self(), "sampler");
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_BLOCK, &all, nullptr);  // the main thread handles signals
        std::mutex mutex;
        std::condition_variable_any never;
        std::unique_lock lock(mutex);
        while (!stop.stop_requested()) {
            tick(false);
            never.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
        }
        tick(true);
    }

    void tick(bool is_last) {
        sampler.tick(now_ns(), wall_ns(), is_last);
        for (const DeviceSample& reading : sampler.readings())
            tallies.try_emplace(reading.gpu, GpuIdentity{.index = reading.gpu})
                .first->second.add(reading, 1);
    }

    Devices devices;
    std::map<int, GpuTally> tallies;  // owned by the thread until it ends
    HostSampler host;
    Sampler sampler;
    std::jthread thread;  // last, because it uses the other members
};

TrainSampler::TrainSampler(Recorder& recorder, DeviceBackend& backend)
    : impl_(std::make_unique<Impl>(recorder, backend)) {}
TrainSampler::~TrainSampler() = default;

BusyShare TrainSampler::stop() {
    impl_->thread.request_stop();
    impl_->thread.join();
    std::vector<GpuSummary> gpus;
    for (const auto& [index, tally] : impl_->tallies) gpus.push_back(tally.summary());
    return busy_share(gpus);
}

}  // namespace saturate
