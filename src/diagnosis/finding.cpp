// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/finding.h"

#include <algorithm>

#include "base/error.h"

namespace saturate {
namespace {

constexpr FindingRow kRows[] = {
    {"F01", "waiting for data",
     "more loader workers, prefetch_factor 4, persistent_workers=True; then faster decoding or a "
     "cache",
     "trace, run", "the device idles while the training thread waits for the next batch"},
    {"F02", "loader runs in the training process",
     "DataLoader(num_workers=N, persistent_workers=True)", "trace, run, configuration",
     "num_workers is 0: batches are made between two steps, by the thread that trains"},
    {"F03", "pageable host-to-device copies",
     "DataLoader(pin_memory=True) and batch.to(device, non_blocking=True)",
     "trace, run, configuration",
     "copies to the GPU from memory that is not page-locked, or pin_memory off"},
    {"F04", "input copy not overlapped",
     "copy the next batch on a side stream while this one computes", "trace",
     "page-locked copies run on the GPU while no kernel runs"},
    {"F05", "loader jitter or epoch restart",
     "persistent_workers=True and a larger prefetch_factor", "trace, run",
     "some waits for a batch are over 5 times the median, or workers are restarted in every epoch"},
    {"F06", "hidden synchronisation by reading a value",
     "keep the value on the GPU; read losses every N steps (.detach(), then .item() when logging)",
     "trace, run, configuration",
     "item(), tolist(), a comparison or print of a GPU value makes the host wait; log_interval is "
     "short"},
    {"F07", "explicit synchronisation", "remove torch.cuda.synchronize(); time with CUDA events",
     "trace, run", "calls that wait for the device and leave it idle"},
    {"F08", "device-to-host copies in the loop",
     "collect results on the GPU, copy once into pinned memory with non_blocking=True", "trace",
     "copies to pageable host memory in every step"},
    {"F09", "allocator churn",
     "leave the caching allocator on (no empty_cache(), no PYTORCH_NO_CUDA_MEMORY_CACHING); "
     "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; fixed shapes",
     "trace", "cudaMalloc and cudaFree inside the steps, which leave the device idle"},
    {"F10", "launch bound", "model = torch.compile(model); CUDA graphs; a larger batch",
     "trace, run",
     "the device idles while the host is inside operators: launching takes longer than computing"},
    {"F11", "python between operators",
     "move Python work out of the loop; gc.freeze() and gc.disable() while training", "trace, run",
     "the device idles while the host is between operators; the garbage collector runs in the "
     "steps"},
    {"F12", "tiny kernels", "fuse them: torch.compile, or fused modules", "trace",
     "kernels under 10 us, and the waits before them, take a large part of the recorded time"},
    {"F13", "per-tensor optimizer", "optimizer = AdamW(..., fused=True), or foreach=True",
     "trace, run", "Optimizer.step launches one kernel or more for each parameter"},
    {"F14", "zero_grad by kernels", "optimizer.zero_grad(set_to_none=True)",
     "trace, run, configuration", "zero_grad fills gradients with kernels or memsets"},
    {"F15", "exposed communication",
     "overlap it with backward: larger buckets, no_sync() while accumulating, "
     "gradient_as_bucket_view",
     "trace, run", "collectives run while nothing is computed"},
    {"F16", "many small collectives",
     "bucket the gradients (DDP bucket_cap_mb=25, or coalesced all-reduce)", "trace, run",
     "many short collectives in each step"},
    {"F17", "straggler rank", "fix what slows the late rank down; the others wait for it",
     "traces or records of all ranks", "one rank is the last to arrive at most collectives"},
    {"F18", "FP32 on a GPU with tensor cores",
     "torch.set_float32_matmul_precision('high') for TF32, or torch.autocast('cuda', "
     "torch.bfloat16)",
     "trace", "matrix products and convolutions in FP32 although the GPU has tensor cores"},
    {"F19", "layout transposes", "model and input .to(memory_format=torch.channels_last)", "trace",
     "kernels that turn NCHW into NHWC and back"},
    {"F20", "unfused attention", "torch.nn.functional.scaled_dot_product_attention", "trace",
     "softmax kernels between two matrix products"},
    {"F21", "misaligned matrix products", "pad the named dimension to a multiple of 8",
     "trace with shapes",
     "half-precision matrix products with a dimension that is not a multiple of 8"},
    {"F22", "needless copies", "avoid permute + contiguous and clone in the model", "trace",
     "element-wise and device-to-device copies take a large part of kernel time"},
    {"F23", "evaluation or checkpoint pause",
     "save asynchronously, evaluate less often, evaluate under inference_mode in half precision",
     "trace, run", "evaluation or checkpoint inside the loop"},
    {"F24", "recompilation in steady state",
     "fixed shapes, or torch.compile(dynamic=True) and mark_dynamic", "trace",
     "compilation or module loading after the first step"},
    {"F25", "under-filled GPU", "a larger batch, or fused operators", "trace",
     "kernels with fewer blocks than the GPU has multiprocessors"},
    {"F26", "work that can be left out",
     "bias=False before batch norm; create tensors on the device", "trace",
     "a bias that batch norm removes again; tensors filled on the CPU and then moved"},
    {"F27", "CUDA-graph candidate", "capture the step: torch.compile(mode='reduce-overhead')",
     "trace", "a launch-bound job whose steps launch the same kernels and read nothing back"},
    {"F28", "DataParallel or the wrong backend",
     "DistributedDataParallel with NCCL, one process per GPU", "trace, run",
     "one process launches on several GPUs, or gloo carries the gradients of a GPU job"},
    {"F29", "throttled", "raise the power limit, improve the cooling", "run",
     "the driver lowered the clocks: power limit, heat or power brake"},
    {"F30", "too many workers or threads",
     "fewer workers, one thread each; no more threads than cores", "run, configuration",
     "more loader workers than cores with tasks waiting for a core, or more threads than cores"},
    {"F31", "memory unused", "a larger batch, with the learning rate scaled to it", "run",
     "the run never used more than a part of the GPU's memory"},
    {"F32", "setting without effect", "make the edit below", "run, configuration",
     "a value that the program does not know, that another setting overrides, or that had no "
     "effect in the run"},
    {"F33", "unfused element-wise work",
     "torch.compile the part that runs them, or fused modules (fused norm, fused activation)",
     "trace",
     "the GPU is busy, but mostly with runs of element-wise kernels that each read and write "
     "memory"},
    {"F34", "memory that grows",
     "do not keep batches, losses or graphs in lists; create loaders once", "run",
     "the memory of the job or of the GPU rises in a straight line until it runs out"},
    {"F35", "steps that get slower",
     "look for what grows: lists, logs, files in one folder, caches without a limit", "run",
     "the steps of each part of the run take longer than those of the part before"},
};

}  // namespace

std::span<const FindingRow> finding_table() { return kRows; }

std::string_view confidence_text(Confidence confidence) {
    return confidence == Confidence::high  ? "high"
           : confidence == Confidence::low ? "low"
                                           : "medium";
}

static const FindingRow& row_of(std::string_view id) {
    for (const FindingRow& row : kRows) {
        if (row.id == id) return row;
    }
    throw Bug(__FILE__, __LINE__, "a finding has a row in the table");
}

std::string_view Finding::name() const { return row_of(id).name; }
std::string Finding::fix_text() const { return fix.empty() ? std::string(row_of(id).fix) : fix; }

// True if two sources report the same problem. One source never reports a problem twice: its
// findings with the same id are different problems (a bias before batch norm, a tensor filled on
// the CPU). Some ids cover many kinds of problem; for those the fixes must be equal as well.
static bool is_same(const Finding& one, const Finding& other) {
    if (one.id != other.id) return false;
    for (const std::string& source : one.sources) {
        if (std::ranges::find(other.sources, source) != other.sources.end()) return false;
    }
    bool has_kinds = one.id == "F26" || one.id == "F32";
    return !has_kinds || one.fix_text() == other.fix_text();
}

std::vector<Finding> merged(std::vector<Finding> findings) {
    std::vector<Finding> out;
    for (Finding& finding : findings) {
        auto same = std::ranges::find_if(
            out, [&](const Finding& other) { return is_same(finding, other); });
        if (same == out.end()) {
            out.push_back(std::move(finding));
            continue;
        }
        // Keep the finding with the larger gain and add the evidence of the other one.
        if (finding.gain.likely > same->gain.likely) std::swap(finding, *same);
        same->evidence += "; " + finding.evidence;
        same->confidence = Confidence::high;
        for (std::string& source : finding.sources) {
            if (std::ranges::find(same->sources, source) == same->sources.end())
                same->sources.push_back(std::move(source));
        }
        for (SettingChange& setting : finding.settings)
            same->settings.push_back(std::move(setting));
        if (same->fix.empty()) same->fix = finding.fix;
        if (same->where.empty()) same->where = finding.where;
        if (same->patch.empty()) same->patch = finding.patch;
    }
    std::ranges::stable_sort(out, [](const Finding& a, const Finding& b) {
        if (a.gain.likely != b.gain.likely) return a.gain.likely > b.gain.likely;
        return a.share_percent > b.share_percent;
    });
    std::vector<Finding> ordered;
    for (Finding& finding : out) {
        if (!finding.part_of.empty() &&
            std::ranges::find(out, finding.part_of, &Finding::id) != out.end())
            continue;
        bool is_first = std::ranges::find(ordered, finding.id, &Finding::id) == ordered.end();
        ordered.push_back(finding);
        for (const Finding& part : out) {
            if (!is_first) break;
            if (part.part_of == finding.id) ordered.push_back(part);
        }
    }
    return ordered;
}

}  // namespace saturate
