// SPDX-License-Identifier: Apache-2.0
#include "report/demo_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/text_table.h"
#include "report/tuning_text.h"

namespace saturate {

namespace {

std::string busy_text(const DeviceUse& use) {
    auto mean = use.busy_mean(), deviation = use.busy_deviation();
    if (!mean) return "-";
    std::string out = fmt::format("{:.0f} %", *mean);
    if (deviation) out += fmt::format(" +- {:.0f}", *deviation);
    return out + fmt::format(" (n={})", use.busy_percent.n());
}

std::string number_text(const std::optional<double>& value, std::string_view unit) {
    if (!value) return "-";
    return fmt::format("{:.{}f} {}", *value, *value < 10 ? 1 : 0, unit);
}

std::string rates_text(const Measured& rate) {
    return fmt::format("{} (n={}, {}..{})", rate_text(rate.median), rate.n, rate_text(rate.low),
                       rate_text(rate.high));
}

}  // namespace

const std::vector<DemoJob>& demo_jobs() {
    static const std::vector<DemoJob> kJobs = [] {
        std::vector<DemoJob> out;
        for (const ReferenceJob& job : reference_job_table()) {
            if (!job.write_up.gpu.empty()) out.push_back({job.write_up, job.name});
        }
        return out;
    }();
    return kJobs;
}

const DemoJob* find_demo_job(std::string_view name) {
    const std::vector<DemoJob>& jobs = demo_jobs();
    auto found = std::ranges::find(jobs, name, &DemoJob::name);
    return found == jobs.end() ? nullptr : &*found;
}

std::string demo_text(const DemoResult& result) {
    if (!result.proof) return "Nothing that was tried is faster than the current settings.\n";
    bool simulated = result.device.starts_with("sim:");
    const DemoJob& job = *result.job;
    const Proof& proof = *result.proof;
    std::string mark = simulated ? ", simulated" : "";
    TextTable table({result.device + (simulated ? " (simulated)" : ""), "before", "after",
                     fmt::format("the write-up claims ({})", job.gpu)});
    table.add({"device busy" + mark, busy_text(*result.before), busy_text(*result.after),
               or_dash(job.busy)});
    table.add(
        {"samples/s" + mark, rates_text(proof.before), rates_text(proof.after), or_dash(job.rate)});
    auto steps = [](const Measured& rate, double batch) {
        return batch > 0 ? rate_text(rate.median / batch) : std::string("-");
    };
    table.add({"steps/s" + mark, steps(proof.before, result.batch_before),
               steps(proof.after, result.batch_after), or_dash(job.steps)});
    table.add({"wait per batch", number_text(result.before->wait_mean_ms(), "ms"),
               number_text(result.after->wait_mean_ms(), "ms"), or_dash(job.wait)});
    if (result.before->power_mean_watts())
        table.add({"power" + mark, number_text(result.before->power_mean_watts(), "W"),
                   number_text(result.after->power_mean_watts(), "W"), or_dash(job.power)});
    table.add({"speed-up", "",
               proof.has_interval()
                   ? fmt::format("{}: {:.2f} times [{:.2f}, {:.2f}]", verdict_name(proof.verdict),
                                 proof.ratio, proof.interval_low, proof.interval_high)
                   : std::string(verdict_name(proof.verdict)),
               or_dash(job.speed_up)});
    return table.text();
}

std::string demo_verdict(const DemoResult& result) {
    constexpr double kWaits = 0.1;  // from this share of waiting on, the loader is the bottleneck
    if (!result.proof) return "Nothing that was tried is faster than the current settings.";
    const DemoJob& job = *result.job;
    const Proof& proof = *result.proof;
    std::string out;
    if (proof.verdict == Verdict::not_proven)
        out = fmt::format("Not proven: {} of {} pairs of runs finished.", proof.pairs.size(),
                          kProofPairs);
    else if (proof.verdict != Verdict::faster)
        out = fmt::format("The proof shows no gain: {}.", verdict_name(proof.verdict));
    else if (proof.interval_low >= job.speed_up_least)
        out = fmt::format("The claimed speed-up is reached: at least {:.2f} times, {} claimed.",
                          proof.interval_low, job.speed_up);
    else if (proof.interval_high >= job.speed_up_least)
        out = fmt::format("Faster, about as much as claimed ({}).", job.speed_up);
    else
        out = fmt::format("Faster, but not as much as claimed ({}).", job.speed_up);
    auto busy = result.after->busy_mean();
    if (!busy) return out;
    if (std::round(*busy) >= job.busy_least)
        return out + fmt::format(" The device is {:.0f} % busy, as claimed.", *busy);
    out += fmt::format(" The device is {:.0f} % busy here, and {:.0f} % was claimed: ", *busy,
                       job.busy_least);
    if (result.wait_share >= kWaits)
        return out + fmt::format(
                         "steps wait {:.0f} % of the time for their data, which {} core{} cannot "
                         "load as fast as the device trains.",
                         100 * result.wait_share, result.cores, result.cores == 1 ? "" : "s");
    return out + "the device waits for the host, not for data.";
}

Json demo_json(const DemoResult& result) {
    const DemoJob& job = *result.job;
    auto claim = [](std::string_view text) { return text.empty() ? Json() : Json(text); };
    Json out = Json::object({{"job", job.name},
                             {"device", result.device},
                             {"simulated", result.device.starts_with("sim:")},
                             {"fault", job.fault},
                             {"claims", Json::object({{"gpu", job.gpu},
                                                      {"busy", claim(job.busy)},
                                                      {"rate", claim(job.rate)},
                                                      {"steps", claim(job.steps)},
                                                      {"wait", claim(job.wait)},
                                                      {"power", claim(job.power)},
                                                      {"speed_up", claim(job.speed_up)}})}});
    if (result.proof) {
        out.set("proof", to_json(*result.proof));
        out.set("before", to_json(*result.before));
        out.set("after", to_json(*result.after));
        out.set("verdict", demo_verdict(result));
    }
    return out;
}

}  // namespace saturate
