// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "remedies/cures.h"

namespace saturate {

namespace {

constexpr double kSamplesDiffer = 1.2;  // workers beyond the mean need
constexpr int kUnknownCores = 64;       // the most workers that are named where nobody told
constexpr int kMostUnmeasured = 16;

std::string cores_text(const Facts& facts) {
    int cores = facts.cores_per_process();
    return fmt::format("{} core{}{}", cores, cores == 1 ? "" : "s",
                       facts.processes > 1 ? " per GPU process" : "");
}

// Decoding cannot use more workers than cores; waiting for a disk can.
int most_workers(const Facts& facts) {
    if (facts.cores == 0) return kUnknownCores;
    int cores = facts.cores_per_process();
    std::optional<bool> storage = facts.loader->waits_for_storage;
    if (storage) return *storage ? 4 * cores : cores;
    return facts.on_cpu ? cores : 2 * cores;
}

std::string plural(int count) { return fmt::format("{} worker{}", count, count == 1 ? "" : "s"); }

}  // namespace

int worker_count(const Facts& facts) {
    if (facts.workers_asked) return *facts.workers_asked;
    if (facts.loader && facts.loader->compute_seconds > 0) {
        double need = kSamplesDiffer * facts.loader->fetch_seconds / facts.loader->compute_seconds;
        return static_cast<int>(
            std::clamp(std::ceil(need), 1.0, static_cast<double>(most_workers(facts))));
    }
    int cores = facts.cores_per_process();
    return facts.on_cpu ? std::max(1, cores / 4) : std::clamp(cores / 2, 1, kMostUnmeasured);
}

Proposal cure_num_workers(const Facts& facts) {
    if (facts.in_memory)
        return {.reason = "the data set is tensors in memory: workers would be slower"};
    int wanted = worker_count(facts);
    std::optional<double> now = facts.number("num_workers");
    bool is_there = now && *now == wanted;
    Proposal out{.value = std::to_string(wanted)};
    if (!is_there && !facts.is_on("persistent_workers")) out.with["persistent_workers"] = "true";
    std::string share = facts.on_cpu ? "a quarter of" : "half of";
    bool crowded = facts.cores > 0 && now && *now > facts.cores_per_process();
    if (facts.workers_asked) {
        out.reason = "as asked for with --workers";
        out.expect = "-";
    } else if (facts.loader) {
        double times = facts.loader->compute_seconds > 0
                           ? facts.loader->fetch_seconds / facts.loader->compute_seconds
                           : 0;
        out.reason = fmt::format("making a batch takes {:.1f} times as long as the step: {}", times,
                                 plural(wanted));
        if (int half = (wanted + 1) / 2; half != wanted && now != half)
            out.also.push_back(std::to_string(half));
    } else if (crowded) {
        out.reason =
            fmt::format("more workers than the {} only wait for each other", cores_text(facts));
        out.expect = "less switching between processes, less memory";
        out.wrong_now = fmt::format(
            "{:.0f} workers share {}: they take time from each other and from the training process",
            *now, cores_text(facts));
        out.with.clear();
    } else if (now.value_or(0) >= wanted && now) {
        return {.reason = fmt::format("{} for {} is enough until a run shows that batches are "
                                      "waited for",
                                      plural(static_cast<int>(*now)), cores_text(facts))};
    } else {
        out.reason = fmt::format(
            "{} the {}{}", share, cores_text(facts),
            now == 0 ? "; with 0 workers the training process loads the data itself" : "");
    }
    if (is_there) return {.reason = fmt::format("{} it is already", plural(wanted))};
    return out;
}

Proposal cure_persistent_workers(const Facts& facts) {
    if (facts.number("num_workers").value_or(1) == 0) return {.reason = "there are no workers"};
    if (facts.is_on("persistent_workers")) return {.reason = "workers stay already"};
    return {.value = "true", .reason = "workers are not started again at every epoch"};
}

Proposal cure_prefetch_factor(const Facts& facts) {
    constexpr double kBursts = 0.1;
    double ahead = facts.number("prefetch_factor").value_or(0);
    bool is_set = facts.number("prefetch_factor").has_value();
    if (facts.number("num_workers") == 0) {
        Proposal out{.reason = "no workers, nothing to prefetch", .remove = is_set};
        if (is_set) out.wrong_now = "torch refuses it while num_workers is 0";
        return out;
    }
    if (facts.is_measuring || facts.loader) {
        if (ahead >= 4) return {.reason = "four batches per worker are ready already"};
        if (facts.is_measuring && facts.spread <= kBursts)
            return {.reason = "the wait does not come in bursts"};
        return {.value = "4", .reason = "the wait comes in bursts: more batches ready"};
    }
    if (ahead >= 2) return {.reason = "two batches per worker are ready already"};
    return {.value = "4", .reason = "a slow sample does not empty the queue"};
}

Proposal cure_batched_fetch(const Facts& facts) {
    if (!facts.in_memory) return {.reason = "the data set is not tensors in memory"};
    if (facts.is_on("batched_fetch")) return {.reason = "batches are cut out at once already"};
    return {.value = "true", .reason = "tensors in memory: a batch is cut out at once"};
}

Proposal cure_cache(const Facts& facts) {
    if (!facts.can_cache) return {.reason = "the data is in memory already"};
    if (!facts.is_measuring || !facts.loader)
        return {.reason = "only a measurement tells whether decoding is the bottleneck"};
    std::string now = facts.value("cache");
    if (!now.empty() && now != "off") return {.reason = "samples are kept already"};
    if (facts.memory_available_bytes == 0) return {.reason = "free memory is not known"};
    return {.value = "ram", .reason = "decoded samples kept in memory, from the second epoch on"};
}

Proposal cure_pin_memory(const Facts& facts) {
    if (facts.on_cpu) {
        if (!facts.is_on("pin_memory")) return {.reason = "there is no GPU to pin memory for"};
        return {.value = "false",
                .reason = "no GPU: pinning only costs a copy",
                .expect = "one copy per batch fewer",
                .wrong_now = "there is no GPU to pin memory for"};
    }
    if (facts.is_on("pin_memory")) return {.reason = "batches are pinned already"};
    Proposal out{.value = "true", .reason = "page-locked batches are copied by the GPU itself"};
    if (!facts.is_on("non_blocking")) out.with["non_blocking"] = "true";
    return out;
}

Proposal cure_non_blocking(const Facts& facts) {
    if (facts.on_cpu) return {.reason = "nothing is copied to a GPU"};
    if (facts.is_on("non_blocking")) return {.reason = "copies do not block already"};
    return {.value = "true", .reason = "the host goes on while a pinned batch is copied"};
}

}  // namespace saturate
