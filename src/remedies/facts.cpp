// SPDX-License-Identifier: Apache-2.0
#include "remedies/facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace saturate {

bool is_on_text(std::string_view value) {
    return value == "true" || value == "on" || value == "yes" || value == "default";
}

int Facts::cores_per_process() const { return std::max(1, cores / std::max(1, processes)); }

std::string Facts::device() const {
    if (on_cpu) return "this CPU";
    return gpu ? gpu->name : "the GPU";
}

Precision Facts::best_precision() const {
    if (has_bf16) return Precision::bf16;
    return has_fp16 ? Precision::fp16 : Precision::fp32;
}

std::string Facts::value(std::string_view name) const {
    auto found = now.find(std::string(name));
    return found == now.end() ? "" : found->second;
}

std::optional<double> Facts::number(std::string_view name) const {
    return parse_number(value(name));
}

bool Facts::is_on(std::string_view name) const { return is_on_text(value(name)); }

bool Facts::is_off(std::string_view name) const {
    std::string text = value(name);
    return text == "false" || text == "off" || text == "no";
}

void Facts::put(const std::string& name, const std::string& text) {
    now[name] = text;
    if (!shape) return;
    double number = parse_number(text).value_or(0);
    if (name == "base_channels") shape->base_channels = number;
    if (name == "num_blocks") shape->num_blocks = number;
    if (name == "patch_size") shape->patch_size = number;
    if (name == "hidden_size") shape->hidden_size = number;
    if (name == "use_perceptual") shape->use_perceptual = is_on_text(text);
}

Facts machine_facts(const CpuFacts& cpu, const MemoryFacts& memory,
                    const std::optional<GpuFacts>& gpu, Level level) {
    Facts facts{.cores = cpu.cores_usable, .on_cpu = !gpu, .level = level, .gpu = gpu};
    facts.memory_available_bytes = memory.available_bytes.value_or(0);
    if (gpu) {
        facts.has_bf16 = gpu->best_precision == Precision::bf16;
        facts.has_fp16 = gpu->best_precision == Precision::fp16;
        facts.has_tf32 = gpu->has_tf32;
        facts.device_memory_bytes = gpu->memory_bytes;
        // Triton, which torch.compile uses, needs capability 7.0. AMD cards have no such number.
        facts.can_compile = !gpu->capability || *gpu->capability >= Capability{7, 0};
    } else {
        facts.has_bf16 = cpu.has("avx512_bf16") || cpu.has("amx_bf16") || cpu.has("bf16");
    }
    return facts;
}

void add_settings(Facts& facts, const Settings& settings) {
    facts.start = facts.now = values_in_force(settings);
    facts.in_engine = settings.dialect().is_ours();
    facts.shape = shape_of(settings);
    facts.has_images = facts.shape
                           ? facts.shape->has_convolutions
                           : facts.in_engine || settings.get(Setting::channels_last) != nullptr;
    const Value* data = settings.get(Setting::data);
    facts.can_cache = !data || !data->text.ends_with(".csv");
    if (auto size = settings.number(Setting::dataset_size); size && facts.dataset_size == 0)
        facts.dataset_size = static_cast<std::int64_t>(*size);
}

Assignment values_in_force(const Settings& settings) {
    Assignment out;
    for (const SettingInfo& info : schema()) {
        const Value* value = settings.get(info.id);
        if (!value || value->left_alone) continue;
        std::string name(info.name);
        if (info.id == Setting::precision) {
            auto wish = settings.precision();
            if (!wish) continue;
            out[name] = !wish->on    ? "none"
                        : wish->type ? std::string(precision_name(*wish->type))
                                     : "true";
        } else if (value->flag) {
            out[name] = *value->flag ? "true" : "false";
        } else if (!value->numbers.empty()) {
            out[name] = fmt::format("{}", value->numbers[0]);
        } else {
            out[name] = value->text;
        }
    }
    return out;
}

std::string value_of(const Assignment& settings, const std::string& key) {
    if (auto found = settings.find(key); found != settings.end()) return found->second;
    const SettingInfo* info = find_setting(key);
    return info ? std::string(info->default_text) : "";
}

Assignment with_defaults(Assignment settings) {
    for (const SettingInfo& info : schema()) {
        if (!info.default_text.empty()) settings.emplace(info.name, info.default_text);
    }
    return settings;
}

}  // namespace saturate
