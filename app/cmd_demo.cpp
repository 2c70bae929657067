// SPDX-License-Identifier: Apache-2.0
// demo: fixes a small Python project with typical problems; or shows a reference job with the
// settings of its write-up: why it is slow, what a search finds, and the proof, compared with the
// claims of the write-up.
#include <fmt/format.h>

#include <filesystem>

#include "arguments.h"
#include "base/error.h"
#include "base/output_file.h"
#include "base/text.h"
#include "commands.h"
#include "config/reference_jobs.h"
#include "demo_python.h"
#include "demo_run.h"
#include "exit_code.h"
#include "process/run_folder.h"
#include "report/diagnosis_text.h"
#include "report/tuning_text.h"
#include "show.h"
#include "tuning/proven.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

constexpr double kBudgetSeconds = 100;  // a demonstration takes less than two minutes
constexpr double kLeastBudgetSeconds = 60;

const DemoJob& job_of(const Arguments& arguments) {
    std::string name =
        arguments.operands.empty() ? std::string(shown_job().name) : arguments.operands[0];
    if (const DemoJob* job = find_demo_job(name); job && arguments.operands.size() <= 1)
        return *job;
    std::vector<std::string> names;
    for (const DemoJob& job : demo_jobs()) names.emplace_back(job.name);
    Problem problem{
        .found = fmt::format("unknown job {}", in_quotes(join(arguments.operands, " "))),
        .expected = "one of " + join(names, ", ")};
    if (auto meant = closest(name, names)) problem.fix = fmt::format("saturate demo {}", *meant);
    throw UserError(problem);
}

fs::path make_folder(const Arguments& arguments, std::string_view name) {
    auto named = arguments.text("--output");
    fs::path folder = named ? output_folder(*named) : new_run_folder(fmt::format("demo-{}", name));
    make_demo_folder(folder);
    return folder;
}

double batch_of(const Assignment& start, const Assignment& best) {
    Assignment settings = best;
    settings.insert(start.begin(), start.end());
    return parse_number(value_of(settings, "batch_size")).value_or(0);
}

std::string heading(const DemoJob& job, const std::string& device) {
    std::string out = fmt::format("{} on {}", job.name, device);
    if (device.starts_with("sim:"))
        out +=
            " (simulated: the card's time and memory are modelled; loading and the host's part are "
            "real)";
    return out + fmt::format("\nits faults: {}\n", job.fault);
}

}  // namespace

int cmd_demo(const Arguments& arguments) {
    if (arguments.operands.empty() && !arguments.text("--device")) {
        if (auto python = python_with_torch())
            return demo_python(*python, make_folder(arguments, "pictures"),
                               arguments.has("--json"));
        show(stderr,
             "no Python with torch was found, so the demo uses the native engine; to see it on a "
             "Python script: python3 -m pip install torch, or SATURATE_PYTHON=/path/to/python\n");
    }
    const DemoJob& job = job_of(arguments);
    std::string device = arguments.text("--device").value_or(fmt::format("sim:{}", job.gpu));
    fs::path folder = make_folder(arguments, job.name);
    bool json = arguments.has("--json"), quiet = arguments.has("--quiet");
    if (!json) show(stdout, "{}", heading(job, device));
    std::fflush(stdout);
    DemoRun run = run_demo(job, device, folder, kBudgetSeconds, kLeastBudgetSeconds, quiet);
    const TuneRequest& request = run.request;
    const TuneAnswer& answer = run.answer;
    if (!answer.search.baseline) return kInterrupted;

    DemoResult result{.job = &job,
                      .device = request.device,
                      .proof = answer.proof ? &*answer.proof : nullptr,
                      .before = &answer.before,
                      .after = &answer.after,
                      .batch_before = batch_of(request.start, {}),
                      .batch_after = batch_of(request.start, answer.search.best),
                      .wait_share = answer.search.best_rate->input_wait_share,
                      .cores = request.facts.cores};
    if (json) {
        Json out = Json::object({{"schema", 1}, {"folder", folder.string()}});
        Json told = demo_json(result);  // must outlive the loop over its members
        for (const auto& [key, value] : told.members()) out.set(key, value);
        out.set("diagnosis", to_json(run.diagnosis, 3, false));
        out.set("settings", to_json(answer.search)["settings"]);
        fmt::print("{}\n", out.pretty());
    } else {
        show(stdout, "\nWhy it is slow\n{}", diagnosis_text(run.diagnosis, {.most = 2}));
        bool is_proven = proven_settings(request, answer).why.empty();
        show(stdout, "\n{}\n{}", is_proven ? "What helped" : "Found, but not proven",
             kept_text(answer.search, request.start, is_proven));
        show(stdout, "The search ended: {}\n", answer.search.ended);
        show(stdout, "\n{}", demo_text(result));
        if (answer.proof) show(stdout, "\n{}\n", demo_verdict(result));
        show(stdout,
             "\nThe write-up's figures come from its own data, code and machine, ours from this "
             "machine ({} cores){}.\nRuns and proof: {}\n",
             request.facts.cores, device.starts_with("sim:") ? " and a simulated card" : "",
             folder.string());
    }
    if (answer.interrupted) return kInterrupted;
    return proven_settings(request, answer).settings.empty() ? kAnswerIsNo : kDone;
}

}  // namespace saturate
