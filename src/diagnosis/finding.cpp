// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/finding.h"

#include <algorithm>

#include "base/error.h"

namespace saturate {
namespace {

constexpr FindingRow kRows[] = {
    {"F01", "input wait",
     "more loader workers, prefetch_factor 4, persistent_workers=True; then faster decoding or a "
     "cache"},
    {"F02", "loader runs in the training process",
     "DataLoader(num_workers=N, persistent_workers=True)"},
    {"F03", "pageable host-to-device copies",
     "DataLoader(pin_memory=True) and batch.to(device, non_blocking=True)"},
    {"F04", "input copy not overlapped",
     "copy the next batch on a side stream while this one computes"},
    {"F05", "loader jitter or epoch restart",
     "persistent_workers=True and a larger prefetch_factor"},
    {"F06", "hidden synchronisation by reading a value",
     "keep the value on the GPU; read losses every N steps (.detach(), then .item() when logging)"},
    {"F07", "explicit synchronisation", "remove torch.cuda.synchronize(); time with CUDA events"},
    {"F08", "device-to-host copies in the loop",
     "collect results on the GPU, copy once into pinned memory with non_blocking=True"},
    {"F09", "allocator churn",
     "leave the caching allocator on (no empty_cache(), no PYTORCH_NO_CUDA_MEMORY_CACHING); "
     "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; fixed shapes"},
    {"F10", "launch bound", "model = torch.compile(model); CUDA graphs; a larger batch"},
    {"F11", "python between operators",
     "move python work out of the loop; gc.freeze() and gc.disable() while training"},
    {"F12", "tiny kernels", "fuse them: torch.compile, or fused modules"},
    {"F13", "per-tensor optimizer", "optimizer = AdamW(..., fused=True), or foreach=True"},
    {"F14", "zero_grad by kernels", "optimizer.zero_grad(set_to_none=True)"},
    {"F15", "exposed communication",
     "overlap it with backward: larger buckets, no_sync() while accumulating, "
     "gradient_as_bucket_view"},
    {"F16", "many small collectives",
     "bucket the gradients (DDP bucket_cap_mb=25, or coalesced all-reduce)"},
    {"F17", "straggler rank", "fix the late rank's own cause; the others wait for it"},
    {"F18", "FP32 on a GPU with tensor cores",
     "torch.set_float32_matmul_precision('high') for TF32, or torch.autocast('cuda', "
     "torch.bfloat16)"},
    {"F19", "layout transposes", "model and input .to(memory_format=torch.channels_last)"},
    {"F20", "unfused attention", "torch.nn.functional.scaled_dot_product_attention"},
    {"F21", "misaligned matrix products", "pad the named dimension to a multiple of 8"},
    {"F22", "needless copies", "avoid permute + contiguous and clone in the model"},
    {"F23", "evaluation or checkpoint pause",
     "save asynchronously, evaluate less often, evaluate under inference_mode in half precision"},
    {"F24", "recompilation in steady state",
     "fixed shapes, or torch.compile(dynamic=True) and mark_dynamic"},
    {"F25", "under-filled GPU", "a larger batch, or fused operators"},
    {"F26", "work that can be left out",
     "bias=False before batch norm; create tensors on the device"},
    {"F27", "CUDA-graph candidate", "capture the step: torch.compile(mode='reduce-overhead')"},
    {"F28", "DataParallel or the wrong backend",
     "DistributedDataParallel with NCCL, one process per GPU"},
    {"F29", "throttled", "raise the power limit, improve the cooling"},
    {"F30", "too many loader workers", "fewer workers; one thread in each"},
    {"F31", "memory unused", "a larger batch with the learning-rate rule"},
    {"F32", "setting without effect", "the edit below"},
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

std::vector<Finding> merged(std::vector<Finding> findings) {
    std::vector<Finding> out;
    for (Finding& finding : findings) {
        auto same = std::ranges::find(out, finding.id, &Finding::id);
        if (same == out.end()) {
            out.push_back(std::move(finding));
            continue;
        }
        // The better measured one speaks; the other adds its evidence.
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
        ordered.push_back(finding);
        for (const Finding& part : out) {
            if (part.part_of == finding.id) ordered.push_back(part);
        }
    }
    return ordered;
}

}  // namespace saturate
