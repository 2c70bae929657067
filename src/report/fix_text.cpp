// SPDX-License-Identifier: Apache-2.0
#include "report/fix_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"

namespace saturate {

namespace {

constexpr std::size_t kShown = 12;  // of a list, unless --all is given
constexpr std::size_t kTextWidth = 100;

class FixText {
  public:
    explicit FixText(const FixTextSettings& settings) : settings_(settings) {}

    void title(const std::string& text) {
        out_ += settings_.colour ? fmt::format("\n\x1b[1m{}\x1b[0m\n", text)
                                 : fmt::format("\n{}\n", text);
    }
    void line(const std::string& text) { out_ += text + "\n"; }
    // Adds indented text, wrapped to a readable width.
    void wrapped(std::size_t indent, const std::string& text) {
        if (!settings_.is_broken) {
            line(std::string(indent, ' ') + text);
            return;
        }
        std::string now(indent, ' ');
        std::size_t width = indent;
        for (std::string_view word : split(text, ' ')) {
            std::size_t size = display_width(word);
            if (width > indent && width + 1 + size > kTextWidth) {
                out_ += now + "\n";
                now = std::string(indent, ' ');
                width = indent;
            }
            if (width > indent) now += ' ', ++width;
            now += word;
            width += size;
        }
        out_ += now + "\n";
    }
    void add(const std::string& text) { out_ += text; }
    // Returns how many entries of a list are shown; rest() says how many are not.
    std::size_t shown(std::size_t count) const {
        return settings_.all ? count : std::min(count, kShown);
    }
    void rest(std::size_t count, const char* what) {
        if (count > shown(count))
            line(fmt::format("  ... and {} {} (--all)", count - shown(count), what));
    }
    [[nodiscard]] std::string strong(const std::string& text) const {
        return settings_.colour ? fmt::format("\x1b[36m{}\x1b[0m", text) : text;
    }
    [[nodiscard]] std::string bold(const std::string& text) const {
        return settings_.colour ? fmt::format("\x1b[1m{}\x1b[0m", text) : text;
    }
    [[nodiscard]] std::string faint(const std::string& text) const {
        return settings_.colour ? fmt::format("\x1b[2m{}\x1b[0m", text) : text;
    }
    [[nodiscard]] std::string take() { return std::move(out_); }

