// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "remedies/cures.h"

namespace saturate {

namespace {

constexpr double kSamplesDiffer = 1.2;  // more workers than the mean needs
constexpr int kUnknownCores = 64;       // most workers to propose if the cores are unknown
constexpr int kMostUnmeasured = 16;

std::string cores_text(const Facts& facts) {
    int cores = facts.cores_per_process();
    return fmt::format("{} core{}{}", cores, cores == 1 ? "" : "s",
                       facts.processes > 1 ? " per GPU process" : "");
}

// Decoding cannot use more workers than cores. Waiting for a disk can.
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

static Proposal cure_num_workers(const Facts& facts) {
    if (facts.in_memory)
        return {.reason = "the data set is tensors in memory: workers would be slower"};
    if (facts.cores == 0 && !facts.loader && !facts.workers_asked)
        return {.reason = "the number of cores is not known"};
    int wanted = worker_count(facts);
    std::optional<double> now = facts.number("num_workers");
    bool is_there = now && *now == wanted;
    Proposal out{.value = std::to_string(wanted)};
    if (!is_there && !facts.is_on("persistent_workers")) out.with["persistent_workers"] = "true";
    std::string share = facts.on_cpu ? "a quarter of" : "half of";
    bool crowded = facts.cores > 0 && now && *now > facts.cores_per_process();
    if (facts.workers_asked) {
        out.reason = "as requested with --workers";
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
        return {.reason = fmt::format("{} for {} is enough until a run shows waiting for batches",
                                      plural(static_cast<int>(*now)), cores_text(facts))};
    } else {
        out.reason = fmt::format(
            "{} the {}{}", share, cores_text(facts),
            now == 0 ? "; with 0 workers the training process loads the data itself" : "");
    }
    if (is_there) return {.reason = fmt::format("it is already {}", plural(wanted))};
    return out;
}

static Proposal cure_persistent_workers(const Facts& facts) {
    if (facts.number("num_workers").value_or(1) == 0) return {.reason = "there are no workers"};
    if (facts.is_on("persistent_workers")) return {.reason = "workers already stay alive"};
    return {.value = "true", .reason = "workers are not restarted in every epoch"};
}

static Proposal cure_prefetch_factor(const Facts& facts) {
    constexpr double kBursts = 0.1;
    std::optional<double> ahead = facts.number("prefetch_factor");
    Proposal out;
    auto at_first = facts.start.find("num_workers");
    if (ahead && at_first != facts.start.end() && at_first->second == "0") {
        out.wrong_now = "PyTorch refuses it while num_workers is 0";
        out.fix = "num_workers above 0, or no prefetch_factor";
    }
    if (facts.number("num_workers") == 0) {
        out.reason = "no workers, nothing to prefetch";
        out.remove = ahead.has_value();
    } else if (facts.is_measuring || facts.loader) {
        bool in_bursts = facts.spread > kBursts;
        out.reason = ahead >= 4   ? "four batches per worker are already kept ready"
                     : !in_bursts ? "the wait does not come in bursts"
                                  : "the wait comes in bursts: more batches ready";
        if (in_bursts && ahead.value_or(0) < 4) out.value = "4";
    } else if (ahead.value_or(0) >= 2) {
        out.reason = "two batches per worker are already kept ready";
    } else {
        out.value = "4";
        out.reason = "a slow sample does not empty the queue";
    }
    return out;
}

static Proposal cure_batched_fetch(const Facts& facts) {
    if (!facts.in_memory) return {.reason = "the data set is not tensors in memory"};
    if (facts.is_on("batched_fetch")) return {.reason = "batches are already cut out at once"};
    return {.value = "true", .reason = "tensors in memory: a batch is cut out at once"};
}

// This is no setting: fix edits the source if a watched run shows that it works.
static Proposal cure_saturate_loader(const Facts&) {
    return {.reason = "only a watched run shows whether it supports the data set"};
}

static Proposal cure_cache(const Facts& facts) {
    if (!facts.can_cache) return {.reason = "the data is already in memory"};
    if (!facts.is_measuring || !facts.loader)
        return {.reason = "only a measurement tells whether decoding is the bottleneck"};
    std::string now = facts.value("cache");
    if (!now.empty() && now != "off") return {.reason = "samples are already kept"};
    if (facts.memory_available_bytes == 0) return {.reason = "free memory is not known"};
    return {.value = "ram", .reason = "decoded samples kept in memory, from the second epoch on"};
}

static Proposal cure_pin_memory(const Facts& facts) {
    if (facts.on_cpu) {
        if (!facts.is_on("pin_memory")) return {.reason = "there is no GPU to pin memory for"};
        return {.value = "false",
                .reason = "no GPU: pinning only costs a copy",
                .expect = "one fewer copy per batch",
                .wrong_now = "there is no GPU to pin memory for"};
    }
    if (facts.is_on("pin_memory")) return {.reason = "batches are already pinned"};
    Proposal out{.value = "true", .reason = "page-locked batches are copied by the GPU itself"};
    if (!facts.is_on("non_blocking")) out.with["non_blocking"] = "true";
    return out;
}

static Proposal cure_non_blocking(const Facts& facts) {
    if (facts.on_cpu) return {.reason = "nothing is copied to a GPU"};
    if (facts.is_on("non_blocking")) return {.reason = "copies already do not block"};
    return {.value = "true", .reason = "the host goes on while a pinned batch is copied"};
}

namespace {

using enum Setting;
using Set = ShimWay::Set;
using Kind = SourceWay::Kind;

constexpr Remedy kLoader[] = {
    {.name = "num_workers",
     .setting = num_workers,
     .causes = "F01 F02 F30",
     .relief = Relief::input,
     .is_measured = true,
     .shim = {"num_workers", Set::safe, true, true},
     .source = {Kind::keyword, "DataLoader", "num_workers"},
     .expect = "the next batch is made while this one is computed",
     .propose = cure_num_workers},
    {.name = "batched_fetch",
     .setting = std::nullopt,
     .own_level = Level::safe,
     .causes = "F01",
     .relief = Relief::input,
     .is_measured = true,
     .shim = {"batched_fetch", Set::safe, false, true},
     .source = {Kind::by_hand, "DataLoader",
                "for rows in torch.randperm(n).split(batch_size): x[rows], y[rows]"},
     .expect = "whole batches are cut out, not row by row",
     .propose = cure_batched_fetch},
    {.name = "prefetch_factor",
     .setting = prefetch_factor,
     .causes = "F01 F05",
     .relief = Relief::input,
     .is_measured = true,
     .shim = {"prefetch_factor", Set::safe, true, false},
     .source = {Kind::keyword, "DataLoader", "prefetch_factor"},
     .expect = "a steadier supply of batches",
     .propose = cure_prefetch_factor},
    {.name = "persistent_workers",
     .setting = persistent_workers,
     .causes = "F05 F01 F02",
     .relief = Relief::input,
     .is_measured = true,
     .shim = {"persistent_workers", Set::safe, false, true},
     .source = {Kind::keyword, "DataLoader", "persistent_workers"},
     .expect = "no pause at epoch starts",
     .propose = cure_persistent_workers},
    {.name = "saturate_loader",
     .setting = std::nullopt,
     .own_level = Level::numerics,
     .causes = "F01 F02",
     .relief = Relief::input,
     .source = {Kind::by_hand, "DataLoader", "saturate_gpu.Loader.like({})"},
     .expect = "images are decoded by C++ threads, with fewer cores",
     .propose = cure_saturate_loader},
    {.name = "cache",
     .setting = cache,
     .causes = "F01",
     .relief = Relief::input,
     .is_measured = true,
     .expect = "no decoding from the second epoch on",
     .propose = cure_cache},
    {.name = "pin_memory",
     .setting = pin_memory,
     .causes = "F03 F04",
     .relief = Relief::copy,
     .for_gpu = true,
     .is_measured = true,
     .shim = {"pin_memory", Set::safe},
     .source = {Kind::keyword, "DataLoader", "pin_memory"},
     .expect = "copies at full bus speed, while the GPU computes",
     .propose = cure_pin_memory},
    {.name = "non_blocking",
     .setting = non_blocking,
     .causes = "F03 F04",
     .relief = Relief::copy,
     .for_gpu = true,
     .is_measured = true,
     .source = {Kind::keyword, "to", "non_blocking"},
     .expect = "copy hidden behind computation",
     .propose = cure_non_blocking},
};

}  // namespace

std::span<const Remedy> loader_remedies() { return kLoader; }

}  // namespace saturate
