// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "arguments.h"
#include "base/error.h"
#include "base/json.h"
#include "base/output_file.h"
#include "base/text.h"
#include "commands.h"
#include "exit_code.h"
#include "pipeline/make_data.h"
#include "progress.h"
#include "show.h"

namespace saturate {

namespace {

MakeDataSettings data_settings(const Arguments& arguments) {
    const std::vector<std::string>& words = arguments.operands;
    if (words.size() != 2 || words[0] != "make") {
        throw UserError(
            {.found = words.empty() || words == std::vector<std::string>{"make"}
                          ? std::string("data make needs the name of a job")
                          : fmt::format("{}: unexpected argument {}", "data",
                                        in_quotes(join(words, " "))),
             .expected = "saturate data make JOB; JOB is one of " + join(jobs_with_data(), ", "),
             .fix = "saturate data make classifier"});
    }
    MakeDataSettings settings{.job = words[1],
                              .out = output_folder(arguments.text("--output").value_or("")),
                              .samples = arguments.whole("--samples", 1, 100'000'000).value_or(0)};
    settings.seed =
        static_cast<std::uint64_t>(*arguments.whole("--seed", 0, 9'000'000'000'000'000));
    return settings;
}

}  // namespace

int cmd_data(const Arguments& arguments) {
    std::optional<Progress> progress(std::in_place);
    MadeData made = make_data(data_settings(arguments), [&](std::int64_t done, std::int64_t all) {
        progress->at(
            fmt::format("{}/{}", done, all),
            static_cast<double>(done) / static_cast<double>(std::max<std::int64_t>(all, 1)));
    });
    progress.reset();
    if (arguments.has("--json")) {
        fmt::print("{}\n", Json::object({{"schema", 1},
                                         {"path", made.path.string()},
                                         {"training", made.training},
                                         {"validation", made.validation},
                                         {"bytes", made.bytes},
                                         {"layout", made.layout}})
                               .pretty());
        return kDone;
    }
    bool is_table = made.validation == 0;
    show(stdout, "{}: {}, {}\n  {}\n", made.path.string(),
         is_table ? fmt::format("{} rows", made.training)
                  : fmt::format("{} pictures to train with, {} to validate with", made.training,
                                made.validation),
         bytes_text(made.bytes), made.layout);
    return kDone;
}

}  // namespace saturate