  private:
    FixTextSettings settings_;
    std::string out_;
};

// Shortens a piece of source text to one line.
std::string shortened(const std::string& source) {
    std::string out = in_quotes(source, 48);
    return out.size() > 2 ? out.substr(1, out.size() - 2) : out;
}

const char* level_words(Level level) {
    switch (level) {
        case Level::safe:
            return "safe (only the time changes)";
        case Level::numerics:
            return "numerics (rounding changes)";
        default:
            return "training (how the model is trained changes)";
    }
}

// Joins places: "solver.py:81, 82; main.py:4".
std::string places_text(const std::vector<SourcePlace>& places) {
    std::string out, file;
    for (const SourcePlace& place : places) {
        if (place.file == file && place.line > 0)
            out += fmt::format(", {}", place.line);
        else
            out += fmt::format("{}{}", out.empty() ? "" : "; ", place.place().text());
        file = place.file;
    }
    return out;
}

// Returns a readable name for changes that are not settings of docs/settings.md.
std::string setting_words(const std::string& setting) {
    return setting == "reads" ? "value read in every step" : setting;
}

std::string count_of(std::size_t count, const char* one, const char* many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
}

void add_project(FixText& page, const FixAnswer& answer, bool was_run) {
    const ProjectFacts& facts = answer.facts;
    std::size_t sources = 0;
    std::vector<std::string> configs;
    for (const FactSource& file : facts.files) sources += file.problem.empty();
    for (const FactConfig& config : facts.configs) configs.push_back(config.file);
    std::string text = facts.script.empty() ? facts.module_name : facts.script;
    if (sources > 1)
        text += fmt::format(" and {} file{} it uses", sources - 1, sources == 2 ? "" : "s");
    constexpr std::size_t kShown = 3;
    std::size_t more = configs.size() > kShown + 1 ? configs.size() - kShown : 0;
    configs.resize(configs.size() - more);
    if (!configs.empty()) text += fmt::format("; configuration {}", join(configs, ", "));
    if (more > 0) text += fmt::format(" and {} more", more);
    page.line(fmt::format("{} {}", page.bold(text),
                          page.faint(fmt::format("(read with Python {}{})", facts.python,
                                                 was_run ? "" : "; your code was not run"))));
    for (const FactSource& file : facts.files) {
        if (!file.problem.empty())
            page.line(fmt::format("  not read: {}: {}", Place{file.file, file.problem_line}.text(),
                                  file.problem));
    }
}

// Adds the answer in one line.
void add_summary(FixText& page, const FixAnswer& answer, bool was_run, bool on_gpu) {
    std::vector<std::string> parts;
    if (std::size_t waits = said_waits(answer.facts).size(); waits > 0 && on_gpu)
        parts.push_back(count_of(waits, "place waits for the GPU in every step",
                                 "places wait for the GPU in every step"));
    if (std::size_t dead = said_without_effect(answer.facts).size())
        parts.push_back(count_of(dead, "setting has no effect", "settings have no effect"));
    if (std::size_t changes = answer.plan.proposals.size(); changes > 0 && !was_run)
        parts.push_back(count_of(changes, "change to try", "changes to try"));
    if (!parts.empty()) page.line(join(parts, ", "));
}

void add_waits(FixText& page, const ProjectFacts& facts, bool on_gpu) {
    std::vector<const FactWait*> waits = said_waits(facts), possible = possible_waits(facts);
    auto add = [&](const std::string& title, const std::vector<const FactWait*>& places) {
        if (places.empty()) return;
        page.title(title);
        std::size_t width = 0;
        for (const FactWait* wait : places) width = std::max(width, wait->place().text().size());
        for (std::size_t i = 0; i < page.shown(places.size()); ++i) {
            const FactWait& wait = *places[i];
            std::string what = wait.value_text.empty() ? wait.what : wait.value_text;
            page.line(fmt::format("  {}  {}: {}",
                                  page.strong(pad_right(wait.place().text(), width)),
                                  shortened(what), wait_words(wait)));
        }
        page.rest(places.size(), "more places");
    };
    if (on_gpu) {
        add("The program waits for the GPU here, in every step", waits);
        add("The program may wait for the GPU here, in every step", possible);
        return;
    }
    waits.insert(waits.end(), possible.begin(), possible.end());
    add("On a GPU the program would wait for it here, in every step", waits);
}

void add_without_effect(FixText& page, const ProjectFacts& facts) {
    std::vector<const FactWithoutEffect*> all = said_without_effect(facts);
    if (all.empty()) return;
    page.title("Settings that have no effect");
    for (std::size_t i = 0; i < page.shown(all.size()); ++i) {
        const FactWithoutEffect& one = *all[i];
        page.line(
            fmt::format("  {}  {} ({})", page.strong(one.place().text()), one.setting, one.kind));
        std::string why = one.why;
        std::string at = one.at && one.at->line > 0 ? one.at->place().text() : "";
        if (!at.empty() && why.find(at) == std::string::npos) why += fmt::format(" ({})", at);
        page.wrapped(6, why);
        if (!one.instead.empty()) page.wrapped(6, fmt::format("instead: {}", one.instead));
    }
    page.rest(all.size(), "more");
}

std::string measured_text(const FixOutcome& outcome) {
    if (!outcome.ratio)
        return outcome.note.empty()
                   ? fmt::format("measured: {}", result_name(outcome.result))
                   : fmt::format("measured: {} ({})", result_name(outcome.result), outcome.note);
    double percent = 100 * (*outcome.ratio - 1);
    return outcome.note.empty()
               ? fmt::format("measured: {}, {:+.0f} %", result_name(outcome.result), percent)
               : fmt::format("measured: {}, {:+.0f} % ({})", result_name(outcome.result), percent,
                             outcome.note);
}

// One line of the list: the same change in several places.
struct Group {
    const FixProposal* first;
    std::vector<SourcePlace> places;
};

bool has_been_tried(const FixAnswer& answer, const FixProposal& proposal) {
    return answer.outcome(proposal).result != FixResult::not_tried;
}

std::vector<Group> grouped(const FixAnswer& answer, Level level, bool was_run) {
    std::vector<Group> out;
    for (const FixProposal& proposal : answer.plan.proposals) {
        if (proposal.level != level || (was_run && !has_been_tried(answer, proposal))) continue;
        auto alike = std::ranges::find_if(out, [&](const Group& group) {
            const FixProposal& first = *group.first;
            return !was_run && first.setting == proposal.setting &&
                   first.before == proposal.before && first.after == proposal.after &&
                   first.reason == proposal.reason;
        });
        if (alike == out.end())
            out.push_back({&proposal, {proposal.at}});
        else
            alike->places.push_back(proposal.at);
    }
    return out;
}

std::string change_words(const FixProposal& proposal) {
    return proposal.before.empty()
               ? proposal.after
               : fmt::format("{} -> {}", shortened(proposal.before), proposal.after);
}

// Lists the changes that the run showed not to be worth a trial, grouped by reason.
void add_not_tried(FixText& page, const FixAnswer& answer) {
    std::vector<std::pair<std::string, std::vector<const FixProposal*>>> all;
    for (const FixProposal& proposal : answer.plan.proposals) {
        if (has_been_tried(answer, proposal)) continue;
        std::string why = answer.outcome(proposal).note;
        auto alike = std::ranges::find(all, why, &decltype(all)::value_type::first);
        if (alike == all.end()) alike = all.insert(all.end(), {why, {}});
        alike->second.push_back(&proposal);
    }
    if (all.empty()) return;
    page.title("Not tried, and why");
    for (const auto& [why, proposals] : all) {
        page.wrapped(2, fmt::format("{}:", why.empty() ? "there was no time for it" : why));
        for (const FixProposal* proposal : proposals)
            page.line(fmt::format("      {}  {}: {}", page.strong(proposal->at.place().text()),
                                  page.bold(proposal->setting), change_words(*proposal)));
    }
}

void add_proposals(FixText& page, const FixAnswer& answer, bool was_run) {
    for (Level level : {Level::safe, Level::numerics, Level::training}) {
        std::vector<Group> all = grouped(answer, level, was_run);
        if (all.empty()) continue;
        page.title(was_run ? fmt::format("Changes that were tried, {}", level_words(level))
                           : fmt::format("Changes to try, {}", level_words(level)));
        for (const Group& group : all) {
            const FixProposal& proposal = *group.first;
            page.line(fmt::format("  {}  {}: {}", page.strong(places_text(group.places)),
                                  page.bold(proposal.setting), change_words(proposal)));
            page.wrapped(6, fmt::format("{}.", proposal.reason));
            if (was_run)
                page.wrapped(6, measured_text(answer.outcome(proposal)));
            else
                page.wrapped(6, fmt::format("expect: {}", proposal.expected));
        }
    }
    if (was_run) add_not_tried(page, answer);
    if (!answer.plan.above_level.empty()) {
        Level next = Level::model;
        for (const FixProposal& proposal : answer.plan.above_level)
            next = std::min(next, proposal.level);
        page.line("");
        page.line(fmt::format("{} more with --level {}", answer.plan.above_level.size(),
                              level_name(next)));
    }
}

void add_refused(FixText& page, const FixAnswer& answer) {
    // Group by reason: one reason often applies to many places, or to several settings.
    struct Reason {
        std::string why;
        std::vector<std::string> settings;
        std::vector<SourcePlace> places;
    };
    std::vector<Reason> all;
    for (const FixRefusal& refusal : answer.plan.refused) {
        auto alike = std::ranges::find(all, refusal.why, &Reason::why);
        if (alike == all.end()) alike = all.insert(all.end(), {refusal.why, {}, {}});
        std::string setting(setting_words(refusal.setting));
        if (std::ranges::find(alike->settings, setting) == alike->settings.end())
            alike->settings.push_back(setting);
        bool is_new = std::ranges::none_of(alike->places, [&](const SourcePlace& place) {
            return place.place().text() == refusal.at.place().text();
        });
        if (is_new) alike->places.push_back(refusal.at);
    }
    if (all.empty()) return;
    page.title("Left alone, and why");
    for (std::size_t i = 0; i < page.shown(all.size()); ++i) {
        const Reason& one = all[i];
        page.line(fmt::format("  {}  {}", page.strong(places_text(one.places)),
                              page.bold(fmt::format("{}", fmt::join(one.settings, ", ")))));
        page.wrapped(6, fmt::format("{}.", one.why));
    }
    page.rest(all.size(), "more");
}

void add_unknown(FixText& page, const FixAnswer& answer) {
    page.title("Only a run can tell");
    page.line("  how much each change gains, and which of them are worth keeping");
    if (!said_waits(answer.facts).empty())
        page.line("  how long each of the waits takes, and those in code that was not read");
    bool has_loader = std::ranges::any_of(
        answer.facts.calls, [](const FactCall& call) { return call.kind == "loader"; });
    if (has_loader) page.line("  whether batches come too late, and how many workers they need");
    for (const std::string& limit : answer.facts.limits) page.wrapped(2, limit);
}

}  // namespace

std::string fix_text(const FixAnswer& answer, const FixTextSettings& settings) {
    FixText page(settings);
    add_project(page, answer, settings.was_run);
    if (!answer.has_training()) {
        page.add(settings.why);
        page.line("");
        page.line("No training loop, data loader or trainer was found in these files.");
        for (const std::string& limit : answer.facts.limits) page.wrapped(2, limit);
        return page.take();
    }
    add_summary(page, answer, settings.was_run, settings.on_gpu);
    page.add(settings.why);
    add_waits(page, answer.facts, settings.on_gpu);
    add_without_effect(page, answer.facts);
    add_proposals(page, answer, settings.was_run);
    add_refused(page, answer);
    if (!settings.was_run) add_unknown(page, answer);
    if (!settings.next.empty()) {
        page.line("");
        page.line(answer.plan.proposals.empty() ? "Nothing to change was found by reading."
                                                : settings.next);
        return page.take();
    }
    std::string patch = answer.patch.text();
    if (patch.empty()) {
        page.line("");
        bool has_tried = std::ranges::any_of(
            answer.plan.proposals,
            [&](const FixProposal& proposal) { return has_been_tried(answer, proposal); });
        page.line(!settings.was_run          ? "Nothing to change was found by reading."
                  : has_tried                ? "Nothing that was tried is proven to be faster."
                  : answer.is_interrupted    ? "It was interrupted before anything could be tried."
                  : answer.untried().empty() ? "Nothing was worth a trial here."
                                             : "Nothing could be tried within the budget.");
        return page.take();
    }
    page.title(
        answer.patch_file.empty()
            ? std::string("The patch")
            : fmt::format("The patch: git apply {0}, or patch -p1 < {0}", answer.patch_file));
    page.add(patch);
    return page.take();
}

}  // namespace saturate
