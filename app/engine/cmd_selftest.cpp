// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "arguments.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/output_file.h"
#include "base/version.h"
#include "commands.h"
#include "cuda/nvml.h"
#include "engine/device_rates.h"
#include "engine/selftest.h"
#include "exit_code.h"
#include "probe/machine.h"
#include "process/gpus.h"
#include "progress.h"
#include "show.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

// Returns the facts of the machine that a report needs, and nothing that identifies its owner.
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

// Error messages contain paths, and a path can contain the user's name.
std::string without_names(std::string text) {
    for (const char* variable : {"TMPDIR", "HOME"}) {
        const char* folder = std::getenv(variable);
        std::string_view place = folder ? folder : "";
        if (place.size() < 2) continue;
        for (std::size_t at = 0; (at = text.find(place, at)) != std::string::npos;)
            text.replace(at, place.size(), std::string("$") + variable);
    }
    return text;
}

// Returns the name in "cuda:0 (NVIDIA H100 80GB HBM3)".
std::string name_in(const std::string& device) {
    std::size_t from = device.find('(') + 1;
    return device.substr(from, device.rfind(')') - from);
}

// Measures the rates and saves them for the simulated device of this name.
Json calibrate(const std::string& device, const std::string& name, const std::string& card) {
    auto open = [&](const DeviceOptions& options) {
        return std::move(open_device(device, options, false).backend);
    };
    MeasuredRates rates = measure_rates(open, device == "cpu" ? kRateEffortOfCpu : RateEffort{});
    if (device != "cpu") {
        std::string file = keep_rates(card.empty() ? name : card, rates);
        show(stderr, "rates saved: {}{}\n", file,
             card.empty() ? " (the card is not in the table, so it cannot be simulated)" : "");
    }
    return rates_json(rates);
}

// Returns the first free name of saturate-selftest.json, saturate-selftest-2.json, ...
fs::path free_name() {
    for (int i = 1;; ++i) {
        fs::path name =
            i == 1 ? "saturate-selftest.json" : fmt::format("saturate-selftest-{}.json", i);
        if (!fs::exists(name)) return name;
    }
}

void show_progress(const std::string& name, std::size_t done, std::size_t count,
                   std::int64_t began_ns) {
    double gone = static_cast<double>(now_ns() - began_ns) / 1e9;
    double share = static_cast<double>(done) / static_cast<double>(count);
    fmt::print(stderr, "\r\x1b[K{}", shown(progress_text(name, share, gone)));
    std::fflush(stderr);
}

// Writes the report: the first time by the rules for output files, later over our own file.
void write_again(const OutputFile& file, const Json& report) {
    std::string text = report.pretty() + "\n";
    if (report["checks"].items().empty())
        file.write(text);
    else
        write_file_whole(file.path(), text);
}

}  // namespace

int cmd_selftest(const Arguments& arguments) {
    std::string device = *arguments.text("--device");
    SelftestList list = device == "cuda" ? selftest_cuda() : selftest_cpu();
    // Always write results of a GPU, so that users can send them; those of a CPU only with -o.
    std::optional<OutputFile> file;
    if (auto name = arguments.text("--output"))
        file.emplace(*name, OutputRule{});
    else if (device == "cuda")
        file.emplace(free_name(), OutputRule{});
    bool as_json = arguments.has("--json"), writes = file && !file->is_stdout();
    bool on_terminal = ::isatty(2) != 0;
    std::int64_t began = now_ns();
    std::size_t done = 0, passed = 0;
    std::string name = name_in(list.device), card;
    if (device != "cpu") card = card_at(survey_nvml(), list.backend->pci_bus_id(), name);
    Json rows = Json::array(), versions = versions_json(device), machine = machine_json(device);
    auto report = [&](const Json& running) {
        return Json::object({{"schema", 1},
                             {"device", list.device},
                             {"card", card.empty() ? Json() : Json(card)},
                             {"passed", passed == list.items.size()},
                             {"checks_passed", passed},
                             {"running", running},
                             {"versions", versions},
                             {"machine", machine},
                             {"checks", rows}});
    };
    for (const SelftestItem& item : list.items) {
        if (on_terminal) show_progress(item.name, done, list.items.size(), began);
        // Write the name first: the report then names a check that hangs or ends the process.
        if (writes) write_again(*file, report(item.name));
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
                               {"detail", without_names(check.detail)},
                               {"seconds", check.seconds}}));
    }
    Json complete = report(Json());
    if (arguments.has("--calibrate")) {
        if (writes) write_again(*file, report("calibration"));
        complete.set("rates", calibrate(device, name, card));
    }
    if (writes) write_again(*file, complete);
    if (as_json)
        fmt::print("{}\n", complete.pretty());
    else
        show(stdout, "{} of {} checks passed on {}\n", passed, done, list.device);
    if (writes)
        show(stderr, "written: {}{}\n", file->path().string(),
             device == "cuda"
                 ? " (please send it to us; it contains neither your name nor the host's)"
                 : "");
    return passed == done ? kDone : kAnswerIsNo;
}

}  // namespace saturate
