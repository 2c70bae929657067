// SPDX-License-Identifier: Apache-2.0
#include "demo_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/clock.h"
#include "base/embedded.h"
#include "base/error.h"
#include "base/file.h"
#include "config/set_values.h"
#include "tune_show.h"

namespace saturate {

std::span<const EmbeddedFile> embedded_configs();  // configs/*_before.yaml

namespace {

namespace fs = std::filesystem;

// Writes the configuration of the job, with the values that the write-up's own loop used.
std::string write_config(const DemoJob& job, const fs::path& folder) {
    std::string name = fmt::format("{}_before.yaml", job.name);
    for (const EmbeddedFile& file : embedded_configs()) {
        if (file.name != name) continue;
        Document document = Document::parse(std::string(file.text), name);
        if (!job.as_run.empty())
            document = with_values(document, std::vector<std::string>{std::string(job.as_run)});
        fs::path path = folder / name;
        write_file_whole(path, document.text());
        return path.string();
    }
    throw Bug(__FILE__, __LINE__, fmt::format("no configuration for {}", job.name));
}

}  // namespace

void make_demo_folder(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error || !fs::is_empty(folder, error)) {
        throw UserError({.where = {folder.string()},
                         .found = error ? error.message() : "the folder is not empty",
                         .expected = "a new folder",
                         .fix = "choose another with -o"});
    }
}

DemoRun run_demo(const DemoJob& job, const std::string& device, const fs::path& folder,
                 double seconds, double seconds_least, bool quiet) {
    std::string config = write_config(job, folder);
    // Making data counts as part of the time, so that a first demonstration ends in time too.
    std::int64_t begin = now_ns();
    make_missing_data(config, quiet);
    double spent = static_cast<double>(now_ns() - begin) / 1e9;
    DemoRun run{.request = tune_request(config, device, Level::training)};
    run.request.folder = folder / "tune";
    run.request.fresh = true;  // show only new measurements
    run.request.budget_seconds = std::max(seconds_least, seconds - spent);
    run.answer = tune_and_show(run.request, quiet);
    if (run.answer.search.baseline)
        run.diagnosis = diagnose_run_folder(run.request.folder / "trial-1");
    return run;
}

}  // namespace saturate
