// SPDX-License-Identifier: Apache-2.0
#include "optimize_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "probe/machine.h"
#include "process/gpus.h"

namespace saturate {

namespace {

// Assumed for another machine if only its GPU is given.
constexpr int kAssumedCores = 16;
constexpr double kGigabyte = 1024.0 * 1024 * 1024;

struct Target {
    Facts facts;
    std::string text;
};

[[noreturn]] void throw_unknown_gpu(const std::string& name) {
    Problem problem{.found = fmt::format("no GPU {} in the table", in_quotes(name)),
                    .expected =
                        "cpu, or a name of docs/gpus.md, such as RTX 4090, A100 80GB SXM4, "
                        "H100 SXM5 or MI300X"};
    std::vector<std::string> near = near_gpu_names(name);
    if (!near.empty()) problem.fix = fmt::format("--gpu \"{}\"", near[0]);
    throw UserError(problem);
}

std::optional<std::uint64_t> gigabytes(const Arguments& arguments, std::string_view option) {
    auto value = arguments.number(option, 0.1, 100000);
    if (!value) return std::nullopt;
    return static_cast<std::uint64_t>(*value * kGigabyte);
}

// Returns the GPU that is named, or the first one of this machine.
std::optional<GpuFacts> choose_gpu(const Arguments& arguments, const GpuSurvey& survey,
                                   std::string& how) {
    auto memory = gigabytes(arguments, "--gpu-memory");
    auto name = arguments.text("--gpu");
    // If a simulated device is used for measuring, advise for that device.
    std::string device = *arguments.text("--device");
    if (!name && device.starts_with("sim:")) name = device.substr(4);
    if (name) {
        if (lower(*name) == "cpu") return std::nullopt;
        auto match = match_gpu(*name, std::nullopt, memory);
        if (!match) throw_unknown_gpu(*name);
        if (match->how != "by name") how = match->how;
        return match->facts;
    }
    if (!survey.first()) return std::nullopt;
    GpuIdentity gpu = *survey.first();
    if (memory) gpu.memory_total_bytes = memory;
    auto match = match_gpu(gpu);
    // The table holds only NVIDIA's GPUs; for other vendors advise for the CPU.
    if (!match && !survey.absent_because.empty()) return std::nullopt;
    if (!match) {
        throw MachineError(
            {.found = fmt::format("the GPU {} is not in the table, and neither is a similar one",
                                  in_quotes(gpu.name)),
             .expected = "a GPU of capability 6.1 or newer",
             .fix = "name a similar one with --gpu"});
    }
    if (match->how != "by name") how = match->how;
    return match->facts;
}

Target choose_target(const Arguments& arguments) {
    bool elsewhere = arguments.has("--gpu") && lower(*arguments.text("--gpu")) != "cpu";
    Target out;
    std::string how;
    GpuSurvey survey = arguments.has("--gpu") ? GpuSurvey{} : survey_gpus();
    CpuFacts cpu = probe_cpu();
    out.facts = machine_facts(cpu, probe_memory(), choose_gpu(arguments, survey, how),
                              level_named(*arguments.text("--level")));
    Facts& facts = out.facts;
    int found = survey.driver ? static_cast<int>(survey.driver->gpus.size()) : 1;
    facts.processes = static_cast<int>(arguments.whole("--gpus", 1, 100000).value_or(1));
    facts.cores = static_cast<int>(
        arguments.whole("--cores", 1, 100000)
            .value_or(elsewhere ? kAssumedCores * facts.processes : cpu.cores_usable));
    if (auto memory = gigabytes(arguments, "--memory")) facts.memory_available_bytes = *memory;
    if (auto workers = arguments.whole("--workers", 0, 1024))
        facts.workers_asked = static_cast<int>(*workers);
    facts.dataset_size = arguments.whole("--dataset-size", 1, 1L << 60).value_or(0);

    if (facts.gpu) {
        out.text = fmt::format("{}{}, {}",
                               facts.processes > 1 ? fmt::format("{} x ", facts.processes) : "",
                               facts.gpu->name, bytes_text(facts.gpu->memory_bytes));
        if (!how.empty()) out.text += fmt::format(" ({})", how);
        if (!elsewhere && found > facts.processes)
            out.text += fmt::format(" (1 of {}; --gpus {} if the job uses all)", found, found);
    } else {
        out.text = arguments.has("--gpu") ? "the CPU"
                                          : fmt::format(
                                                "the CPU, because there is no GPU here ({}); --gpu "
                                                "\"RTX 4090\" plans for another machine",
                                                survey.absent_because);
    }
    if (arguments.text("--device")->starts_with("sim:")) out.text += " (simulated)";
    out.text += fmt::format("; {} cores", facts.cores);
    if (elsewhere && !arguments.has("--cores")) out.text += " (assumed; --cores N)";
    return out;
}

// Returns the dialect that --dialect names, or null to recognise it.
const Dialect* named_dialect(const Arguments& arguments) {
    auto name = arguments.text("--dialect");
    if (!name) return nullptr;
    if (const Dialect* dialect = find_dialect(*name)) return dialect;
    std::vector<std::string> names;
    for (const Dialect& dialect : dialects()) names.push_back(dialect.name);
    Problem problem{.found = fmt::format("--dialect is {}", in_quotes(*name)),
                    .expected = join(names, ", ")};
    if (auto meant = closest(*name, names)) problem.fix = fmt::format("--dialect {}", *meant);
    throw UserError(problem);
}

[[noreturn]] void throw_no_training(const Document& document) {
    throw UserError(
        {.where = {document.file()},
         .found = "not a training configuration: it has none of the settings of docs/settings.md",
         .expected = "keys such as batch_size, num_workers or learning_rate",
         .fix = "name the file that your training reads"});
}

}  // namespace

OptimizePlan plan_optimize(const Arguments& arguments, Document document) {
    Target target = choose_target(arguments);
    const Dialect* dialect = named_dialect(arguments);
    Settings settings = Settings::read(document, dialect);
    if (!settings.is_training()) throw_no_training(document);
    ConfigUse use;
    if (!settings.dialect().is_ours()) use = read_config_use(document.file(), arguments.command);
    // A program that is only read must be Python; one that is measured may be anything.
    if (!use.problem.empty() && !arguments.command.empty() && !arguments.has("--benchmark")) {
        throw UserError({.found = use.problem,
                         .expected = "a command that starts a Python program",
                         .fix = "saturate optimize --config c.yaml -- python train.py"});
    }
    if (!dialect && (dialect = dialect_by_use(document, use)))
        settings = Settings::read(document, dialect);
    KeyReader reader = [&use](const KeyPath& path) {
        const FactKey* key = use.reads(path);
        return key ? key->place().text() : std::string();
    };
    Advice advice = advise(document, settings, target.facts, reader);
    keep_what_is_read(document, use, advice);
    return {.document = std::move(document),
            .settings = std::move(settings),
            .facts = std::move(target.facts),
            .target = std::move(target.text),
            .use = std::move(use),
            .advice = std::move(advice)};
}

}  // namespace saturate
