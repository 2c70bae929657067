// SPDX-License-Identifier: Apache-2.0
// bench gpu: a first benchmark of a GPU. Proves the reference jobs before and after, and compares
// the prediction of diagnose with the measured gain and the simulated device with the real one.
#include "bench_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "arguments.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/output_file.h"
#include "base/text.h"
#include "base/version.h"
#include "demo_run.h"
#include "exit_code.h"
#include "process/child.h"
#include "process/gpus.h"
#include "process/run_folder.h"
#include "process/trial_command.h"
#include "process/trial_process.h"
#include "report/gpu_bench.h"
#include "show.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

constexpr double kSearchSecondsLeast = 20;
constexpr const char* kInterruptedText = "interrupted";
constexpr double kSimulatedSeconds = 2;  // seconds of measured steps

std::vector<const DemoJob*> jobs_of(const Arguments& arguments) {
    std::vector<const DemoJob*> out;
    for (const std::string& name : arguments.all("--job")) {
        const DemoJob* job = find_demo_job(name);
        if (!job) {
            std::vector<std::string> names;
            for (const DemoJob& one : demo_jobs()) names.emplace_back(one.name);
            throw UserError({.found = fmt::format("--job {}", name),
                             .expected = "one of " + join(names, ", ")});
        }
        out.push_back(job);
    }
    if (!out.empty()) return out;
    for (const DemoJob& job : demo_jobs()) out.push_back(&job);
    return out;
}

bool is_simulated(const std::string& device) { return device.starts_with("sim:"); }

std::string device_of(const Arguments& arguments) {
    std::string device = arguments.text("--device").value_or("cuda");
    if (device != "cpu" && device != "cuda" && !is_simulated(device)) {
        throw UserError({.found = fmt::format("--device is {}", in_quotes(device)),
                         .expected = "cuda, cpu or sim:GPU",
                         .fix = "--device cuda"});
    }
    if (is_simulated(device) && arguments.has("--calibrate")) {
        throw UserError({.found = "--calibrate with a simulated card",
                         .expected = "a card to measure",
                         .fix = "--device cuda"});
    }
    return device;
}

// Returns the name in the GPU table for a simulated device, else "". For a real GPU the selftest
// finds the name.
std::string simulated_card(const std::string& device) {
    if (device == "cpu") return "";
    if (is_simulated(device)) return simulated_gpu(device).name;
    GpuSurvey survey = survey_gpus();
    if (!survey.first()) {
        throw MachineError({.found = fmt::format("no GPU to measure: {}", survey.absent_because),
                            .expected = "a GPU that CUDA can use",
                            .fix = "--device \"sim:RTX 4090\" simulates one; --device cpu measures "
                                   "the CPU"});
    }
    return "";
}

// Runs selftest into FOLDER/selftest.json, with its output on stderr. Returns null if it could not
// run. A simulated device computes nothing, so the selftest then tests the engine on the CPU.
Json run_selftest(const std::string& device, const fs::path& folder, bool calibrate) {
    fs::path file = folder / "selftest.json";
    std::vector<std::string> command{
        fs::read_symlink("/proc/self/exe").string(), "selftest", "--device",
        device == "cuda" ? "cuda" : "cpu",           "-o",       file.string()};
    if (calibrate) command.emplace_back("--calibrate");
    Child child(command, {.output_to_stderr = true, .no_input = true, .ends_with_us = true});
    child.wait();
    std::string text = read_if_there(file);
    return text.empty() ? Json() : Json::parse(text, file.string());
}

std::optional<SimulatedRate> simulate(const DemoRun& run, const std::string& card,
                                      const Assignment& settings, const std::optional<Rate>& real,
                                      const std::string& name) {
    if (card.empty() || !real || is_simulated(run.request.device)) return std::nullopt;
    TuneRequest request = run.request;
    request.device = "sim:" + card;
    fs::path folder = request.folder / name;
    TrialResult result = run_trial_process(
        {.command =
             trial_command(request, {.settings = settings, .seconds = kSimulatedSeconds}, folder),
         .run_folder = folder,
         .log = folder.string() + ".log",
         .seconds = kSimulatedSeconds,
         .seconds_max = 60});
    if (!result.ok()) return std::nullopt;
    return SimulatedRate{.real = real->per_second,
                         .simulated = result.samples_per_second->per_second};
}

