// SPDX-License-Identifier: Apache-2.0
// `optimize --benchmark` on files that name each setting in each of its values, with a job that is
// a formula: the search ends, and what it found is written without a mistake of ours.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "remedies/advise.h"
#include "remedies/catalogue.h"
#include "tuning/model_job.h"
#include "tuning/search.h"

namespace saturate {
namespace {

std::vector<std::string> values_of(const SettingInfo& info) {
    switch (info.kind) {
        case Kind::flag:
            return {"true", "false"};
        case Kind::precision:
            return {"true", "false", "bf16", "fp16", "none", "off", "auto"};
        case Kind::compile:
            return {"true", "false", "default", "reduce-overhead", "max-autotune", "off"};
        case Kind::word:
            if (info.default_text.empty()) return {};
            return {std::string(info.default_text)};
        case Kind::whole:
        case Kind::size:
            return {fmt::format("{:.0f}", std::max(1.0, info.least)), "2", "64", "auto"};
        case Kind::number:
            return {fmt::format("{}", std::max(1e-6, info.least)), "0.5"};
    }
    return {};
}

Facts facts_for(const char* gpu) {
    CpuFacts cpu;
    cpu.cores_usable = 8;
    std::optional<GpuFacts> found;
    if (*gpu) found = match_gpu(gpu)->facts;
    MemoryFacts memory;
    memory.available_bytes = 1ull << 33;
    return machine_facts(cpu, memory, found, Level::training);
}

// As cmd_optimize does it: measured, then estimated, into one file. Empty: nothing went wrong.
std::string benchmark(const std::string& text, const char* gpu) {
    try {
        Document document = Document::parse(text, "job.yaml");
        Settings settings = Settings::read(document);
        SearchSettings search_settings{.start = values_in_force(settings)};
        search_settings.facts = facts_for(gpu);
        add_settings(search_settings.facts, settings);
        search_settings.batch.max = 512;
        ModelJob job{.cores = 8};
        SearchAnswer answer = search(search_settings, [&](const TrialRequest& request) {
            return job.run(request, search_settings.start);
        });
        std::vector<FoundValue> found;
        for (const KeptSetting& kept : kept_settings(answer)) {
            if (const SettingInfo* info = find_setting(kept.key))
                found.push_back({info->id, kept.value, kept.reason, ""});
        }
        Advice advice = advise_values(document, settings, found);
        Advice estimate = advise(document, settings, facts_for(gpu));
        for (const Change& change : estimate.changes) advice.changes.push_back(change);
        std::size_t wanted = found.size();
        std::string result = apply_changes(document, advice);
        Settings after = Settings::read(Document::parse(result, "job.yaml"));
        Assignment values = values_in_force(after);
        for (const FoundValue& value : found) {
            std::string name(info_of(value.setting).name);
            // What the file leaves open stays open, with a note.
            bool is_open = settings.get(value.setting) && settings.get(value.setting)->left_alone;
            // A switch says only that it is on.
            bool is_switch = name == "precision" && values[name] == "true";
            if (!is_open && !is_switch && values[name] != value.value)
                return fmt::format("{} of {} found: {} is {} and not {}", name, wanted, name,
                                   values[name], value.value);
        }
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

TEST(EveryValueTest, EndsInAFileThatHoldsWhatWasFound) {
    int tried = 0;
    for (const SettingInfo& info : schema()) {
        for (const std::string& value : values_of(info)) {
            std::string text = "job: classifier\n";
            if (info.name != "batch_size") text += "batch_size: 32\n";
            if (info.name != "num_workers") text += "num_workers: 0\n";
            if (info.name == "job") continue;
            text += fmt::format("{}: {}\n", info.name, value);
            // A value that train itself refuses is the user's to mend.
            bool is_ours = true;
            try {
                (void)Settings::read(Document::parse(text, "job.yaml"));
            } catch (const UserError&) {
                is_ours = false;
            }
            if (!is_ours) continue;
            for (const char* gpu : {"", "A100", "GTX 1080"}) {
                EXPECT_EQ(benchmark(text, gpu), "") << text << gpu;
                ++tried;
            }
        }
    }
    EXPECT_GT(tried, 300);
}

TEST(EveryValueTest, EveryConfigurationOfTheTreeEndsWell) {
    int tried = 0;
    for (const auto& entry : std::filesystem::directory_iterator(SATURATE_SOURCE_DIR "/configs")) {
        if (entry.path().extension() != ".yaml") continue;
        std::string text = read_file(entry.path(), 1 << 20, "a configuration");
        for (const char* gpu : {"", "RTX 4090"}) {
            EXPECT_EQ(benchmark(text, gpu), "") << entry.path();
            ++tried;
        }
    }
    EXPECT_GE(tried, 10);
}

}  // namespace
}  // namespace saturate
