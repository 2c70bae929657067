// SPDX-License-Identifier: Apache-2.0
#include "telemetry/run_device.h"

#include <fmt/format.h>

#include <fstream>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "telemetry/record_json.h"

namespace saturate {

namespace {

class RunDevice final : public DeviceReader {
  public:
    explicit RunDevice(std::filesystem::path folder) : folder_(std::move(folder)) {
        std::string head = read_if_there(folder_ / "run.json");
        if (head.empty() && std::filesystem::exists(folder_) &&
            !std::filesystem::is_empty(folder_)) {
            throw UserError({.where = {folder_.string()},
                             .found = "--run names no run record: run.json is not there",
                             .expected = "the folder that train or run writes, or one to come"});
        }
        std::string name = "the device of " + folder_.string();
        if (!head.empty()) {
            RunInfo info = info_of(Json::parse(head, (folder_ / "run.json").string()));
            if (!info.device.empty()) name = info.device + (info.simulated ? " (simulated)" : "");
        }
        driver_.gpus = {{.index = 0, .name = name}};
    }

    [[nodiscard]] const GpuDriver& driver() const override { return driver_; }
    [[nodiscard]] std::uint64_t driver_calls() const override { return 0; }

    DeviceSample read(int gpu, ReadTiers) override {
        std::int64_t start = now_ns();
        DeviceSample sample{.gpu = gpu, .time_ns = start};
        std::int64_t busy_ns = 0, step_ns = 0;
        for (const StepRecord& step : new_steps()) {
            if (!step.device_busy_ns || step.duration_ns <= 0) continue;
            busy_ns += *step.device_busy_ns;
            step_ns += step.duration_ns;
        }
        if (step_ns > 0) {
            double share = static_cast<double>(busy_ns) / static_cast<double>(step_ns);
            sample.utilization_percent = 100 * std::min(share, 1.0);
        }
        sample.took_ns = now_ns() - start;
        return sample;
    }

  private:
    // Whole lines written since the last call; half a line waits for its end. What is no step is
    // passed over: the record's reader tells about it.
    std::vector<StepRecord> new_steps() {
        std::ifstream file(folder_ / "steps.jsonl", std::ios::binary);
        if (!file || !file.seekg(read_bytes_)) return {};
        std::string text(kMostBytes, '\0');
        file.read(text.data(), static_cast<std::streamsize>(text.size()));
        text.resize(static_cast<std::size_t>(file.gcount()));
        std::vector<StepRecord> steps;
        std::size_t at = 0;
        for (std::size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
            try {
                auto step =
                    step_of(Json::parse(std::string_view(text).substr(at, end - at), ""), 0);
                if (step) steps.push_back(*step);
            } catch (const UserError&) {
            }
        }
        // A line longer than the buffer is none of ours; without this it would be read for ever.
        if (at == 0 && text.size() == kMostBytes) at = kMostBytes;
        read_bytes_ += static_cast<std::streamoff>(at);
        return steps;
    }

    static constexpr std::size_t kMostBytes = 1u << 20;  // per reading: some 5,000 steps

    std::filesystem::path folder_;
    GpuDriver driver_;
    std::streamoff read_bytes_ = 0;
};

}  // namespace

std::unique_ptr<DeviceReader> open_run_device(const std::filesystem::path& folder) {
    return std::make_unique<RunDevice>(folder);
}

}  // namespace saturate
