// SPDX-License-Identifier: Apache-2.0
#include "train_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "config/set_values.h"
#include "dispatch.h"
#include "engine/seed.h"
#include "engine/sim_cache.h"
#include "exit_code.h"
#include "interrupt.h"
#include "probe/git.h"
#include "probe/machine.h"
#include "telemetry/record_json.h"
#include "telemetry/record_writer.h"
#include "train_output.h"
#include "train_sampler.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

std::string stem_of(const std::string& config) { return fs::path(config).stem(); }

// The newest run of this configuration that has a checkpoint.
std::optional<fs::path> newest_run(const std::string& config) {
    std::vector<fs::path> runs;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("runs", error)) {
        if (entry.path().filename().string().starts_with(stem_of(config) + "-") &&
            !list_checkpoints(entry.path() / "checkpoints").empty()) {
            runs.push_back(entry.path());
        }
    }
    if (runs.empty()) return std::nullopt;
    return *std::ranges::max_element(runs);  // their names end in the time
}

// Where a run writes, and what it goes on from.
struct Places {
    fs::path record;       // a new folder
    fs::path checkpoints;  // kept over resumes
    std::optional<FoundCheckpoint> found;
};

[[noreturn]] void throw_no_checkpoint(const fs::path& where) {
    throw UserError({.where = {where.string()},
                     .found = "no checkpoint to resume from",
                     .expected = "a run folder with checkpoints, or one of its checkpoints",
                     .fix = "leave --resume out to begin anew"});
}

Places choose_places(const TrainRequest& request) {
    fs::path run = request.output;
    Places out;
    if (!request.resume) {
        if (run.empty()) run = run_folder(request.config);
        return {run, run / "checkpoints", std::nullopt};
    }
    if (*request.resume == "auto" || request.resume->empty()) {
        if (run.empty()) {
            auto newest = newest_run(request.config);
            if (!newest) throw_no_checkpoint("runs");
            run = *newest;
        }
        out.found = find_checkpoint(run / "checkpoints");
        // A run that never came to a checkpoint begins anew: scripts resume without looking.
        if (!out.found && (!fs::exists(run) || fs::is_empty(run)))
            return {run, run / "checkpoints", std::nullopt};
        if (!out.found) throw_no_checkpoint(run);
    } else if (fs::path given = *request.resume; fs::exists(given / "state.json")) {
        out.found = FoundCheckpoint{given, read_checkpoint(given), {}};
        if (run.empty()) run = fs::weakly_canonical(given).parent_path().parent_path();
    } else {
        out.found = find_checkpoint(given / "checkpoints");
        if (!out.found) throw_no_checkpoint(given);
        if (run.empty()) run = given;
    }
    out.checkpoints = run / "checkpoints";
    out.record = run;
    for (int n = 1; fs::exists(out.record) && !fs::is_empty(out.record); ++n)
        out.record = run / fmt::format("resumed_{}", n);
    return out;
}

RunInfo run_info(const TrainRequest& request, const Document& document,
                 const TrainSettings& settings, DeviceBackend& backend, const Machine& machine) {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    RunInfo info{.kind = "train", .command = request.command, .host = host, .pid = ::getpid()};
    info.started_ns = now_ns();
    info.started_wall_ns = wall_ns();
    info.simulated = backend.simulated() != nullptr;
    info.device = info.simulated ? backend.name() : backend.device().str();
    info.seed = static_cast<std::int64_t>(settings.seed);
    info.settings_text = document.text();
    info.settings_source = document.file();
    info.version = saturate_version();
    info.git_revision = git_revision(".");
    info.machine = Json::object({{"device", backend.name()},
                                 {"cpu", machine.cpu.model},
                                 {"cores_usable", machine.cpu.cores_usable},
                                 {"memory_bytes", machine.memory.usable_bytes()}});
    return info;
}

void complete_summary(const TrainOutcome& outcome, const Settings& settings, RunSummary& summary) {
    const TrainResult& result = outcome.result;
    summary.exit_status = outcome_status(outcome);
    summary.verdict = result.ended == "failed" ? "failed" : "trained";
    summary.extra =
        Json::object({{"why", result.why},
                      {"job", settings.word(Setting::job)},
                      {"metric", outcome.metric.name},
                      {"unit", outcome.metric.unit},
                      {"metric_first", result.metric_first},
                      {"metric_last", result.metric},
                      {"metric_best", result.metric_best},
                      {"best_step", result.best_step},
                      {"problem", result.problem ? Json(result.problem->text()) : Json()}});
}

}  // namespace

std::string run_folder(const std::string& config) {
    std::time_t now = std::time(nullptr);
    std::tm local{};
    ::localtime_r(&now, &local);
    char stamp[32] = {};
    std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
    fs::path base = fs::path("runs") / fmt::format("{}-{}", stem_of(config), stamp);
    fs::path path = base;
    for (int n = 2; fs::exists(path); ++n) path = fmt::format("{}-{}", base.string(), n);
    return path;
}

