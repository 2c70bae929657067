// SPDX-License-Identifier: Apache-2.0
#include "report/doctor.h"

#include <fmt/format.h>

#include "base/text.h"
#include "probe/gpu_table.h"

namespace saturate {

namespace {

std::optional<GpuMatch> match_of(const GpuIdentity& gpu) {
    if (gpu.fault) return std::nullopt;
    return match_gpu(gpu);
}

std::optional<std::string> capability_text(const std::optional<Capability>& capability) {
    if (!capability) return std::nullopt;
    return fmt::format("{}.{}", capability->major, capability->minor);
}

// A driver of another vendor's GPU also fills `driver`, but then there is a reason why NVML is
// missing.
bool has_nvml(const GpuSurvey& survey) {
    return survey.driver.has_value() && survey.absent_because.empty();
}

// Names come from a driver and must not contain characters that move the cursor of a terminal.
std::string printable(std::string_view raw) {
    std::string out = in_quotes(raw, 100);
    return out.substr(1, out.size() - 2);
}

std::string or_dash(const std::optional<std::string>& text) {
    return text ? printable(*text) : "-";
}

class DoctorPage {
  public:
    explicit DoctorPage(bool bold) : bold_(bold) {}

    void heading(std::string_view text) {
        if (!out.empty()) out += '\n';
        out += bold_ ? fmt::format("\033[1m{}\033[0m\n", text) : fmt::format("{}\n", text);
    }
    void row(std::string_view name, std::string_view value) {
        out += fmt::format("  {} {}\n", pad_right(name, 12), value);
    }

    std::string out;

