// SPDX-License-Identifier: Apache-2.0
#include "train_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/figures.h"
#include "base/file.h"
#include "base/text.h"
#include "base/version.h"
#include "config/set_values.h"
#include "dispatch.h"
#include "engine/seed.h"
#include "engine/sim_cache.h"
#include "exit_code.h"
#include "probe/machine.h"
#include "process/signals.h"
#include "telemetry/record_json.h"
#include "telemetry/record_writer.h"
#include "telemetry/run_start.h"
#include "train_output.h"
#include "train_places.h"
#include "train_ranks.h"
#include "train_sampler.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

RunInfo run_info(const TrainRequest& request, const Document& document,
                 const TrainSettings& settings, DeviceBackend& backend, const TrainRanks& ranks,
                 std::int64_t samples_per_epoch) {
    std::vector<std::string> command = request.command;
    for (const std::string& value : settings.set_values) {
        command.emplace_back("--set");
        command.push_back(value);
    }
    RunInfo info = started_run("train", std::move(command), saturate_version());
    info.simulated = backend.simulated() != nullptr;
    info.device = info.simulated ? backend.name() : backend.device().str();
    info.rank = ranks.rank();
    info.world_size = ranks.count();
    info.seed = static_cast<std::int64_t>(settings.seed);
    info.settings_text = document.text();
    info.settings_source = document.file();
    std::vector<GpuIdentity> gpus;
    if (!backend.device().is_cpu())
        gpus.push_back({.index = backend.device().index(), .name = backend.name()});
    info.machine = recorded_machine(gpus);
    info.extra = Json::object({{"samples_per_epoch", samples_per_epoch}});
    return info;
}

void complete_summary(const TrainOutcome& outcome, const Settings& settings, RunSummary& summary) {
    const TrainResult& result = outcome.result;
    // The device's own count takes precedence; a real GPU has none.
    const char* busy_from = summary.busy_percent ? "device" : "driver";
    if (!summary.busy_percent) {
        summary.busy_percent = outcome.by_counters.percent;
        summary.busy_deviation = outcome.by_counters.deviation;
    }
    summary.exit_status = outcome_status(outcome);
    summary.verdict = result.ended == "failed" ? "failed" : "trained";
    summary.extra = Json::object(
        {{"why", result.why},
         {"job", settings.word(Setting::job)},
         {"metric", outcome.metric.name},
         {"unit", outcome.metric.unit},
         {"metric_first", result.metric_first},
         {"metric_last", result.metric},
         {"metric_best", result.metric_best},
         {"best_step", result.best_step},
         {"ranks", outcome.ranks},
         {"communication_percent", result.communication_percent},
         {"busy_from", summary.busy_percent ? Json(busy_from) : Json()},
         {"device_span_percent", result.device_span_percent},
         {"prefetch",
          Json::object({{"batches_max", result.room.batches}, {"bytes_max", result.room.bytes}})},
         {"problem", result.problem ? Json(result.problem->text()) : Json()}});
}

// Rank 0 chooses folders and checkpoints; the other ranks, perhaps on other disks, use the same.
RunPlaces share_places(TrainRanks& ranks, const TrainRequest& request) {
    PlaceWish wish{.config = request.config,
                   .resume = request.resume,
                   .output = request.output,
                   .bare = request.bare};
    if (!ranks.group()) return choose_places(wish);
    RunPlaces out;
    if (ranks.is_first()) out = choose_places(wish);
    Json mine = Json::object({{"record", out.record.string()},
                              {"checkpoints", out.checkpoints.string()},
                              {"values", Json::array_of(out.values)}});
    Json given = Json::parse(ranks.group()->text_of_first(mine.line()), "rank 0");
    out.record = given["record"].string().value_or("");
    out.checkpoints = given["checkpoints"].string().value_or("");
    if (!ranks.is_first()) {
        for (const Json& value : given["values"].items())
            out.values.push_back(value.string().value_or(""));
    }
    return out;
}

// If the record cannot be finished, the reason for which the run failed must stay visible.
void finish_record(RecordWriter& recorder, TrainResult& result) {
    try {
        recorder.finish(result.summary);
    } catch (const MachineError& error) {
        if (!result.problem) throw;
        const Problem& other = error.problems().at(0);
        result.problem->found += fmt::format("; {}{}{}", other.where.text(),
                                             other.where.text().empty() ? "" : ": ", other.found);
    }
}

// Reads the configuration file, or the copy that a search made when it started.
Document configuration(const TrainRequest& request) {
    if (!request.snapshot) return Document::read(request.config);
    return Document::parse(read_file(*request.snapshot, Document::kLargest, "a configuration"),
                           request.config);
}

