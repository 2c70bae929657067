// SPDX-License-Identifier: Apache-2.0
#include "project/fix_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace saturate {

namespace {

Json place_json(const SourcePlace& place) {
    return Json::object(
        {{"file", place.file}, {"line", place.line > 0 ? Json(place.line) : Json()}});
}

Json or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

std::string_view result_name(FixResult result) {
    static constexpr std::string_view kNames[] = {
        "not tried",  "kept",         "no gain",          "slower", "not proven",
        "not needed", "not in force", "changed training", "failed"};
    return kNames[static_cast<std::size_t>(result)];
}

FixOutcome FixAnswer::outcome(const FixProposal& proposal) const {
    auto found = outcomes.find(proposal.id);
    return found == outcomes.end() ? FixOutcome{} : found->second;
}

std::vector<std::string> FixAnswer::untried() const {
    std::vector<std::string> out;
    if (batch_lacks_time) out.emplace_back("batch_size");
    for (const FixProposal& proposal : plan.proposals) {
        FixOutcome now = outcome(proposal);
        if (now.lacks_time && now.result == FixResult::not_tried &&
            std::ranges::find(out, proposal.setting) == out.end())
            out.push_back(proposal.setting);
    }
    return out;
}

bool FixAnswer::has_training() const {
    return !facts.loops.empty() || std::ranges::any_of(facts.calls, [](const FactCall& call) {
        return call.kind == "loader" || call.kind == "trainer" || call.kind == "arguments";
    });
}

namespace {

std::vector<const FactWait*> waits_of(const ProjectFacts& facts, bool implicit) {
    std::vector<const FactWait*> out;
    std::set<std::pair<std::string, int>> seen;
    for (const FactWait& wait : facts.waits) {
        if (!wait.is_said() || (wait.kind == "sync_implicit") != implicit) continue;
        if (seen.emplace(wait.file, wait.line).second) out.push_back(&wait);
    }
    return out;
}

}  // namespace

std::vector<const FactWait*> said_waits(const ProjectFacts& facts) {
    return waits_of(facts, false);
}

std::vector<const FactWait*> possible_waits(const ProjectFacts& facts) {
    return waits_of(facts, true);
}

std::vector<const FactWithoutEffect*> said_without_effect(const ProjectFacts& facts) {
    std::vector<const FactWithoutEffect*> out;
    for (const FactWithoutEffect& one : facts.without_effect)
        if (one.certainty != Certainty::unknown) out.push_back(&one);
    return out;
}

std::string wait_words(const FactWait& wait) {
    std::string use = wait.what == "synchronize"     ? "waits for all work on the GPU"
                      : wait.kind == "sync_control"  ? "read to decide what happens next"
                      : wait.kind == "sync_dead"     ? "read, and nothing uses it"
                      : wait.kind == "metric_cpu"    ? "copied to the CPU and used there"
                      : wait.kind == "metric_step"   ? "a metric of every batch"
                      : wait.what == "if"            ? "read to decide what happens next"
                      : wait.kind == "sync_implicit" ? "given to code that may read it"
                      : wait.use == "unknown"        ? "read by the CPU"
                                                     : "read for logging";
    if (wait.when == "branch") use += ", in some steps";
    return use;
}

std::string place_in(const std::filesystem::path& folder, const std::string& where) {
    constexpr std::string_view kTop = " (<module>)";
    std::error_code error;
    std::string own = std::filesystem::canonical(folder, error).string() + "/";
    std::string_view out = where;
    if (out.starts_with(own)) out.remove_prefix(own.size());
    if (out.ends_with(kTop)) out.remove_suffix(kTop.size());
    return std::string(out);
}

std::vector<WatchedRead> watched_reads(const Json& python, const std::filesystem::path& folder) {
    std::vector<WatchedRead> out;
    auto steps = static_cast<double>(python["reads_steps"].integer().value_or(0));
    if (steps <= 0) return out;
    std::error_code error;
    std::filesystem::path own = std::filesystem::canonical(folder, error);
    for (const Json& read : python["reads"].items()) {
        if (read["waits"].integer().value_or(0) <= 0) continue;
        std::filesystem::path file = read["site"]["file"].string().value_or("");
        if (file.is_absolute()) {
            std::filesystem::path below = file.lexically_relative(own);
            if (!below.empty() && *below.begin() != "..") file = below;
        }
        constexpr double kEvery = 0.9;  // share of the steps; the first may be missing
        out.push_back({file.string(), static_cast<int>(read["site"]["line"].integer().value_or(0)),
                       read["call"].string().value_or(""),
                       static_cast<double>(read["steps"].integer().value_or(0)) >= kEvery * steps,
                       read["ns"].number().value_or(0) / 1e6 / steps});
    }
    return out;
}

namespace {

// The loaders and optimizers that the source makes, with their places.
Json made_json(const ProjectFacts& facts, std::string_view kind) {
    Json out = Json::array();
    auto add = [&](const SourcePlace& place, const std::string& name, const std::string& role,
                   bool is_in_force) {
        Json entry = place_json(place);
        entry.set("name", name);
        if (kind == "loader") entry.set("role", role);
        entry.set("in_force", is_in_force);
        out.add(entry);
    };
    for (const FactCall& call : facts.calls)
        if (call.kind == kind) add(call, call.callee, call.role, true);
    for (const FactAlternative& other : facts.alternatives)
        if (other.kind == kind) add(other, other.callee, other.role, false);
    return out;
}

Json loops_json(const ProjectFacts& facts) {
    Json out = Json::array();
    for (const FactLoop& loop : facts.loops) {
        Json entry = place_json(loop);
        entry.set("kind", loop.kind);
        out.add(entry);
    }
    return out;
}

}  // namespace

Json to_json(const FixAnswer& answer) {
    const ProjectFacts& facts = answer.facts;
    Json files = Json::array(), configs = Json::array(), unread = Json::array();
    for (const FactSource& file : facts.files) {
        if (file.problem.empty())
            files.add(file.file);
        else
            unread.add(
                Json::object({{"file", file.file},
                              {"line", file.problem_line > 0 ? Json(file.problem_line) : Json()},
                              {"why", file.problem}}));
    }
    for (const FactConfig& config : facts.configs) configs.add(config.file);

    Json without_effect = Json::array(), waits = Json::array(), may_wait = Json::array(),
         proposals = Json::array(), refused = Json::array(), above = Json::array();
    for (const FactWithoutEffect* one : said_without_effect(facts)) {
        Json entry = place_json(*one);
        entry.set("setting", one->setting);
        entry.set("kind", one->kind);
        entry.set("why", one->why);
        entry.set("instead", or_null(one->instead));
        without_effect.add(entry);
    }
    auto wait_json = [](const FactWait* wait) {
        Json entry = place_json(*wait);
        std::string what = wait->value_text.empty() ? wait->what : wait->value_text;
        entry.set("what", fmt::format("{}: {}", what, wait_words(*wait)));
        entry.set("per_step", wait->when == "step");
        entry.set("evidence", "read");
        return entry;
    };
    // A watched read replaces the wait that reading found at the same place.
    auto is_at = [](const SourcePlace& place, const WatchedRead& read) {
        return place.file == read.file && place.line == read.line;
    };
    for (const FactWait* wait : said_waits(facts)) {
        bool is_watched = std::ranges::any_of(
            answer.watched, [&](const WatchedRead& read) { return is_at(*wait, read); });
        if (!is_watched) waits.add(wait_json(wait));
    }
    for (const WatchedRead& read : answer.watched) {
        std::string what = read.what;
        for (const FactWait& wait : facts.waits)
            if (is_at(wait, read)) what = fmt::format("{}: {}", wait.value_text, wait_words(wait));
        waits.add(Json::object({{"file", read.file},
                                {"line", read.line},
                                {"what", what},
                                {"per_step", read.per_step},
                                {"ms_per_step", read.ms_per_step},
                                {"evidence", "watched"}}));
    }
    for (const FactWait* wait : possible_waits(facts)) may_wait.add(wait_json(wait));
    auto proposal_json = [&](const FixProposal& proposal) {
        Json entry = Json::object({{"id", proposal.id}});
        entry.set("file", proposal.at.file);
        entry.set("line", proposal.at.line > 0 ? Json(proposal.at.line) : Json());
        entry.set("setting", proposal.setting);
        entry.set("level", level_name(proposal.level));
        entry.set("before", or_null(proposal.before));
        entry.set("after", proposal.after);
        entry.set("reason", proposal.reason);
        entry.set("expected", proposal.expected);
        FixOutcome outcome = answer.outcome(proposal);
        entry.set("outcome", std::string(result_name(outcome.result)));
        entry.set("measured", outcome.ratio);
        if (!outcome.note.empty()) entry.set("note", outcome.note);
        return entry;
    };
    for (const FixProposal& proposal : answer.plan.proposals)
        proposals.add(proposal_json(proposal));
    for (const FixProposal& proposal : answer.plan.above_level) above.add(proposal_json(proposal));
    for (const FixRefusal& refusal : answer.plan.refused) {
        Json entry = place_json(refusal.at);
        entry.set("setting", refusal.setting);
        entry.set("why", refusal.why);
        refused.add(entry);
    }
    std::string script = facts.script.empty() ? facts.module_name : facts.script;
    return Json::object(
        {{"schema", 1},
         {"project", Json::object({{"script", script},
                                   {"python", facts.python},
                                   {"files", files},
                                   {"configs", configs},
                                   {"unread", unread},
                                   {"frameworks", Json::array_of(facts.frameworks)}})},
         {"without_effect", without_effect},
         {"loaders", made_json(facts, "loader")},
         {"optimizers", made_json(facts, "optimizer")},
         {"loops", loops_json(facts)},
         {"waits", waits},
         {"may_wait", may_wait},
         {"level", level_name(answer.level)},
         {"proposals", proposals},
         {"above_level", above},
         {"refused", refused},
         {"limits", Json::array_of(facts.limits)},
         {"untried", Json::array_of(answer.untried())},
         {"longer_budget", or_null(answer.longer)},
         {"patch", or_null(answer.patch_file)},
         {"proof", Json()},
         {"loss_guard", Json()},
         {"baseline", Json()}});
}

}  // namespace saturate
