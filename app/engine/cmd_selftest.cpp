// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "arguments.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/output_file.h"
#include "base/version.h"
#include "commands.h"
#include "cuda/nvml.h"
#include "engine/device_rates.h"
#include "engine/selftest.h"
#include "exit_code.h"
#include "probe/gpu_table.h"
#include "probe/machine.h"
#include "progress.h"
#include "show.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

// What a report needs to know of the machine, and nothing that names it or its owner.
Json machine_json(const std::string& device) {
    Machine machine{.cpu = probe_cpu(), .memory = probe_memory()};
    Json out = Json::object({{"cpu", machine.cpu.model},
                             {"cores_usable", machine.cpu.cores_usable},
                             {"memory_bytes", machine.memory.usable_bytes()}});
    if (device == "cpu") return out;
    Json gpus = Json::array();
    GpuSurvey survey = survey_nvml();
    if (survey.driver) {
        out.set("driver", survey.driver->driver_version);
        for (const GpuIdentity& gpu : survey.driver->gpus)
            gpus.add(Json::object(
                {{"name", gpu.name},
                 {"capability", gpu.capability ? Json(fmt::format("{}.{}", gpu.capability->major,
                                                                  gpu.capability->minor))
                                               : Json()},
                 {"memory_total_bytes", gpu.memory_total_bytes}}));
    }
    out.set("gpus", gpus);
    return out;
}

Json versions_json(const std::string& device) {
    Json out = Json::object({{"saturate", saturate_version()}, {"torch", torch_version()}});
    if (device == "cuda") out.set("cuda", need_cuda_plugin().versions());
    return out;
}

// Measured, and kept for the simulated device of this name.
Json calibrate(const std::string& device, const std::string& name) {
    auto open = [&](const DeviceOptions& options) {
        return std::move(open_device(device, options, false).backend);
    };
    MeasuredRates rates = measure_rates(open, device == "cpu" ? kRateEffortOfCpu : RateEffort{});
    if (device != "cpu") {
        // "cuda:0 (NVIDIA H100 80GB HBM3)"
        std::size_t from = name.find('(') + 1;
        std::string card = name.substr(from, name.rfind(')') - from);
        auto match = match_gpu(card, std::nullopt, std::nullopt);
        std::string file = keep_rates(match ? match->facts.name : card, rates);
        show(stderr, "rates saved: {}{}\n", file,
             match ? "" : " (the card is not in the table, so it cannot be simulated)");
    }
    return rates_json(rates);
}

// The first name of saturate-selftest.json, saturate-selftest-2.json, ... that is free.
fs::path free_name() {
    for (int i = 1;; ++i) {
        fs::path name =
            i == 1 ? "saturate-selftest.json" : fmt::format("saturate-selftest-{}.json", i);
        if (!fs::exists(name)) return name;
    }
}

}  // namespace

int cmd_selftest(const Arguments& arguments) {
    std::string device = *arguments.text("--device");
    SelftestList list = device == "cuda" ? selftest_cuda() : selftest_cpu();
    // A GPU's results are for sending; those of a CPU only when they are asked for.
    std::optional<OutputFile> file;
    if (auto name = arguments.text("--output"))
        file.emplace(*name, OutputRule{});
    else if (device == "cuda")
        file.emplace(free_name(), OutputRule{});
    bool as_json = arguments.has("--json");
    bool on_terminal = ::isatty(2) != 0;
    std::int64_t began = now_ns();
    std::size_t done = 0, passed = 0;
    Json rows = Json::array();
    for (const SelftestItem& item : list.items) {
        if (on_terminal) {
            double gone = static_cast<double>(now_ns() - began) / 1e9;
            double share = static_cast<double>(done) / static_cast<double>(list.items.size());
            fmt::print(stderr, "\r\x1b[K{}", shown(progress_text(item.name, share, gone)));
            std::fflush(stderr);
        }
        SelftestCheck check = run_check(item);
        ++done;
        passed += check.passed ? 1 : 0;
        if (on_terminal) fmt::print(stderr, "\r\x1b[K");
        if (!as_json)
            show(stdout, "{:<7} {}: {}\n", check.passed ? "ok" : "FAILED", check.name,
                 check.detail);
        std::fflush(stdout);
        rows.add(Json::object({{"name", check.name},
                               {"passed", check.passed},
                               {"detail", check.detail},
                               {"seconds", check.seconds}}));
    }
    Json report = Json::object({{"schema", 1},
                                {"device", list.device},
                                {"passed", passed == done},
                                {"checks_passed", passed},
                                {"versions", versions_json(device)},
                                {"machine", machine_json(device)},
                                {"checks", rows}});
    if (arguments.has("--calibrate")) report.set("rates", calibrate(device, list.device));
    if (file && !file->is_stdout()) file->write(report.pretty() + "\n");
    if (as_json)
        fmt::print("{}\n", report.pretty());
    else
        show(stdout, "{} of {} checks passed on {}\n", passed, done, list.device);
    if (file && !file->is_stdout())
        show(stderr, "written: {}{}\n", file->path().string(),
             device == "cuda"
                 ? " (please send it to us; it contains neither your name nor the host's)"
                 : "");
    return passed == done ? kDone : kAnswerIsNo;
}

}  // namespace saturate
