// SPDX-License-Identifier: Apache-2.0
#include "tuning/trial_cache.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"

namespace saturate {

// The file name is a hash of the key. The file holds the key too, and find() compares it.
std::filesystem::path TrialCache::file_of(const std::string& key) const {
    return folder_ / fmt::format("{:016x}.json", fnv1a(key));
}

std::optional<TrialResult> TrialCache::find(const std::string& key) const {
    if (folder_.empty()) return std::nullopt;
    std::string text = read_if_there(file_of(key));
    if (text.empty()) return std::nullopt;
    try {
        Json json = Json::parse(text, "");
        if (json["schema"].integer() != 1 || json["key"].string() != key) return std::nullopt;
        TrialResult result{.from_cache = true};
        if (json["out_of_memory"].boolean().value_or(false)) {
            result.outcome = TrialOutcome::out_of_memory;
            result.message = json["message"].string().value_or("");
        } else {
            auto number = [&](const char* name) { return json[name].number().value_or(0); };
            result.samples_per_second =
                Rate{.per_second = number("median"),
                     .low = number("low"),
                     .high = number("high"),
                     .n = static_cast<int>(number("n")),
                     .steps = static_cast<std::int64_t>(number("steps")),
                     .dropped = static_cast<std::int64_t>(number("dropped")),
                     .step_seconds = number("step_seconds"),
                     .input_wait_share = number("input_wait_share"),
                     .copy_share = number("copy_share"),
                     .log_share = number("log_share"),
                     .device_busy_share = json["device_busy_share"].number(),
                     .trend = number("trend")};
            if (result.samples_per_second->per_second <= 0) return std::nullopt;
        }
        auto bytes = [&](const char* name) -> std::optional<std::uint64_t> {
            auto value = json[name].integer();
            return value ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
        };
        result.memory_peak_bytes = bytes("memory_peak_bytes");
        result.memory_limit_bytes = bytes("memory_limit_bytes");
        result.samples_per_epoch = json["samples_per_epoch"].integer();
        if (auto busy = json["busy_percent"].number())
            result.record.summary = RunSummary{.busy_percent = busy};
        return result;
    } catch (const UserError&) {
        return std::nullopt;
    }
}

void TrialCache::keep(const std::string& key, const TrialResult& result) const {
    bool full = result.outcome == TrialOutcome::out_of_memory;
    if (folder_.empty() || (!result.ok() && !full)) return;
    auto signed_bytes = [](const std::optional<std::uint64_t>& value) -> Json {
        return value ? Json(static_cast<std::int64_t>(*value)) : Json();
    };
    Json json = Json::object({{"schema", 1},
                              {"key", key},
                              {"out_of_memory", full},
                              {"message", result.message},
                              {"memory_peak_bytes", signed_bytes(result.memory_peak_bytes)},
                              {"memory_limit_bytes", signed_bytes(result.memory_limit_bytes)}});
    json.set("samples_per_epoch", result.samples_per_epoch);
    if (result.record.summary) json.set("busy_percent", result.record.summary->busy_percent);
    if (const auto& rate = result.samples_per_second) {
        json.set("median", rate->per_second);
        json.set("low", rate->low);
        json.set("high", rate->high);
        json.set("n", rate->n);
        json.set("steps", rate->steps);
        json.set("dropped", rate->dropped);
        json.set("step_seconds", rate->step_seconds);
        json.set("input_wait_share", rate->input_wait_share);
        json.set("copy_share", rate->copy_share);
        json.set("log_share", rate->log_share);
        json.set("device_busy_share", rate->device_busy_share);
        json.set("trend", rate->trend);
    }
    // If the cache cannot be written, the next search takes longer, nothing else.
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    try {
        write_file_whole(file_of(key), json.line());
    } catch (const Failure&) {
    }
}

}  // namespace saturate
