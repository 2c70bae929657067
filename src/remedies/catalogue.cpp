// SPDX-License-Identifier: Apache-2.0
#include "remedies/catalogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "remedies/cures.h"

namespace saturate {

namespace {

using enum Setting;
using Set = ShimWay::Set;
using Kind = SourceWay::Kind;

constexpr Remedy kRemedies[] = {
    // Another model first: everything after it is for that model.
    {.name = "base_channels",
     .setting = base_channels,
     .source = {Kind::declared},
     .propose = grow_base_channels},
    {.name = "num_blocks",
     .setting = num_blocks,
     .source = {Kind::declared},
     .propose = grow_num_blocks},
    {.name = "patch_size",
     .setting = patch_size,
     .source = {Kind::declared},
     .propose = grow_patch_size},
    {.name = "use_perceptual",
     .setting = use_perceptual,
     .source = {Kind::declared},
     .propose = grow_use_perceptual},
    {.name = "hidden_size",
     .setting = hidden_size,
     .source = {Kind::declared},
     .propose = grow_hidden_size},

    // The loader.
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
     .expect = "steadier supply",
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
     .expect = "copies at the speed of the bus, beside the computation",
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

    // The arithmetic.
    {.name = "precision",
     .setting = precision,
     .causes = "F18",
     .relief = Relief::device,
     .is_measured = true,
     .shim = {"autocast", Set::by_name},
     .source = {Kind::around_forward, "", "with torch.autocast(\"{device}\", torch.{value}):"},
     .expect = "faster matrix work, activations half the memory",
     .propose = cure_precision},
    {.name = "tf32",
     .setting = tf32,
     .causes = "F18",
     .relief = Relief::device,
     .for_gpu = true,
     .is_measured = true,
     .shim = {"tf32", Set::numerics},
     .source = {Kind::statement, "", "torch.set_float32_matmul_precision(\"high\")"},
     .expect = "fp32 matrix work on tensor cores",
     .propose = cure_tf32},
    {.name = "channels_last",
     .setting = channels_last,
     .causes = "F19",
     .relief = Relief::device,
     .is_measured = true,
     .pair = "batch_size",
     .shim = {"channels_last", Set::by_name},
     .source = {Kind::after_model, "", "{model} = {model}.to(memory_format=torch.channels_last)"},
     .expect = "0.85 to 1.4 times, by network: measure it",
     .propose = cure_channels_last},
    {.name = "cudnn_benchmark",
     .setting = cudnn_benchmark,
     .causes = "F25",
     .relief = Relief::device,
     .for_gpu = true,
     .is_measured = true,
     .shim = {"cudnn_benchmark", Set::numerics},
     .source = {Kind::statement, "", "torch.backends.cudnn.benchmark = True"},
     .expect = "faster convolutions where shapes do not change",
     .propose = cure_cudnn_benchmark},
    {.name = "gradient_checkpointing",
     .setting = gradient_checkpointing,
     .causes = "F31",
     .relief = Relief::device,
     .is_measured = true,
     .source = {Kind::declared},
     .expect = "a quarter less work, more memory",
     .propose = cure_gradient_checkpointing},
    {.name = "compile",
     .setting = compile,
     .causes = "F10 F12 F27",
     .relief = Relief::host,
     .is_measured = true,
     .shim = {"compile", Set::by_name},
     .source = {Kind::after_model, "", "{model} = torch.compile({model})"},
     .expect = "write-ups report 1.1 to 1.5 times; the first step takes 30 to 60 s",
     .propose = cure_compile},
    {.name = "fused_optimizer",
     .setting = fused_optimizer,
     .causes = "F13 F12",
     .relief = Relief::unknown,
     .for_gpu = true,
     .is_measured = true,
     .shim = {"fused", Set::numerics},
     .source = {Kind::keyword, "optimizer", "fused"},
     .expect = "some hundred small kernels fewer per step",
     .propose = cure_fused_optimizer},
    {.name = "foreach",
     .setting = std::nullopt,
     .own_level = Level::numerics,
     .causes = "F13",
     .relief = Relief::unknown,
     .for_gpu = true,
     .shim = {"foreach", Set::by_name},
     .source = {Kind::keyword, "optimizer", "foreach"},
     .expect = "some hundred small kernels fewer per step, at the cost of memory",
     .propose = cure_foreach},
    {.name = "set_to_none",
     .setting = set_to_none,
     .causes = "F14",
     .relief = Relief::unknown,
     .is_measured = true,
     .shim = {"set_to_none", Set::safe},
     .source = {Kind::keyword, "zero_grad", "set_to_none"},
     .expect = "one pass over the gradients fewer",
     .propose = cure_set_to_none},
    {.name = "threads",
     .setting = threads,
     .causes = "F30 F01",
     .relief = Relief::unknown,
     .is_measured = true,
     .shim = {"threads", Set::safe, true, true},
     .source = {Kind::statement, "", "torch.set_num_threads({})"},
     .expect = "less switching between threads",
     .propose = cure_threads},
    {.name = "attention",
     .setting = std::nullopt,
     .own_level = Level::numerics,
     .causes = "F20",
     .relief = Relief::device,
     .source = {Kind::by_hand, "", "torch.nn.functional.scaled_dot_product_attention"},
     .expect = "one kernel for what were three, and no matrix of scores in memory",
     .propose = cure_attention},
    {.name = "expandable_segments",
     .setting = std::nullopt,
     .own_level = Level::safe,
     .causes = "F09",
     .relief = Relief::host,
     .for_gpu = true,
     .source = {Kind::environment, "", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
     .expect = "fewer calls of cudaMalloc inside the steps",
     .propose = cure_expandable_segments},
    {.name = "bucket_size",
     .setting = bucket_size,
     .causes = "F16",
     .relief = Relief::host,
     .expect = "less waiting for many small messages",
     .propose = cure_bucket_size},
    {.name = "gradient_compression",
     .setting = gradient_compression,
     .causes = "F15",
     .relief = Relief::host,
     .expect = "half the bytes between ranks",
     .propose = cure_gradient_compression},

    // What training sees of it.
    {.name = "batch_size",
     .setting = batch_size,
     .causes = "F10 F25 F31",
     .relief = Relief::unknown,
     .is_measured = true,
     .pair = "channels_last",
     .source = {Kind::declared, "DataLoader", "batch_size"},
     .expect = "fewer, larger steps",
     .propose = cure_batch_size},
    {.name = "gradient_accumulation_steps",
     .setting = gradient_accumulation_steps,
     .is_measured = true,
     .source = {Kind::declared},
     .expect = "the effective batch stays",
     .propose = cure_accumulation},
    {.name = "learning_rate",
     .setting = learning_rate,
     .is_measured = true,
     .source = {Kind::declared},
     .propose = cure_learning_rate},
    {.name = "grad_clip",
     .setting = grad_clip,
     .source = {Kind::declared},
     .propose = cure_grad_clip},
    {.name = "log_interval",
     .setting = log_interval,
     .causes = "F06",
     .relief = Relief::log,
     .is_measured = true,
     .source = {Kind::loop},
     .propose = cure_log_interval},
    {.name = "eval_interval",
     .setting = eval_interval,
     .causes = "F23",
     .relief = Relief::pause,
     .source = {Kind::declared},
     .propose = cure_eval_interval},
    {.name = "checkpoint_interval",
     .setting = checkpoint_interval,
     .causes = "F23",
     .relief = Relief::pause,
     .source = {Kind::declared},
     .propose = cure_checkpoint_interval},
};

}  // namespace

bool Remedy::relieves(std::string_view finding) const {
    return std::ranges::any_of(split(causes, ' '),
                               [&](std::string_view id) { return id == finding; });
}

std::span<const Remedy> remedies() { return kRemedies; }

const Remedy* find_remedy(std::string_view name) {
    for (const Remedy& remedy : kRemedies) {
        if (remedy.name == name) return &remedy;
    }
    for (const Remedy& remedy : kRemedies) {
        if (!name.empty() && remedy.shim.name == name) return &remedy;
    }
    return nullptr;
}

const Remedy* find_remedy(Setting setting) {
    for (const Remedy& remedy : kRemedies) {
        if (remedy.setting == setting) return &remedy;
    }
    return nullptr;
}

std::vector<Choice> choices_for(std::string_view finding, const Facts& facts) {
    std::vector<Choice> out;
    for (const Remedy& remedy : kRemedies) {
        if (!remedy.relieves(finding) || (remedy.for_gpu && facts.on_cpu)) continue;
        Proposal proposal = remedy.propose(facts);
        if (proposal.value) out.push_back({&remedy, std::move(proposal)});
    }
    // What names the finding first is most to the point.
    std::ranges::stable_sort(
        out, {}, [&](const Choice& choice) { return choice.remedy->causes.find(finding); });
    return out;
}

std::string shim_table() {
    std::string levels, safe, numerics, by_name, needed, valued;
    for (const Remedy& remedy : kRemedies) {
        if (remedy.shim.name.empty()) continue;
        std::string name = fmt::format("\"{}\", ", remedy.shim.name);
        levels +=
            fmt::format("    \"{}\": \"{}\",\n", remedy.shim.name, level_name(remedy.level()));
        (remedy.shim.set == Set::safe       ? safe
         : remedy.shim.set == Set::numerics ? numerics
                                            : by_name) += name;
        if (remedy.shim.for_need) needed += name;
        if (remedy.shim.has_value) valued += name;
    }
    return fmt::format(
        "# Made from src/remedies/catalogue.cpp.\n"
        "LEVELS = {{\n{}}}\n"
        "SAFE = ({})  # what --apply safe asks for\n"
        "NUMERICS = ({})  # what --apply numerics asks for besides\n"
        "BY_NAME = ({})  # faster here, slower there: only where asked for\n"
        "NEEDED = ({})  # whose need a run can measure: --apply auto\n"
        "VALUED = ({})  # name=value\n",
        levels, safe, numerics, by_name, needed, valued);
}

}  // namespace saturate
