// SPDX-License-Identifier: Apache-2.0
#include "telemetry/run_device.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "telemetry/record_json.h"
#include "telemetry/step_tail.h"

namespace saturate {

namespace {

class RunDevice final : public DeviceReader {
  public:
    explicit RunDevice(const std::filesystem::path& folder) : tail_(folder) {
        std::string head = read_if_there(folder / "run.json");
        if (head.empty() && std::filesystem::exists(folder) && !std::filesystem::is_empty(folder)) {
            throw UserError({.where = {folder.string()},
                             .found = "--run does not name a run record: there is no run.json",
                             .expected = "the folder that train or run writes or will write"});
        }
        std::string name = "the device of " + folder.string();
        if (!head.empty()) {
            RunInfo info = info_of(Json::parse(head, (folder / "run.json").string()));
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
        for (const StepRecord& step : tail_.next()) {
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
    GpuDriver driver_;
    StepTail tail_;
};

}  // namespace

std::unique_ptr<DeviceReader> open_run_device(const std::filesystem::path& folder) {
    return std::make_unique<RunDevice>(folder);
}

}  // namespace saturate
