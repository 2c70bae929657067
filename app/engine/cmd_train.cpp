// SPDX-License-Identifier: Apache-2.0
// train: runs a configuration, with a record, checkpoints and a summary.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "arguments.h"
#include "base/error.h"
#include "base/output_file.h"
#include "commands.h"
#include "exit_code.h"
#include "grid.h"
#include "process/page_server.h"
#include "process/rank_environment.h"
#include "process/run_folder.h"
#include "show.h"
#include "train_run.h"

namespace saturate {

namespace {

TrainRequest request_of(const Arguments& arguments) {
    TrainRequest request{.config = *arguments.text("--config"),
                         .snapshot = arguments.text("--snapshot"),
                         .device = *arguments.text("--device"),
                         .resume = arguments.text("--resume"),
                         .values = arguments.all("--set"),
                         .output = output_folder(arguments.text("--output").value_or(""))};
    constexpr double kYear = 366.0 * 24 * 3600;
    request.limits = {.epochs = arguments.whole("--epochs", 1, 10'000'000),
                      .steps = arguments.whole("--steps", 1, 1L << 50),
                      .seconds = arguments.number("--seconds", 0.001, kYear)};
    int limits = (request.limits.epochs ? 1 : 0) + (request.limits.steps ? 1 : 0) +
                 (request.limits.seconds ? 1 : 0);
    if (limits > 1) {
        throw UserError(Problem{.found = "--epochs, --steps and --seconds cannot be combined",
                                .expected = "one of them"});
    }
    request.quiet = arguments.has("--quiet");
    request.one_batch = arguments.has("--one-batch");
    request.bare = arguments.has("--bare");
    request.command = {"saturate", "train", "--config", request.config};
    return request;
}

}  // namespace

int train_with(const Arguments& arguments, const JobRegistry& jobs) {
    if (arguments.has("--max-restarts")) {
        throw UserError(Problem{.found = "--max-restarts without --nproc has no effect",
                                .expected = "--nproc N, whose processes are restarted",
                                .fix = "torchrun has its own --max-restarts"});
    }
    TrainRequest request = request_of(arguments);
    auto place = rank_place(own_environment());
    bool serves = !place || place->rank == 0;
    if (auto address = arguments.text("--serve"); address && serves) {
        // Choose the folder now, for the live page; a resumed run is found by its checkpoint.
        if (request.output.empty() && !request.resume)
            request.output =
                new_run_folder(std::filesystem::path(request.config).stem().string()).string();
        show(stderr, "the live page is {}\n",
             start_page_server(request.output.empty() ? std::string(kRunsFolder) : request.output,
                               *address));
    }
    if (arguments.has("--grid")) {
        std::vector<GridRun> runs = run_grid(request, arguments.all("--grid"), jobs);
        fmt::print("{}",
                   arguments.has("--json") ? grid_json(runs).pretty() + "\n" : grid_text(runs));
        return grid_status(runs);
    }
    TrainOutcome outcome = run_training(request, jobs);
    if (outcome.result.problem) show(stderr, "{}\n", outcome.result.problem->text());
    fmt::print("{}", arguments.has("--json") ? outcome_json(outcome).pretty() + "\n"
                                             : outcome_text(outcome));
    int status = outcome_status(outcome);
    // Threads that wait for a lost rank never end, and the libraries need a working device to shut
    // down. So exit at once without any cleanup.
    if (outcome.lost_rank || outcome.result.device_lost) {
        std::fflush(stdout);
        std::_Exit(status);
    }
    return status;
}

int cmd_train(const Arguments& arguments) { return train_with(arguments, reference_jobs()); }

}  // namespace saturate
