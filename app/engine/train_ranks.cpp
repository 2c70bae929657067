// SPDX-License-Identifier: Apache-2.0
#include "train_ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "engine/rank_team.h"

namespace saturate {

namespace {

// More loader threads than this on one host only wait for the disk.
constexpr int kWorkersMost = 32;

// Identifies this host, also from inside its containers.
std::string kernel_start() {
    std::string text = read_if_there("/proc/sys/kernel/random/boot_id");
    return std::string(trim(text));
}

}  // namespace

TrainRanks::TrainRanks() : place_(rank_place(own_environment())) {}

void TrainRanks::divide_host(const Machine& machine, TrainSettings& settings) const {
    int local = place_ ? place_->local_count : 1;
    int own = std::max(1, machine.cpu.cores_usable / local);
    settings.memory_bytes = machine.memory.usable_bytes() / static_cast<std::uint64_t>(local);
    if (settings.device.threads == 0) settings.device.threads = own;
    if (!place_) return;
    settings.cores = std::min(own, std::max(1, kWorkersMost / local));
    if (settings.workers > 0 && settings.workers * local > kWorkersMost) {
        int fewer = std::max(1, kWorkersMost / local);
        settings.notes.push_back(
            fmt::format("num_workers: {} instead of {}, because {} processes "
                        "share this host",
                        fewer, settings.workers, local));
        settings.workers = fewer;
    }
}

void TrainRanks::refuse_simulated() const {
    if (!place_) return;
    throw UserError({.found = fmt::format("a simulated device on {} ranks", count()),
                     .expected = "one process: simulated devices do not communicate",
                     .fix = "docs/scaling.md has a model of the step time of many GPUs"});
}

void TrainRanks::join(double timeout_seconds) {
    if (!place_) return;
    using std::chrono::milliseconds;
    RankTimes times;
    times.patience = milliseconds(static_cast<std::int64_t>(timeout_seconds * 1000));
    // A silent rank must be detected before the timeout for slow ranks.
    times.lost = std::min(times.lost, times.patience / 2);
    times.stale = std::min(times.stale, times.lost);
    times.beat = std::min(times.beat, times.stale / 4);
    group_ =
        std::make_unique<ProcessGroup>(GroupSettings{.rank = place_->rank,
                                                     .count = place_->count,
                                                     .address = place_->address,
                                                     .port = place_->port,
                                                     .store_is_served = place_->store_is_served,
                                                     .prefix = place_->prefix,
                                                     .times = times});
}

void TrainRanks::use_device(const DeviceBackend& backend) {
    if (!group_) return;
    compare_devices(*group_, {.kind = c10::DeviceTypeName(backend.device().type(), true),
                              .host = kernel_start(),
                              .pci_bus_id = backend.pci_bus_id()});
    if (!backend.device().is_cpu()) use_device_collectives(*group_);
}

std::filesystem::path TrainRanks::record_of(const std::filesystem::path& run) const {
    return is_first() ? run : run / fmt::format("rank{}", rank());
}

void TrainRanks::move_log(const std::filesystem::path& record) const {
    if (!place_ || is_first() || place_->launcher != "saturate") return;
    std::fflush(nullptr);
    int log = ::open((record / "log.txt").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log < 0) return;  // the output stays with the launcher
    char bytes[4096];
    ssize_t got = 0;
    for (off_t at = 0; (got = ::pread(2, bytes, sizeof bytes, at)) > 0; at += got) {
        if (::write(log, bytes, static_cast<std::size_t>(got)) != got) break;
    }
    [[maybe_unused]] int emptied = ::ftruncate(2, 0);  // the launcher prints the rest
    ::dup2(log, 1);
    ::dup2(log, 2);
    ::close(log);
}

}  // namespace saturate