GpuBenchJob measure(const DemoJob& job, const std::string& device, const std::string& card,
                    const fs::path& folder, double seconds, bool quiet) {
    GpuBenchJob out{.name = std::string(job.name)};
    DemoRun run;
    try {
        make_demo_folder(folder);
        run = run_demo(job, device, folder, seconds, kSearchSecondsLeast, quiet);
    } catch (const Failure& failure) {  // the other jobs may succeed
        out.without_proof = failure.problems().at(0).found;
        return out;
    }
    const SearchAnswer& search = run.answer.search;
    if (!search.baseline) {
        out.without_proof = kInterruptedText;
        return out;
    }
    out.foretold = run.diagnosis.total;
    out.named = named_fixes(run.diagnosis, search);
    out.proof = run.answer.proof;
    out.settings = search.best;
    if (!out.proof) out.without_proof = "nothing faster was found";
    out.before = simulate(run, card, {}, search.baseline, "simulated-before");
    out.after = simulate(run, card, search.best, search.best_rate, "simulated-after");
    return out;
}

}  // namespace

int bench_gpu(const Arguments& arguments) {
    std::int64_t begin = now_ns();
    auto spent = [&] { return static_cast<double>(now_ns() - begin) / 1e9; };
    std::string device = device_of(arguments);
    std::vector<const DemoJob*> jobs = jobs_of(arguments);
    double seconds = arguments.number("--seconds", 20, 86400).value_or(600);
    bool quiet = arguments.has("--quiet"), calibrate = arguments.has("--calibrate");
    GpuBench bench{.version = std::string(saturate_version()),
                   .device = device,
                   .card = simulated_card(device),
                   .is_simulated = is_simulated(device)};
    auto named = arguments.text("--output");
    fs::path folder = named ? output_folder(*named) : new_run_folder("bench-gpu");
    make_demo_folder(folder);
    bench.selftest = run_selftest(device, folder, calibrate);
    if (bench.selftest.is_null()) {
        throw MachineError({.found = fmt::format("selftest --device {} did not run, for the reason "
                                                 "above",
                                                 device),
                            .expected = "a device that the engine can use"});
    }
    // With several GPUs, the selftest uses the first one in CUDA's order.
    if (!bench.is_simulated) bench.card = bench.selftest["card"].string().value_or("");
    auto name = bench.selftest["device"].string();
    if (name && !bench.is_simulated) bench.device = *name;
    bench.calibrated = calibrate && !bench.card.empty();
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        if (!quiet)
            show(stderr, "{}/{}: {}, about {:.0f} min left\n", i + 1, jobs.size(), jobs[i]->name,
                 std::max(1.0, (seconds - spent()) / 60));
        double share = (seconds - spent()) / static_cast<double>(jobs.size() - i);
        bench.jobs.push_back(measure(*jobs[i], device, bench.card,
                                     folder / std::string(jobs[i]->name), share, quiet));
        if (bench.jobs.back().without_proof == kInterruptedText) break;
    }
    bench.seconds = spent();
    write_file_whole(folder / "bench-gpu.json", to_json(bench).pretty() + "\n");
    write_file_whole(folder / "bench-gpu.html", gpu_bench_page(bench));
    if (arguments.has("--json"))
        fmt::print("{}\n", to_json(bench).pretty());
    else
        show(stdout, "{}", gpu_bench_text(bench));
    std::string file = (folder / "bench-gpu.json").string();
    if (bench.is_simulated)
        show(stderr, "written: {} and bench-gpu.html next to it\n", file);
    else
        show(stderr, "written: {} and bench-gpu.html next to it (please send us the first one)\n",
             file);
    if (bench.jobs.size() < jobs.size() || bench.jobs.back().without_proof == kInterruptedText)
        return kInterrupted;
    bool any_ran = std::ranges::any_of(
        bench.jobs, [](const GpuBenchJob& job) { return job.foretold.has_value(); });
    return any_ran ? kDone : kAnswerIsNo;
}

}  // namespace saturate