TrainOutcome run_training(const TrainRequest& request, const JobRegistry& jobs) {
    Document document = with_values(Document::read(request.config), request.values);
    Settings settings = Settings::read(document);
    TrainSettings chosen = train_settings(settings, request.limits);
    chosen.one_batch = request.one_batch;
    Machine machine{.cpu = probe_cpu(), .memory = probe_memory()};
    if (chosen.device.threads == 0) chosen.device.threads = machine.cpu.cores_usable;
    bool cpu_has_bf16 =
        machine.cpu.has("avx512_bf16") || machine.cpu.has("amx_bf16") || machine.cpu.has("bf16");

    Interrupts interrupts;
    TrainOutput output(interrupts, request.quiet);
    OpenedDevice opened = open_device(request.device, chosen.device, cpu_has_bf16);
    DeviceBackend& backend = *opened.backend;
    // A device that is not there learns nothing to evaluate or keep.
    bool bare = request.bare || backend.simulated();
    if (bare) {
        chosen.eval_epochs = chosen.eval_steps = 0;
        chosen.checkpoint_epochs = chosen.checkpoint_steps = 0;
    }
    if (backend.simulated()) chosen.step.count_key = count_key(settings);
    output.say(fmt::format("device: {}{}", backend.name(),
                           opened.note.empty() ? "" : fmt::format(" ({})", opened.note)));
    set_seed(chosen.seed);
    std::unique_ptr<Job> job = jobs.make(settings.word(Setting::job), settings);
    Places places = choose_places(request);
    Trainer trainer(*job, chosen,
                    {.checkpoints = bare ? fs::path() : places.checkpoints,
                     .tensorboard = places.record / "tensorboard"},
                    backend, output);
    if (places.found) trainer.restore(*places.found);

    RecordWriter recorder(places.record, run_info(request, document, chosen, backend, machine));
    TrainOutcome outcome{.folder = places.record.string(), .metric = job->metric()};
    {
        TrainSampler sampler(recorder, backend.counters());
        outcome.result = trainer.run(recorder);
    }
    complete_summary(outcome, settings, outcome.result.summary);
    recorder.finish(outcome.result.summary);
    return outcome;
}

std::string outcome_text(const TrainOutcome& outcome) {
    const TrainResult& result = outcome.result;
    const RunSummary& summary = result.summary;
    auto shown = [](const std::optional<double>& value, const char* format = "{:.4g}") {
        return value ? fmt::format(fmt::runtime(format), *value) : std::string("-");
    };
    std::string out = fmt::format(
        "{}: {} steps in {}, loss {} -> {}",
        result.ended == "done" ? fmt::format("trained ({})", result.why) : result.ended,
        summary.steps.value_or(0), duration_text(static_cast<double>(summary.duration_ns) / 1e9),
        shown(summary.loss_first), shown(summary.loss_last));
    if (result.metric) {
        out += fmt::format(", {} {} -> {}", outcome.metric.name, shown(result.metric_first),
                           shown(result.metric));
        if (!outcome.metric.unit.empty()) out += " " + outcome.metric.unit;
        if (result.best_step)
            out +=
                fmt::format(" (best {} at step {})", shown(result.metric_best), *result.best_step);
    }
    out += "\n";
    if (const auto& rate = summary.samples_per_second) {
        double wait = 0;
        for (const auto& [name, percent] : summary.stall_percent) {
            if (name == "input_wait") wait = percent;
        }
        out += fmt::format(
            "{:.4g} samples/s (n={}, {:.4g}..{:.4g}), step {} ms (p99 {}), busy {} %, input wait "
            "{:.1f} %, memory {}\n",
            rate->median, rate->n, rate->low, rate->high, shown(summary.step_p50_ms, "{:.3g}"),
            shown(summary.step_p99_ms, "{:.3g}"), shown(summary.busy_percent, "{:.0f}"), wait,
            summary.memory_peak_bytes ? bytes_text(*summary.memory_peak_bytes) : "-");
    }
    out += fmt::format("run record: {}\n", outcome.folder);
    return out;
}

Json outcome_json(const TrainOutcome& outcome) {
    return Json::object({{"schema", 1},
                         {"run", outcome.folder},
                         {"ended", outcome.result.ended},
                         {"why", outcome.result.why},
                         {"metric", Json::object({{"name", outcome.metric.name},
                                                  {"unit", outcome.metric.unit},
                                                  {"first", outcome.result.metric_first},
                                                  {"last", outcome.result.metric},
                                                  {"best", outcome.result.metric_best},
                                                  {"best_step", outcome.result.best_step}})},
                         {"summary", summary_json(outcome.result.summary)}});
}

int outcome_status(const TrainOutcome& outcome) {
    if (outcome.result.ended == "failed") return kJobFailed;
    return outcome.result.ended == "interrupted" ? kInterrupted : kDone;
}

}  // namespace saturate