TrainOutcome run_placed(const TrainRequest& request, const JobRegistry& jobs, TrainRanks& ranks) {
    Signals interrupts(Signals::Role::stop);
    TrainOutput output(interrupts, request.quiet);
    RunPlaces places = share_places(ranks, request);
    TrainLimits limits = request.limits;
    limits.ranks = ranks.count();
    std::vector<std::string> values = joined_values(places.values, request.values);
    Document document = with_values(configuration(request), values);
    Settings settings = Settings::read(document);
    TrainSettings chosen = train_settings(settings, limits);
    chosen.set_values = values;
    chosen.one_batch = request.one_batch;
    Machine machine{.cpu = probe_cpu(), .memory = probe_memory()};
    ranks.divide_host(machine, chosen);
    bool cpu_has_bf16 =
        machine.cpu.has("avx512_bf16") || machine.cpu.has("amx_bf16") || machine.cpu.has("bf16");

    OpenedDevice opened =
        open_device(request.device, chosen.device, cpu_has_bf16, ranks.local_rank());
    DeviceBackend& backend = *opened.backend;
    // A simulated device learns nothing that could be evaluated or saved.
    bool bare = request.bare || backend.simulated();
    if (backend.simulated()) ranks.refuse_simulated();
    if (bare) {
        chosen.eval_epochs = chosen.eval_steps = 0;
        chosen.checkpoint_epochs = chosen.checkpoint_steps = 0;
    }
    if (backend.simulated()) chosen.step.count_key = count_key(settings);
    output.say(fmt::format("device: {}{}", backend.name(),
                           opened.note.empty() ? "" : fmt::format(" ({})", opened.note)));
    for (const std::string& line : places.notes) output.say(line);
    if (!places.values.empty())
        output.say(fmt::format("kept from the start of the run: {}", join(places.values, ", ")));
    ranks.use_device(backend);
    set_seed(chosen.seed);
    // Rank 0 first: a job may write its data to disk.
    std::unique_ptr<Job> job =
        ranks.first_then_others([&] { return jobs.make(settings.word(Setting::job), settings); });
    fs::path own = ranks.record_of(places.record);
    Trainer trainer(*job, chosen,
                    {.checkpoints = bare ? fs::path() : places.checkpoints,
                     .tensorboard = ranks.is_first() ? own / "tensorboard" : fs::path()},
                    backend, output, ranks.group());
    if (places.found) trainer.restore(*places.found);

    // Rank 0 first: a record needs an empty folder, and the other ranks' records are inside it.
    std::unique_ptr<RecordWriter> recorder = ranks.first_then_others([&] {
        return std::make_unique<RecordWriter>(
            own, run_info(request, document, chosen, backend, ranks, job->training_data()->size()));
    });
    if (!bare && ranks.is_first() && !places.lock.is_held())
        places.lock = CheckpointLock(places.checkpoints);
    ranks.move_log(own);
    // Print this at once, because the next line comes only after `log_interval` steps.
    output.say(fmt::format("training on {} samples in batches of {}; a line every {} steps",
                           job->training_data()->size(), chosen.batch_size, chosen.log_interval));
    TrainOutcome outcome{.folder = own.string(), .metric = job->metric(), .ranks = ranks.count()};
    {
        TrainSampler sampler(*recorder, backend);
        outcome.result = trainer.run(*recorder);
        outcome.by_counters = sampler.stop();
    }
    complete_summary(outcome, settings, outcome.result.summary);
    finish_record(*recorder, outcome.result);
    return outcome;
}

}  // namespace

TrainOutcome run_training(const TrainRequest& request, const JobRegistry& jobs) {
    TrainRanks ranks;
    if (ranks.is_launched()) {
        // Find mistakes in the file before the ranks wait for each other.
        Document document = with_values(configuration(request), request.values);
        ranks.join(Settings::read(document).number(Setting::rank_timeout).value_or(300));
    }
    return ranks.tell_failures([&] { return run_placed(request, jobs, ranks); });
}

std::string outcome_text(const TrainOutcome& outcome) {
    const TrainResult& result = outcome.result;
    const RunSummary& summary = result.summary;
    auto shown = [](const std::optional<double>& value, const char* format = "{:.4g}") {
        return value ? fmt::format(fmt::runtime(format), *value) : std::string("-");
    };
    auto milliseconds = [&](const std::optional<double>& value) {
        return shown(value, value.value_or(0) < 999.5 ? "{:.3g}" : "{:.0f}");
    };
    std::string out = fmt::format(
        "{}: {} steps in {}",
        result.ended == "done" ? fmt::format("trained ({})", result.why) : result.ended,
        summary.steps.value_or(0), duration_text(static_cast<double>(summary.duration_ns) / 1e9));
    if (summary.loss_last)
        out += fmt::format(", loss {} -> {}", shown(summary.loss_first), shown(summary.loss_last));
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
        bool only_span = !summary.busy_percent && result.device_span_percent;
        out += fmt::format(
            "{} samples/s (n={}, {}..{}), step {} ms (p99 {}), busy {}{} %, input wait "
            "{:.1f} %, memory {}\n",
            rate_text(rate->rate), rate->n, rate_text(rate->low), rate_text(rate->high),
            milliseconds(summary.step_p50_ms), milliseconds(summary.step_p99_ms),
            only_span ? "at most " : "",
            shown(only_span ? result.device_span_percent : summary.busy_percent, "{:.0f}"), wait,
            summary.memory_peak_bytes ? bytes_text(*summary.memory_peak_bytes) : "-");
    }
    if (outcome.ranks > 1 && summary.samples_per_second) {
        double exposed = 0;
        for (const auto& [name, percent] : summary.stall_percent) {
            if (name == "communication") exposed = percent;
        }
        out += fmt::format(
            "{} ranks: {} samples/s together, communication {} % of the time, "
            "{:.1f} % not hidden\n",
            outcome.ranks, rate_text(summary.samples_per_second->rate * outcome.ranks),
            shown(result.communication_percent, "{:.1f}"), exposed);
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
