// SPDX-License-Identifier: Apache-2.0
#include "remedies/advise.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "remedies/advisor.h"
#include "remedies/catalogue.h"
#include "remedies/contradictions.h"

namespace saturate {

namespace {

using enum Setting;

bool framework_scales_rate(const Document& document, const Settings& settings) {
    const std::string& name = settings.dialect().name;
    if (name == "ultralytics") return true;  // it accumulates up to nbs
    const Value* rate = settings.get(learning_rate);
    if (rate && rate->convention == Convention::self_scaling) return true;
    const Node* scales = document.find({"auto_scale_lr", "enable"});
    if (name == "mmengine" && scales && lower(scales->text) == "true") return true;
    const Node* world = document.find({"SOLVER", "REFERENCE_WORLD_SIZE"});
    return name == "detectron2" && world && world->text != "0";
}

// Keeps intervals only if they count epochs.
void drop_other_units(Facts& facts, const Settings& settings) {
    for (Setting setting : {eval_interval, checkpoint_interval}) {
        const Value* value = settings.get(setting);
        if (value && value->convention != Convention::epochs)
            facts.now.erase(std::string(info_of(setting).name));
    }
}

// True if the note about an unchanged value is worth showing.
bool is_worth_a_note(Setting setting, const Value& value) {
    return !value.left_alone && (setting == batch_size || setting == precision);
}

// True if the accompanying changes can be written too: no smaller batch without accumulation.
bool can_write_all(const Advisor& advisor, const Settings& settings, const Proposal& proposal) {
    auto needed = proposal.with.find("gradient_accumulation_steps");
    return needed == proposal.with.end() || needed->second == "1" ||
           settings.get(gradient_accumulation_steps) ||
           advisor.can_write(gradient_accumulation_steps);
}

class Adviser {
  public:
    Adviser(const Document& document, const Settings& settings, Facts facts,
            const KeyReader& reader)
        : document_(document),
          settings_(settings),
          facts_(std::move(facts)),
          advisor_(document, settings, facts_.level, reader) {
        add_settings(facts_, settings);
        drop_other_units(facts_, settings);
    }

    Advice advise() {
        for (const Remedy& remedy : remedies()) {
            if (remedy.setting) consider(remedy);
        }
        Advice out = advisor_.take();
        for (Warning& warning : contradictions(document_, settings_, facts_))
            out.warnings.push_back(std::move(warning));
        return out;
    }

  private:
    void consider(const Remedy& remedy) {
        const Value* value = settings_.get(*remedy.setting);
        if (*remedy.setting == learning_rate && framework_scales_rate(document_, settings_)) return;
        Proposal proposal = remedy.propose(facts_);
        if (auto along = along_.find(remedy.name); along != along_.end() && !proposal.value) {
            proposal = along->second;
        }
        bool is_there = value && !value->left_alone;
        if (is_there && !proposal.wrong_now.empty()) warn(*value, proposal);
        if (proposal.remove && is_there) advisor_.remove(*value, {.reason = proposal.reason});
        if (!proposal.value) {
            if (value && is_worth_a_note(*remedy.setting, *value) && says_why(remedy, proposal))
                advisor_.note(fmt::format("{} stays {}: {}", path_text(value->path), value->text,
                                          proposal.reason));
            return;
        }
        // Adds no key for the GPU to a file for a CPU: nothing shows that it would help.
        if (!value && remedy.for_gpu && facts_.on_cpu && !settings_.dialect().is_ours()) return;
        if (!can_write_all(advisor_, settings_, proposal)) {
            advisor_.note(
                fmt::format("{} stays {}: {}, and the file has no key for "
                            "gradient accumulation that would keep the effective batch",
                            path_text(value->path), value->text, proposal.reason));
            return;
        }
        Because because{.reason = proposal.reason, .effect = expectation(remedy, proposal)};
        because.level = proposal.level;
        if (!advisor_.want(*remedy.setting, *proposal.value, because)) return;
        facts_.put(std::string(remedy.name), *proposal.value);
        for (const auto& [name, text] : proposal.with)
            along_[name] = {.value = text,
                            .reason = fmt::format("goes with {}", remedy.name),
                            .level = proposal.level};
    }

    [[nodiscard]] static std::string expectation(const Remedy& remedy, const Proposal& proposal) {
        if (proposal.expect == "-") return "";
        return proposal.expect.empty() ? std::string(remedy.expect) : proposal.expect;
    }

    // A setting that is right needs no explanation.
    [[nodiscard]] bool says_why(const Remedy& remedy, const Proposal&) const {
        if (remedy.setting == precision)
            return facts_.value("precision") == "fp16" && facts_.has_bf16;
        return !facts_.on_cpu;
    }

    void warn(const Value& value, const Proposal& proposal) {
        std::string fix;
        if (proposal.value) {
            std::string text = advisor_.said(value, *proposal.value);
            if (!text.empty()) fix = fmt::format("{}: {}", value.path.back(), text);
        } else if (value.flag == true) {
            fix = fmt::format("{}: {}", value.path.back(), advisor_.said(value, "false"));
        } else {
            fix = proposal.fix;
        }
        advisor_.warn(value, proposal.wrong_now, fix);
    }

    const Document& document_;
    const Settings& settings_;
    Facts facts_;
    Advisor advisor_;
    std::map<std::string, Proposal, std::less<>> along_;  // by the row they wait for
};

}  // namespace

Advice advise(const Document& document, const Settings& settings, Facts facts,
              const KeyReader& reader) {
    return Adviser(document, settings, std::move(facts), reader).advise();
}

Advice advise_values(const Document& document, const Settings& settings,
                     const std::vector<FoundValue>& values, const KeyReader& reader) {
    Advisor advisor(document, settings, Level::model, reader);
    Assignment there = values_in_force(settings);
    for (const FoundValue& found : values) {
        std::string name(info_of(found.setting).name);
        bool is_equal = there.contains(name) && lower(there[name]) == lower(found.value);
        if (is_equal || advisor.want(found.setting, found.value, {found.reason, found.effect}))
            continue;
        const Value* value = settings.get(found.setting);
        if (!value)
            advisor.note(
                fmt::format("{} {}: the file has no key for it that is read", name, found.value));
        else if (value->left_alone)
            advisor.note(fmt::format("{} {}: the file says {}", name, found.value, value->text));
    }
    return advisor.take();
}

std::string apply_changes(const Document& document, Advice& advice) {
    // If two changes have the same key, the first counts: measured values come before estimates.
    std::set<KeyPath> seen;
    std::erase_if(advice.changes,
                  [&](const Change& change) { return !seen.insert(change.edit.path).second; });
    std::vector<Edit> edits;
    for (const Change& change : advice.changes) edits.push_back(change.edit);
    try {
        return apply_edits(document, edits);
    } catch (const UserError&) {
        // One of the edits is impossible: check them one by one.
    }
    std::vector<Change> possible;
    edits.clear();
    for (const Change& change : advice.changes) {
        std::optional<Problem> problem = check_edit(document, change.edit);
        if (!problem) {
            possible.push_back(change);
            edits.push_back(change.edit);
            continue;
        }
        advice.warnings.push_back(
            {problem->where,
             fmt::format("{}: {} is not written, because {}", path_text(change.edit.path),
                         change.after, problem->found),
             problem->fix});
    }
    advice.changes = possible;
    return apply_edits(document, edits);
}

}  // namespace saturate
