// SPDX-License-Identifier: Apache-2.0
#include "tuning/moves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace saturate {

namespace {

bool is_on(const Assignment& settings, const std::string& key) {
    std::string value = value_of(settings, key);
    return value == "true" || value == "on" || value == "yes" || value == "default";
}

constexpr double kSmallStepSeconds = 0.02;
constexpr double kWaitingDevice = 0.25;  // idle share beyond which it is not the device that limits
constexpr double kSerialLog = 0.03;      // share of readings from which host and device take turns

int workers_of(const Assignment& settings) {
    return static_cast<int>(parse_integer(value_of(settings, "num_workers")).value_or(-1));
}

}  // namespace

std::vector<Move> loader_moves(const TuningFacts& facts, const Assignment& now, const Rate& rate,
                               double bound) {
    std::vector<Move> moves;
    if (facts.in_memory) {
        if (!is_on(now, "batched_fetch"))
            moves.push_back({"input",
                             {{"batched_fetch", "true"}},
                             "tensors in memory: a batch is cut out at once"});
        return moves;  // handing rows over from workers is slower
    }
    int workers = workers_of(now);
    // Work of the loader per second of the model: what one step waits and hides, over what the
    // model alone needs. A fifth more, because samples differ.
    double step = rate.step_seconds;
    double compute = bound > 0 ? step * rate.per_second / bound : step * (1 - rate.input_wait_share);
    double fetch = workers > 0 ? step * workers : std::max(step - compute, 0.0);
    int wanted = compute > 0 ? static_cast<int>(std::ceil(1.2 * fetch / compute)) : facts.cores;
    // Decoding cannot use more threads than cores; waiting for a disk can.
    int most = facts.on_cpu ? facts.cores : 2 * facts.cores;
    wanted = std::clamp(wanted, 1, std::max(1, most));
    auto add_workers = [&](int count, std::string reason) {
        if (count == workers || count < 1) return;
        Move move{"input", {{"num_workers", std::to_string(count)}}, std::move(reason)};
        if (workers == 0 && value_of(now, "prefetch_factor").empty())
            move.change["prefetch_factor"] = "2";
        if (!is_on(now, "persistent_workers")) move.change["persistent_workers"] = "true";
        moves.push_back(move);
    };
    add_workers(wanted,
                fmt::format("loading takes {:.1f} times the model's time per step: {} worker{}",
                            compute > 0 ? fetch / compute : 0.0, wanted, wanted == 1 ? "" : "s"));
    add_workers((wanted + 1) / 2, "half as many: workers and model share the cores");
    if (workers > most) add_workers(most, "no more workers than cores can serve");
    if (workers > 0 && !is_on(now, "persistent_workers"))
        moves.push_back({"input",
                         {{"persistent_workers", "true"}},
                         "workers outlive the epoch that began them"});
    if (facts.can_cache && value_of(now, "cache") == "off" && facts.memory_available_bytes > 0)
        moves.push_back({"input",
                         {{"cache", "ram"}},
                         "decoded samples kept in memory, from the second epoch on"});
    // The model leaves the loader its cores.
    int model_threads =
        static_cast<int>(parse_integer(value_of(now, "threads")).value_or(facts.cores));
    if (facts.on_cpu && facts.level >= Level::numerics && workers > 0 &&
        workers + model_threads > facts.cores && facts.cores > workers)
        moves.push_back({"input",
                         {{"threads", std::to_string(facts.cores - workers)}},
                         "workers and model share the cores"});
    auto prefetch = parse_integer(value_of(now, "prefetch_factor")).value_or(2);
    if (rate.spread() > 0.1 && prefetch < 4)
        moves.push_back(
            {"input", {{"prefetch_factor", "4"}}, "the wait comes in bursts: more batches ready"});
    return moves;
}

std::vector<Move> compute_moves(const TuningFacts& facts, const Assignment& now,
                                double step_seconds) {
    std::vector<Move> moves;
    auto add = [&](const char* cause, const char* key, const char* value, const char* reason,
                   Relief relief = Relief::unknown) {
        moves.push_back({cause, {{key, value}}, reason, relief});
    };
    if (!facts.on_cpu) {
        Move move{"copy", {}, "copies do not hold up the host", Relief::copy};
        for (const char* key : {"pin_memory", "non_blocking"})
            if (!is_on(now, key)) move.change[key] = "true";
        if (!move.change.empty()) moves.push_back(move);
        if (parse_integer(value_of(now, "log_interval")).value_or(50) < 10)
            add("synchronisation", "log_interval", "50",
                "reading the loss makes the host wait for the device", Relief::log);
    }
    if (!is_on(now, "set_to_none"))
        add("optimizer", "set_to_none", "true", "gradients are dropped, not filled with zeros");
    if (facts.level < Level::numerics) return moves;
    std::string precision = value_of(now, "precision");
    bool reduced = precision == "bf16" || precision == "fp16" || precision == "true";
    if (facts.has_bf16 && !reduced)
        add("precision", "precision", "bf16", "the device multiplies bf16 faster", Relief::device);
    else if (facts.has_fp16 && !reduced)
        add("precision", "precision", "fp16", "the device multiplies fp16 faster", Relief::device);
    // In reduced precision hardly a product of fp32 is left.
    if (facts.has_tf32 && !reduced && !is_on(now, "tf32"))
        add("precision", "tf32", "true", "fp32 products on tensor cores", Relief::device);
    if (facts.has_images)
        add("layout", "channels_last", is_on(now, "channels_last") ? "false" : "true",
            "the layout that convolutions like is found by trying", Relief::device);
    if (!facts.on_cpu && facts.has_images && !is_on(now, "cudnn_benchmark") &&
        !is_on(now, "deterministic"))
        add("algorithm", "cudnn_benchmark", "true", "convolutions choose their algorithm by timing",
            Relief::device);
    if (is_on(now, "gradient_checkpointing"))
        add("recomputation", "gradient_checkpointing", "false",
            "activations are kept, where they fit, and not computed again", Relief::device);
    if (!is_on(now, "fused_optimizer"))
        add("optimizer", "fused_optimizer", "true", "one call updates all parameters");
    bool is_small = step_seconds > 0 && step_seconds < kSmallStepSeconds;
    if (facts.on_cpu && facts.cores > 1 && is_small && value_of(now, "threads") != "1")
        add("threads", "threads", "1", "small steps lose more by sharing work than they gain");
    if (auto move = compiler_move(facts, now); move && !facts.on_cpu) moves.push_back(*move);
    return moves;
}

double most_gain(Relief relief, const TuningFacts& facts, const Rate& rate) {
    if (facts.on_cpu) return 1;
    bool exact = facts.busy_is_exact && rate.device_busy_share.has_value();
    double idle = exact ? 1 - *rate.device_busy_share : 1;
    switch (relief) {
        case Relief::copy:
            return std::min(rate.copy_share, idle);
        case Relief::log:
            return std::min(rate.log_share, idle);
        case Relief::host:
            return idle;
        case Relief::device:
            // A device that waits for the host or the loader gains nothing by being faster, unless
            // the host in turn waits for it at every reading of the loss.
            return exact && idle > kWaitingDevice && rate.log_share < kSerialLog ? 0 : 1;
        case Relief::input:
        case Relief::pause:
        case Relief::unknown:
            break;
    }
    return 1;
}

std::optional<Move> compiler_move(const TuningFacts& facts, const Assignment& now) {
    if (!facts.can_compile || facts.level < Level::numerics || is_on(now, "compile"))
        return std::nullopt;
    return Move{"compile", {{"compile", "true"}}, "fewer and larger kernels", Relief::host};
}

}  // namespace saturate
