// SPDX-License-Identifier: Apache-2.0
#include "telemetry/sysfs_device.h"

#include <algorithm>
#include <map>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

namespace saturate {

namespace {

std::optional<double> number_in(const std::filesystem::path& path) {
    auto value = parse_integer(trim(read_if_there(path)));
    return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

std::optional<std::uint64_t> count_in(const std::filesystem::path& path) {
    auto value = parse_integer(trim(read_if_there(path)));
    return value && *value >= 0 ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
}

std::optional<double> scaled(std::optional<double> value, double factor) {
    return value ? std::optional(*value * factor) : std::nullopt;
}

class SysfsReader final : public DeviceReader {
  public:
    explicit SysfsReader(const SysfsRoots& roots) {
        std::map<std::string, std::filesystem::path> found;  // by address, for a stable order
        std::error_code error;
        for (const auto& entry :
             std::filesystem::directory_iterator(roots.sys / "bus/pci/devices", error)) {
            std::string vendor(trim(read_if_there(entry.path() / "vendor")));
            bool display = trim(read_if_there(entry.path() / "class")).starts_with("0x03");
            if (display && (vendor == "0x1002" || vendor == "0x10de"))
                found[entry.path().filename()] = entry.path();
        }
        for (const auto& [address, folder] : found) {
            GpuIdentity gpu{
                .index = static_cast<int>(folders_.size()), .name = "GPU", .pci_bus_id = address};
            bool amd = trim(read_if_there(folder / "vendor")) == "0x1002";
            std::string device(trim(read_if_there(folder / "device")));
            gpu.name = (amd ? "AMD GPU " : "NVIDIA GPU ") + device;
            std::string product(trim(read_if_there(folder / "product_name")));
            if (!product.empty()) gpu.name = product;
            std::string told =
                read_if_there(roots.proc / "driver/nvidia/gpus" / address / "information");
            for (std::string_view line : split(told, '\n')) {
                if (line.starts_with("Model:")) gpu.name = trim(line.substr(6));
            }
            gpu.memory_total_bytes = count_in(folder / "mem_info_vram_total");
            gpu.memory_used_bytes = count_in(folder / "mem_info_vram_used");
            if (trim(read_if_there(folder / "power/runtime_status")) == "suspended")
                gpu.suspended = true;
            driver_.gpus.push_back(gpu);
            folders_.push_back(folder);
        }
    }

    [[nodiscard]] const GpuDriver& driver() const override { return driver_; }
    [[nodiscard]] std::uint64_t driver_calls() const override { return 0; }

    DeviceSample read(int gpu, ReadTiers) override {
        const std::filesystem::path& folder = folders_.at(static_cast<std::size_t>(gpu));
        DeviceSample sample{.gpu = gpu, .time_ns = now_ns()};
        if (trim(read_if_there(folder / "power/runtime_status")) == "suspended") {
            sample.fault = "asleep (runtime-suspended), and left asleep";
            return sample;
        }
        sample.utilization_percent = number_in(folder / "gpu_busy_percent");
        sample.memory_utilization_percent = number_in(folder / "mem_busy_percent");
        sample.memory_total_bytes = count_in(folder / "mem_info_vram_total");
        sample.memory_used_bytes = count_in(folder / "mem_info_vram_used");
        std::error_code error;
        for (const auto& entry : std::filesystem::directory_iterator(folder / "hwmon", error)) {
            const std::filesystem::path& sensors = entry.path();
            sample.power_watts = scaled(number_in(sensors / "power1_average"), 1e-6);
            if (!sample.power_watts)
                sample.power_watts = scaled(number_in(sensors / "power1_input"), 1e-6);
            sample.power_limit_watts = scaled(number_in(sensors / "power1_cap"), 1e-6);
            sample.temperature_celsius = scaled(number_in(sensors / "temp1_input"), 1e-3);
            sample.clock_sm_mhz = scaled(number_in(sensors / "freq1_input"), 1e-6);
            sample.clock_memory_mhz = scaled(number_in(sensors / "freq2_input"), 1e-6);
        }
        sample.took_ns = now_ns() - sample.time_ns;
        return sample;
    }

  private:
    GpuDriver driver_;
    std::vector<std::filesystem::path> folders_;
};

}  // namespace

DeviceOpening open_sysfs(const SysfsRoots& roots) {
    auto reader = std::make_unique<SysfsReader>(roots);
    if (reader->driver().gpus.empty()) return {nullptr, "the kernel shows no GPU"};
    return {std::move(reader), ""};
}

}  // namespace saturate
