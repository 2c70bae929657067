// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/text.h"
#include "probe/gpu_table.h"

namespace saturate {

std::string gpu_reference() {
    auto rate = [](const std::optional<double>& value) {
        return value ? fmt::format("{:g}", *value) : std::string("-");
    };
    std::string out =
        "# GPUs\n\n"
        "Made from `src/probe/gpus.csv`, which `optimize`, `tune` and the simulated device go by, "
        "with "
        "the sources of each row.\n"
        "Rates are dense peaks in TFLOPS of data sheets, fp16 accumulating in fp32; none was "
        "measured by this project. A card that is not\n"
        "here is taken as its nearest neighbour by compute capability and memory, and the output "
        "says so.\n\n"
        "| GPU | architecture | memory | GB/s | fp32 | tf32 | fp16 | bf16 | fp8 | best precision | "
        "source, note |\n|---|---|---|---|---|---|---|---|---|---|---|\n";
    for (const GpuFacts& gpu : gpu_table()) {
        out += fmt::format("| {} | {} | {} | {:g} | {:g} | {} | {} | {} | {} | {}{} | {}{}{} |\n",
                           gpu.name, gpu.arch, bytes_text(gpu.memory_bytes), gpu.bandwidth_gbs,
                           gpu.fp32_tflops, rate(gpu.tf32_tflops), rate(gpu.fp16_tflops),
                           rate(gpu.bf16_tflops), rate(gpu.fp8_tflops),
                           precision_name(gpu.best_precision),
                           gpu.needs_grad_scaler ? " with scaler" : "", gpu.source,
                           gpu.note.empty() ? "" : "; ", gpu.note);
    }
    return out;
}

}  // namespace saturate
