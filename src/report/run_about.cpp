// SPDX-License-Identifier: Apache-2.0
#include "report/run_about.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>

#include "base/text.h"

namespace saturate {

namespace {

// Returns "2 x NVIDIA H100; AMD EPYC 9654, 16 cores, 62.0 GiB".
std::string machine_text(const Json& machine, Language language) {
    std::map<std::string, int> gpus;
    for (const Json& gpu : machine["gpus"].items()) ++gpus[gpu["name"].string().value_or("GPU")];
    std::string out;
    for (const auto& [name, count] : gpus)
        out += fmt::format("{}{}{}", out.empty() ? "" : ", ",
                           count > 1 ? fmt::format("{} x ", count) : "", name);
    std::vector<std::string> host;
    if (auto cpu = machine["cpu"].string()) host.push_back(*cpu);
    if (auto cores = machine["cores_usable"].integer())
        host.push_back(translated(fmt::format("{} cores", *cores), language));
    if (auto memory = machine["memory_bytes"].integer(); memory && *memory > 0)
        host.push_back(bytes_text(static_cast<std::uint64_t>(*memory)));
    if (!out.empty() && !host.empty()) out += "; ";
    return or_dash(out + join(host, ", "));
}

}  // namespace

std::string local_time_text(std::int64_t wall_ns) {
    if (wall_ns <= 0) return "-";
    std::time_t seconds = wall_ns / 1'000'000'000;
    std::tm parts{};
    ::localtime_r(&seconds, &parts);
    char text[64];
    return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts)};
}

std::vector<ReportRow> about_rows(const ReportInput& input) {
    auto row = [&](const char* key, const char* name, auto text) {
        ReportRow out{.key = key, .name = translated(name, input.language)};
        for (const RunView& run : input.runs) out.cells.push_back(or_dash(text(run.info)));
        return out;
    };
    std::vector<ReportRow> rows;
    rows.push_back(
        row("began", "began", [](const RunInfo& i) { return local_time_text(i.started_wall_ns); }));
    rows.push_back(
        row("command", "command", [](const RunInfo& i) { return join(i.command, " "); }));
    rows.push_back(row("device", "device", [](const RunInfo& i) { return i.device; }));
    rows.push_back(row("machine", "machine",
                       [&](const RunInfo& i) { return machine_text(i.machine, input.language); }));
    rows.push_back(row("version", "saturate", [](const RunInfo& i) { return i.version; }));
    std::erase_if(rows, [](const ReportRow& one) {
        return std::ranges::all_of(one.cells, [](const std::string& cell) { return cell == "-"; });
    });
    return rows;
}

}  // namespace saturate