  private:
    bool bold_;
};

std::string cores_text(const CpuFacts& cpu) {
    std::string text = fmt::format("{} online, {} usable", cpu.cores_online, cpu.cores_usable);
    if (cpu.cores_affinity < cpu.cores_online)
        text += fmt::format(", affinity {}", cpu.cores_affinity);
    if (cpu.cores_quota) text += fmt::format(", cgroup quota {:g}", *cpu.cores_quota);
    return text;
}

std::string memory_text(const MemoryFacts& memory) {
    std::string text = bytes_text(memory.total_bytes);
    if (memory.limit_bytes)
        text += fmt::format(", cgroup limit {}", bytes_text(*memory.limit_bytes));
    if (memory.available_bytes)
        text += fmt::format(", {} available", bytes_text(*memory.available_bytes));
    return text;
}

std::string read_text(const StorageFacts& storage) {
    if (!storage.read_mb_per_second) return fmt::format("- ({})", storage.unknown_because);
    std::string text =
        fmt::format("{:.0f} MB/s (n={}, {:.0f}..{:.0f}; one reader, {})",
                    *storage.read_mb_per_second, storage.parts, storage.slowest_mb_per_second,
                    storage.fastest_mb_per_second, bytes_text(storage.read_bytes));
    if (storage.from_page_cache) text += ", from memory (page cache or tmpfs), not a disk";
    return text;
}

void add_machine(DoctorPage& page, const Machine& machine) {
    auto bytes_or_dash = [](const std::optional<std::uint64_t>& bytes) {
        return bytes ? bytes_text(*bytes) : "-";
    };
    page.heading("Machine");
    page.row("CPU", machine.cpu.model.empty() ? "-" : printable(machine.cpu.model));
    page.row("cores", cores_text(machine.cpu));
    page.row("features", machine.cpu.features.empty() ? "-" : join(machine.cpu.features, " "));
    page.row("RAM", memory_text(machine.memory));
    page.row("/dev/shm", bytes_or_dash(machine.shm_bytes));
    page.row("open files",
             machine.open_files_limit ? fmt::format("{}", *machine.open_files_limit) : "-");
    page.row("data folder", fmt::format("{}, {} free", printable(machine.storage.folder.string()),
                                        bytes_or_dash(machine.storage.free_bytes)));
    page.row("reads", read_text(machine.storage));
}

std::string torch_text(const TorchFacts& torch) {
    if (torch.folder.empty()) return "built without";
    if (!torch.found) return fmt::format("- (gone from {})", torch.folder.string());
    return fmt::format("{}, for {}, in {}", or_dash(torch.version),
                       torch.gpu_ready && torch.cuda_version
                           ? fmt::format("CUDA {}", *torch.cuda_version)
                           : "the CPU",
                       torch.folder.string());
}

void add_software(DoctorPage& page, const DoctorFacts& facts) {
    const GpuSurvey& survey = facts.machine.gpus;
    page.heading("Software");
    page.row("driver", has_nvml(survey) ? or_dash(survey.driver->driver_version)
                                        : fmt::format("- ({})", survey.absent_because));
    page.row("CUDA", survey.driver && survey.driver->cuda_version
                         ? fmt::format("up to {} by the driver", *survey.driver->cuda_version)
                         : "-");
    page.row("CUDA toolkit", facts.toolkit
                                 ? fmt::format("{} in {}", or_dash(facts.toolkit->version),
                                               facts.toolkit->folder.string())
                                 : "-");
    page.row("LibTorch", torch_text(facts.torch));
    page.row("CUDA part", facts.has_cuda_part ? "built (libsaturate_cuda.so)" : "-");
}

std::string rates_text(const GpuFacts& gpu) {
    std::vector<std::string> rates;
    auto add = [&](std::string_view name, const std::optional<double>& tflops) {
        if (tflops) rates.push_back(fmt::format("{} {:g}", name, *tflops));
    };
    add("fp8", gpu.fp8_tflops);
    add("bf16", gpu.bf16_tflops);
    add("fp16", gpu.fp16_tflops);
    add("tf32", gpu.tf32_tflops);
    add("fp32", gpu.fp32_tflops);
    return fmt::format("{} TFLOPS dense; {:g} GB/s; {:g} W", join(rates, ", "), gpu.bandwidth_gbs,
                       gpu.tdp_watts);
}

void add_gpu(DoctorPage& page, const GpuIdentity& gpu) {
    std::string which = fmt::format("GPU {}", gpu.index);
    if (gpu.fault) {
        page.row(which, fmt::format("{}: {}", gpu.name.empty() ? "-" : printable(gpu.name),
                                    printable(*gpu.fault)));
        return;
    }
    std::string line = gpu.name.empty() ? "-" : printable(gpu.name);
    line += gpu.memory_total_bytes ? ", " + bytes_text(*gpu.memory_total_bytes) : ", memory -";
    if (gpu.memory_used_bytes)
        line += fmt::format(" ({} used)", bytes_text(*gpu.memory_used_bytes));
    line += fmt::format(", capability {}", or_dash(capability_text(gpu.capability)));
    if (gpu.mig == true) line += ", split into instances (MIG)";
    page.row(which, line);
    auto match = match_of(gpu);
    if (!match) {
        page.row("", "not in the GPU table: peak rates -");
        return;
    }
    page.row("  use", fmt::format("{}{}", precision_name(match->facts.best_precision),
                                  match->facts.needs_grad_scaler ? " with a gradient scaler" : ""));
    page.row("  peak", rates_text(match->facts) +
                           (gpu.mig == true ? " (the whole card, not an instance)" : ""));
    page.row("  matched", printable(match->how));
}

Json gpu_json(const GpuIdentity& gpu) {
    Json out = Json::object({{"index", gpu.index},
                             {"name", gpu.name},
                             {"uuid", gpu.uuid},
                             {"pci_bus_id", gpu.pci_bus_id},
                             {"capability", capability_text(gpu.capability)},
                             {"memory_total_bytes", gpu.memory_total_bytes},
                             {"memory_used_bytes", gpu.memory_used_bytes},
                             {"mig", gpu.mig},
                             {"fault", gpu.fault},
                             {"facts", nullptr}});
    auto match = match_of(gpu);
    if (!match) return out;
    const GpuFacts& facts = match->facts;
    out.set("facts",
            Json::object({{"name", facts.name},
                          {"matched_by", match->kind == GpuMatchKind::name ? "name" : "capability"},
                          {"how", match->how},
                          {"arch", facts.arch},
                          {"precision", precision_name(facts.best_precision)},
                          {"needs_grad_scaler", facts.needs_grad_scaler},
                          {"fp32_tflops", facts.fp32_tflops},
                          {"tf32_tflops", facts.tf32_tflops},
                          {"fp16_tflops", facts.fp16_tflops},
                          {"bf16_tflops", facts.bf16_tflops},
                          {"fp8_tflops", facts.fp8_tflops},
                          {"bandwidth_gbs", facts.bandwidth_gbs},
                          {"tdp_watts", facts.tdp_watts},
                          {"sm_count", facts.sm_count},
                          {"source", facts.source},
                          {"note", facts.note}}));
    return out;
}

Json storage_json(const StorageFacts& storage) {
    bool known = storage.read_mb_per_second.has_value();
    auto if_known = [&](double value) { return known ? Json(value) : Json(); };
    return Json::object({{"folder", storage.folder.string()},
                         {"free_bytes", storage.free_bytes},
                         {"read_mb_per_second", storage.read_mb_per_second},
                         {"read_mb_per_second_low", if_known(storage.slowest_mb_per_second)},
                         {"read_mb_per_second_high", if_known(storage.fastest_mb_per_second)},
                         {"read_parts", storage.parts},
                         {"read_bytes", storage.read_bytes},
                         {"from_page_cache", storage.from_page_cache},
                         {"unknown_because", known ? Json() : Json(storage.unknown_because)}});
}

}  // namespace

std::string doctor_text(const DoctorFacts& facts, bool bold_headings) {
    DoctorPage page(bold_headings);
    add_machine(page, facts.machine);
    add_software(page, facts);
    page.heading("GPUs");
    if (!facts.machine.gpus.driver || facts.machine.gpus.driver->gpus.empty()) {
        page.out += "  none\n";
    } else {
        for (const GpuIdentity& gpu : facts.machine.gpus.driver->gpus) add_gpu(page, gpu);
    }
    page.heading("Missing");
    std::vector<Missing> missing = missing_parts(facts);
    if (missing.empty()) page.out += "  nothing\n";
    for (const Missing& part : missing)
        page.out += fmt::format("  {}: {}\n", part.what, part.costs);
    return page.out;
}

Json doctor_json(const DoctorFacts& facts) {
    const Machine& machine = facts.machine;
    const std::optional<GpuDriver>& driver = machine.gpus.driver;
    Json gpus = Json::array(), missing = Json::array();
    if (driver) {
        for (const GpuIdentity& gpu : driver->gpus) gpus.add(gpu_json(gpu));
    }
    for (const Missing& part : missing_parts(facts))
        missing.add(Json::object({{"what", part.what}, {"costs", part.costs}}));
    const CpuFacts& cpu = machine.cpu;
    const TorchFacts& torch = facts.torch;
    return Json::object(
        {{"schema", 1},
         {"gpus", gpus},
         {"cpu", Json::object({{"model", cpu.model},
                               {"cores_online", cpu.cores_online},
                               {"cores_affinity", cpu.cores_affinity},
                               {"cores_quota", cpu.cores_quota},
                               {"cores_usable", cpu.cores_usable},
                               {"features", Json::array_of(cpu.features)}})},
         {"memory", Json::object({{"total_bytes", machine.memory.total_bytes},
                                  {"limit_bytes", machine.memory.usable_bytes()},
                                  {"cgroup_limit_bytes", machine.memory.limit_bytes},
                                  {"available_bytes", machine.memory.available_bytes}})},
         {"storage", storage_json(machine.storage)},
         {"shm_bytes", machine.shm_bytes},
         {"open_files_limit", machine.open_files_limit},
         {"nvml",
          Json::object({{"present", has_nvml(machine.gpus)},
                        {"driver_version", driver ? Json(driver->driver_version) : Json()},
                        {"absent_because",
                         has_nvml(machine.gpus) ? Json() : Json(machine.gpus.absent_because)}})},
         {"cuda",
          Json::object(
              {{"driver_serves", driver ? Json(driver->cuda_version) : Json()},
               {"toolkit_version", facts.toolkit ? Json(facts.toolkit->version) : Json()},
               {"toolkit_folder", facts.toolkit ? Json(facts.toolkit->folder.string()) : Json()},
               {"part_built", facts.has_cuda_part}})},
         {"torch",
          Json::object({{"present", torch.found},
                        {"version", torch.version},
                        {"cuda_version", torch.cuda_version},
                        {"gpu_ready", torch.gpu_ready},
                        {"folder", torch.folder.empty() ? Json() : Json(torch.folder.string())}})},
         {"missing", missing}});
}

}  // namespace saturate
