// SPDX-License-Identifier: Apache-2.0
#include "tune_show.h"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>

#include "base/clock.h"
#include "base/file.h"
#include "probe/machine.h"
#include "process/how_to_start.h"
#include "process/mortal_folder.h"
#include "process/page_server.h"
#include "process/scratch_tree.h"
#include "progress.h"
#include "report/tune_html.h"
#include "report/tuning_text.h"
#include "show.h"
#include "tuning/proven.h"

namespace saturate {

namespace {

void write_page(const TuneRequest& request, const TuneAnswer& answer, std::int64_t began,
                const std::filesystem::path& file) {
    ProvenSettings proven = proven_settings(request, answer);
    CpuFacts cpu = probe_cpu();
    write_file_whole(file,
                     tune_html({.request = request,
                                .answer = answer,
                                .is_proven = proven.why.empty(),
                                .why = proven.why,
                                .machine = fmt::format("{}, {} cores", cpu.model, cpu.cores_usable),
                                .began_wall_ns = began,
                                .language = shown_language()}));
}

}  // namespace

TuneAnswer tune_and_show(const TuneRequest& request, bool quiet,
                         const std::optional<std::string>& serve) {
    check_budget(request.budget_seconds);
    if (!request.job.command.empty()) check_can_start(request.job.command);
    make_tune_folder(request);
    // Temporary files of the trials of a user's command are deleted at the end.
    std::optional<MortalFolder> temporary;
    if (request.job.is_ours()) {
        make_missing_data(request.job.config, quiet);
    } else {
        temporary.emplace(temporary_beside(guarded_around(".")));
        ::setenv("TMPDIR", temporary->path().c_str(), 1);
    }
    if (serve) show(stderr, "the live page is {}\n", start_page_server(request.folder, *serve));
    SearchProgress progress(quiet, request.budget_seconds);
    std::int64_t began = wall_ns();
    TuneAnswer answer = tune(
        request, {.on_trial = [&](int number,
                                  const Tried& tried) { progress.line(trial_line(number, tried)); },
                  .on_line = [&](const std::string& text) { progress.line(text); },
                  .on_working = [&](const std::string& what,
                                    double seconds) { progress.working(what, seconds); }});
    if (answer.search.baseline) {
        std::filesystem::path page = request.folder / "report.html";
        write_page(request, answer, began, page);
        progress.line(fmt::format("the page of this search: {}", page.string()));
    }
    return answer;
}

}  // namespace saturate
