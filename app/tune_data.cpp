// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "config/settings.h"
#include "pipeline/make_data.h"
#include "show.h"
#include "tune_show.h"

namespace saturate {

namespace fs = std::filesystem;

void make_missing_data(const std::string& config, bool quiet) {
    Document document = Document::read(config);
    Settings settings = Settings::read(document);
    std::string job = settings.word(Setting::job);
    std::vector<std::string> jobs = jobs_with_data();
    const Value* value = settings.get(Setting::data);
    if (!value || std::ranges::find(jobs, job) == jobs.end()) return;
    fs::path path = value->text;
    fs::path beside = fs::path(config).parent_path() / path;
    if (path != usual_data_path(job) || fs::exists(path) || fs::exists(beside)) return;
    if (!quiet)
        show(stderr, "{} does not exist yet: making it, like saturate data make {}\n",
             path.string(), job);
    MadeData made = make_data({.job = job}, [](std::int64_t, std::int64_t) {});
    if (!quiet)
        show(stderr, "{}: {} samples, {}\n", made.path.string(), made.training + made.validation,
             bytes_text(made.bytes));
}

}  // namespace saturate
