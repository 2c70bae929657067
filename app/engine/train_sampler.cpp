// SPDX-License-Identifier: Apache-2.0
#include "train_sampler.h"

#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "process/gpus.h"
#include "telemetry/sampler.h"

namespace saturate {

struct TrainSampler::Impl {
    Impl(Recorder& recorder, std::unique_ptr<DeviceReader> counters)
        : devices(counters ? Devices{.reader = std::move(counters)} : open_gpus({.wake = true})),
          host({.watched_pid = ::getpid()}),
          sampler({}, devices.reader.get(), &host, devices.absent_because, recorder),
          thread([this](const std::stop_token& stop) { work(stop); }) {}

    void work(const std::stop_token& stop) {
        ::pthread_setname_np(::pthread_self(), "sampler");
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals belong to the main thread
        std::mutex mutex;
        std::condition_variable_any never;
        std::unique_lock lock(mutex);
        while (!stop.stop_requested()) {
            sampler.tick(now_ns(), wall_ns());
            never.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
        }
        sampler.tick(now_ns(), wall_ns(), /*is_last=*/true);
    }

    Devices devices;
    HostSampler host;
    Sampler sampler;
    std::jthread thread;  // last: it uses the rest
};

TrainSampler::TrainSampler(Recorder& recorder, std::unique_ptr<DeviceReader> counters)
    : impl_(std::make_unique<Impl>(recorder, std::move(counters))) {}
TrainSampler::~TrainSampler() = default;

}  // namespace saturate
