// SPDX-License-Identifier: Apache-2.0
#include "fix_show.h"

#include "base/file.h"
#include "base/text.h"
#include "report/fix_html.h"
#include "report/fix_run_text.h"
#include "report/fix_text.h"
#include "report/tuning_text.h"
#include "show.h"

namespace saturate {

namespace {

constexpr std::size_t kManyFiles = 100;

Json baseline_json(const FixTrials& tried) {
    if (!tried.baseline.samples_per_second) return {};
    const Rate& rate = *tried.baseline.samples_per_second;
    Json findings = Json::array();
    for (const Finding& finding : tried.findings) {
        findings.add(Json::object({{"id", finding.id},
                                   {"name", std::string(finding.name())},
                                   {"share_percent", finding.share_percent},
                                   {"evidence", finding.evidence},
                                   {"where", finding.where.empty() ? Json() : Json(finding.where)},
                                   {"fix", finding.fix_text()}}));
    }
    return Json::object(
        {{"samples_per_second", rate.per_second},
         {"busy_percent", rate.device_busy_share ? Json(100 * *rate.device_busy_share) : Json()},
         {"input_wait_percent", 100 * rate.input_wait_share},
         {"step_ms", 1e3 * rate.step_seconds},
         {"findings", findings}});
}

Json curve_json(const LossCurve& curve) {
    Json out = Json::array();
    for (const LossPoint& point : curve)
        out.add(Json::array({Json(point.samples), Json(point.loss)}));
    return out;
}

void show_notes(const FixTrials& tried) {
    if (!tried.busy.empty()) show(stdout, "note: {}\n", tried.busy);
    if (!tried.unguarded.empty()) show(stdout, "note: {}\n", tried.unguarded);
    if (!tried.outside.empty())
        show(stdout, "note: your job writes outside its folder, and so do the trials: {}\n",
             join(tried.outside, ", "));
    if (tried.files_made.count >= kManyFiles)
        show(stdout,
             "note: your job made {} files, most of them in {}; trials leave none behind, so "
             "each one makes them again. If they are data, let your script make them once "
             "beforehand\n",
             tried.files_made.count, tried.files_made.folder);
}

}  // namespace

Json fix_json(const TriedFix& fix) {
    const FixTrials& tried = fix.tried;
    Json json = to_json(fix.answer);
    json.set("baseline", baseline_json(tried));
    if (tried.proof) {
        json.set("proof", to_json(*tried.proof));
        json.set("loss_guard", tried.proof->loss_guard);
    }
    json.set("trials", tried.trials);
    json.set("seconds", tried.seconds);
    json.set("written_outside", Json::array_of(tried.outside));
    json.set("losses", Json::object({{"before", curve_json(tried.losses_before)},
                                     {"after", curve_json(tried.losses_after)}}));
    json.set("report", fix.page.string());
    return json;
}

std::string fix_page(const TriedFix& fix) {
    const FixTrials& tried = fix.tried;
    return fix_html({.answer = fix.answer,
                     .command = fix.command,
                     .baseline = tried.baseline.samples_per_second,
                     .findings = tried.findings,
                     .proof = fix.proof(),
                     .losses_before = tried.losses_before,
                     .losses_after = tried.losses_after,
                     .trials = tried.trials,
                     .seconds = tried.seconds,
                     .busy = tried.busy,
                     .with_more_time = fix.with_more_time,
                     .language = shown_language()});
}

void show_fix(const TriedFix& fix, bool all) {
    const FixTrials& tried = fix.tried;
    const auto& rate = tried.baseline.samples_per_second;
    show(stdout, "{}",
         fix_text(fix.answer, {.colour = wants_coloured_words(stdout),
                               .is_broken = has_broken_lines(stdout),
                               .all = all,
                               .was_run = true,
                               .on_gpu = tried.is_on_gpu,
                               .why = rate ? fix_why_text(*rate, tried.findings) : ""}));
    if (tried.proof) show(stdout, "\n{}", proof_text(*tried.proof));
    if (tried.baseline.ok())
        show(stdout, "\nYour job: {}. {} run{} in {:.0f} s; page: {}\n",
             fix_verdict(fix.answer, fix.proof()), tried.trials, tried.trials == 1 ? "" : "s",
             tried.seconds, fix.page.string());
    show(stdout, "{}", fix.with_more_time);
    show_notes(tried);
}

void show_failed_job(const FixTrials& tried, bool has_gpu) {
    std::string log = read_end_if_there(tried.baseline_log, 1 << 20);
    show(stderr, "{}", fix_failure_text(tried.baseline, log, has_gpu));
    bool was_slow = tried.baseline.outcome == TrialOutcome::hang ||
                    tried.baseline.outcome == TrialOutcome::too_slow;
    if (was_slow && !tried.busy.empty()) show(stderr, "note: {}\n", tried.busy);
    show(stderr, "nothing was tried; --dry-run shows what reading alone finds\n");
}

}  // namespace saturate
