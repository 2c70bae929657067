// SPDX-License-Identifier: Apache-2.0
#include "engine/sim_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/cache_folder.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

// The name has a hash of the key; the file has the key itself, which is compared.
fs::path counts_file(const std::string& key) {
    return user_cache_folder() / "counts" / fmt::format("{:016x}.json", fnv1a(key));
}

bool matters(const SettingInfo& info) {
    using enum Setting;
    if (info.id == optimizer || info.id == grad_clip) return true;
    // Layout and precision change the time that the model computes from the count, not the count.
    if (info.id == threads || info.id == compile || info.id == compile_mode || info.id == tf32 ||
        info.id == channels_last || info.id == precision || info.id == gradient_accumulation_steps)
        return false;
    return info.level == Level::model || info.level == Level::numerics;
}

}  // namespace

std::string count_key(const Settings& settings) {
    struct stat program = {};
    ::stat("/proc/self/exe", &program);
    std::string key =
        fmt::format("{} {}.{}", program.st_size, program.st_mtim.tv_sec, program.st_mtim.tv_nsec);
    for (const SettingInfo& info : schema()) {
        const Value* value = settings.get(info.id);
        if (value && matters(info)) key += fmt::format("\n{}={}", info.name, value->text);
        if (value && matters(info)) {
            for (double number : value->numbers) key += fmt::format(" {}", number);
        }
    }
    return key;
}

std::optional<StepCost> find_count(const std::string& key) {
    std::string text = read_if_there(counts_file(key));
    if (text.empty()) return std::nullopt;
    try {
        Json json = Json::parse(text, "");
        if (json["schema"].integer() != 2 || json["key"].string() != key) return std::nullopt;
        auto number = [](const Json& value) { return value.number().value_or(0); };
        StepCost cost{.model_bytes = number(json["model_bytes"]),
                      .activation_bytes_fixed = number(json["activation_bytes_fixed"]),
                      .activation_bytes_per_sample = number(json["activation_bytes_per_sample"])};
        for (const Json& op : json["ops"].items()) {
            const std::vector<Json>& parts = op.items();
            if (parts.size() != 7) return std::nullopt;
            cost.ops.push_back({.name = parts[0].string().value_or(""),
                                .kind = static_cast<OpClass>(parts[1].integer().value_or(0)),
                                .flops_fixed = number(parts[2]),
                                .flops_per_sample = number(parts[3]),
                                .bytes_fixed = number(parts[4]),
                                .bytes_per_sample = number(parts[5]),
                                .in_turn = number(parts[6])});
        }
        return cost;
    } catch (const UserError&) {
        return std::nullopt;
    }
}

void keep_count(const std::string& key, const StepCost& cost) {
    Json ops = Json::array();
    for (const OpCost& op : cost.ops) {
        ops.add(
            Json::array({op.name, static_cast<int>(op.kind), op.flops_fixed, op.flops_per_sample,
                         op.bytes_fixed, op.bytes_per_sample, op.in_turn}));
    }
    Json json = Json::object({{"schema", 2},
                              {"key", key},
                              {"model_bytes", cost.model_bytes},
                              {"activation_bytes_fixed", cost.activation_bytes_fixed},
                              {"activation_bytes_per_sample", cost.activation_bytes_per_sample},
                              {"ops", ops}});
    std::error_code error;
    fs::create_directories(counts_file(key).parent_path(), error);
    try {
        write_file_whole(counts_file(key), json.line());
    } catch (const Failure&) {
    }
}

}  // namespace saturate
