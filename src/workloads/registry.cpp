// SPDX-License-Identifier: Apache-2.0
#include "workloads/registry.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace saturate {

void JobRegistry::add(const std::string& name, JobMaker maker) { makers_[name] = std::move(maker); }

std::vector<std::string> JobRegistry::names() const {
    std::vector<std::string> out;
    for (const auto& [name, maker] : makers_) out.push_back(name);
    return out;
}

std::unique_ptr<Job> JobRegistry::make(const std::string& name, const Settings& settings) const {
    auto found = makers_.find(name);
    if (found != makers_.end()) return found->second(settings);
    const Value* job = settings.get(Setting::job);
    Problem problem{.where = job ? job->place : Place{},
                    .found = name.empty() ? "no job: setting says what to train"
                                          : fmt::format("unknown job {}", in_quotes(name)),
                    .expected = join(names(), ", ")};
    if (auto meant = closest(name, names())) problem.fix = fmt::format("job: {}", *meant);
    throw UserError(problem);
}

// Each is in the file of its job; the other facts about a job are its row in
// config/reference_jobs.cpp.
std::unique_ptr<Job> make_classifier(const Settings& settings);
std::unique_ptr<Job> make_locator(const Settings& settings);
std::unique_ptr<Job> make_restoration(const Settings& settings);
std::unique_ptr<Job> make_scripted(const Settings& settings);
std::unique_ptr<Job> make_sequence(const Settings& settings);
std::unique_ptr<Job> make_tiny_mlp(const Settings& settings);
std::unique_ptr<Job> make_window_cnn(const Settings& settings);

JobRegistry reference_jobs() {
    JobRegistry registry;
    registry.add("classifier", make_classifier);
    registry.add("locator", make_locator);
    registry.add("restoration", make_restoration);
    registry.add("sequence", make_sequence);
    registry.add("tiny_mlp", make_tiny_mlp);
    registry.add("torchscript", make_scripted);
    registry.add("window_cnn", make_window_cnn);
    return registry;
}

}  // namespace saturate
