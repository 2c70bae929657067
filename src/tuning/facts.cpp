// SPDX-License-Identifier: Apache-2.0
#include "tuning/facts.h"

#include "config/reference_jobs.h"

namespace saturate {

TuningFacts tuning_facts(const Settings& settings, const CpuFacts& cpu, const MemoryFacts& memory,
                         const std::optional<GpuFacts>& gpu, Level level) {
    TuningFacts facts{.cores = cpu.cores_usable, .on_cpu = !gpu, .level = level};
    if (gpu) {
        facts.has_bf16 = gpu->best_precision == Precision::bf16;
        facts.has_fp16 = gpu->best_precision == Precision::fp16;
        facts.has_tf32 = facts.has_bf16;  // both came with capability 8.0
        facts.device_memory_bytes = gpu->memory_bytes;
    } else {
        facts.has_bf16 = cpu.has("avx512_bf16") || cpu.has("amx_bf16");
    }
    const ReferenceJob* job = find_reference_job(settings.word(Setting::job));
    facts.has_images = !job || job->has_convolutions;
    const Value* data = settings.get(Setting::data);
    facts.can_cache = !data || !data->text.ends_with(".csv");
    facts.memory_available_bytes = memory.available_bytes.value_or(0);
    if (auto size = settings.number(Setting::dataset_size))
        facts.dataset_size = static_cast<std::int64_t>(*size);
    return facts;
}

}  // namespace saturate
