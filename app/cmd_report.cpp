// SPDX-License-Identifier: Apache-2.0
// report: shows or compares runs as a page, Markdown or JSON.
#include <fmt/format.h>

#include <filesystem>

#include "arguments.h"
#include "base/error.h"
#include "base/output_file.h"
#include "commands.h"
#include "exit_code.h"
#include "report/run_report.h"
#include "show.h"

namespace saturate {

int cmd_report(const Arguments& arguments) {
    constexpr std::size_t kMostRuns = 8;
    if (arguments.operands.empty() || arguments.operands.size() > kMostRuns) {
        throw UserError({.found = arguments.operands.empty()
                                      ? std::string("no runs to compare")
                                      : fmt::format("{} runs", arguments.operands.size()),
                         .expected = fmt::format("1 to {} folders of run records", kMostRuns),
                         .fix = "saturate report BEFORE AFTER"});
    }
    bool writes = !arguments.has("--json") && !arguments.has("--markdown");
    std::optional<OutputFile> output;
    if (writes) {
        output.emplace(*arguments.text("--output"),
                       OutputRule{.inputs = {arguments.operands.begin(), arguments.operands.end()},
                                  .force = arguments.has("--force")});
    }
    ReportInput input;
    input.language = shown_language();
    for (const std::string& folder : arguments.operands) input.runs.push_back(view_run(folder));
    input.proof = proof_of(arguments.operands);
    std::optional<Regression> slower;
    if (auto limit = arguments.number("--fail-on", 0, 100)) slower = regression(input, *limit);
    int status = slower && slower->fails ? kAnswerIsNo : kDone;
    if (arguments.has("--json")) {
        Json out = report_json(input);
        if (slower) out.set("regression", to_json(*slower));
        fmt::print("{}\n", out.line());
        return status;
    }
    if (slower)
        show(stderr, "{}: {}\n", slower->fails ? "regression" : "no regression", slower->text);
    if (arguments.has("--markdown")) {
        fmt::print("{}", report_markdown(input));
        return status;
    }
    std::string page = report_html(input);
    if (output->is_stdout()) {
        fmt::print("{}", page);
        return kDone;
    }
    output->write(page);
    show(stdout, "{}\nwritten to {} ({} KB)\n", report_verdict(input), output->path().string(),
         (page.size() + 1023) / 1024);
    return status;
}

}  // namespace saturate
