// SPDX-License-Identifier: Apache-2.0
#include "project/planner.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "remedies/catalogue.h"

namespace saturate {

namespace {

bool is_config(const FactDeclaration& declaration) {
    return declaration.kind == "yaml" || declaration.kind == "json" || declaration.kind == "toml";
}

// The declaration that sets the value: the only one, or the configuration's if the source has a
// default for it. Null if several could.
const FactDeclaration* deciding(const ProjectFacts& facts, const std::vector<FlowSource>& sources,
                                FlowSource& by) {
    const FactDeclaration* found = nullptr;
    int configs = 0;
    for (const FlowSource& source : sources) {
        const FactDeclaration* one = facts.declaration(source.declaration);
        if (!one) return nullptr;
        configs += is_config(*one);
        if (sources.size() > 1 && !is_config(*one)) continue;
        found = one;
        by = source;
    }
    return sources.size() > 1 && configs != 1 ? nullptr : found;
}

// True if a comment in the source contains this word. Ignores blanks in the comment.
bool has_comment_with(const std::string& source, const std::string& word) {
    std::size_t at = 0;
    while ((at = source.find('#', at)) != std::string::npos) {
        std::size_t end = std::min(source.find('\n', at), source.size());
        std::string comment = source.substr(at, end - at);
        std::erase(comment, ' ');
        if (comment.find(word) != std::string::npos) return true;
        at = end;
    }
    return false;
}

std::string config_literal(const Json& value) {
    if (auto flag = value.boolean()) return *flag ? "true" : "false";
    return value.string().value_or(value.line());
}

}  // namespace

std::string python_literal(const Json& value) {
    if (auto flag = value.boolean()) return *flag ? "True" : "False";
    if (value.is_null()) return "None";
    return value.line();
}

KnownValue Planner::value(const FactCall& call, std::string_view name) const {
    KnownValue out = value_read(call, name);
    if (out.state != KnownValue::State::unknown) return out;
    const WatchedLoader* seen = machine.watched.loader(call.id);
    if (!seen || seen->values[std::string(name)].is_null()) return out;
    // What only a condition brings in was brought in if the run had this very value.
    bool is_other = !out.from.empty() && out.literal.line() != seen->values[std::string(name)].line();
    if (is_other) out.from.clear();
    out.state = KnownValue::State::known;
    out.literal = seen->values[std::string(name)];
    out.is_watched = true;
    return out;
}

KnownValue Planner::value_read(const FactCall& call, std::string_view name) const {
    using enum KnownValue::State;
    const FactArgument* argument = call.argument(name);
    if (!argument) {
        const FactSpreadKey* key = call.spread_key(name);
        if (!key) return {.state = call.may_hold(name) ? unknown : absent};
        const FactDeclaration* declared = facts.declaration(key->declaration);
        if (!declared || !declared->value || declared->value->literal.is_null())
            return {.state = unknown, .text = key->spread};
        return {key->is_maybe ? unknown : known, declared->value->literal, key->spread,
                declared->setting};
    }
    if (!argument->literal.is_null()) return {known, argument->literal, argument->text, ""};
    FlowSource by;
    const FactDeclaration* declared = deciding(facts, argument->sources, by);
    KnownValue out{.state = unknown, .text = argument->text};
    // The user's command sets this value: we do not change it, nor a value computed from it.
    if (!declared || (by.is_derived && !declared->given)) return out;
    out.from = declared->setting;
    if (declared->given) {
        try {
            out.literal = Json::parse(*declared->given, "the command");
        } catch (const UserError&) {  // a plain word, not JSON
            out.literal = Json(*declared->given);
        }
        out.state = known;
    } else if (declared->value && !declared->value->literal.is_null() &&
               by.certainty == Certainty::certain && declared->writes.empty()) {
        out.literal = declared->value->literal;
        out.state = known;
    }
    return out;
}

std::variant<ValueChange, std::string> Planner::change_declared(
    const std::vector<FlowSource>& sources, const Json& value) const {
    FlowSource by;
    const FactDeclaration* declared = deciding(facts, sources, by);
    if (!declared)
        return sources.empty() ? std::string("the sources do not show where its value comes from")
                               : std::string("its value comes from several places");
    if (by.is_derived && !declared->given)
        return fmt::format("its value is computed from {} ({})", declared->setting,
                           declared->place().text());
    if (by.certainty != Certainty::certain)
        return fmt::format("it seems to come from {} ({}), but that is not certain",
                           declared->setting, declared->place().text());
    if (declared->given && declared->given->empty())  // a flag
        return fmt::format("your command has {}: change it there", declared->setting);
    if (declared->given)
        return fmt::format("your command sets {} to {}: change it there", declared->setting,
                           *declared->given);
    if (!declared->writes.empty())
        return fmt::format("{} is set again at {}", declared->setting,
                           declared->writes[0].place().text());
    ValueChange out{.at = *declared};
    if (!declared->value) {
        // An option without a default gets a default.
        if (declared->kind != "option")
            return fmt::format("{} has no value at {}", declared->setting,
                               declared->place().text());
        out.after = python_literal(value);
        out.edits.push_back(
            {declared->file,
             SourceEdit{SourceEdit::Kind::keyword, declared->span, "default", out.after},
             {}});
        return out;
    }
    if (declared->value->literal.is_null() && declared->value->type != "none")
        return fmt::format("{} is computed at {}", declared->setting, declared->place().text());
    out.before = declared->value->text;
    if (declared->value->line > 0) out.at.line = declared->value->line;
    if (is_config(*declared)) {
        out.after = config_literal(value);
        out.edits.push_back({declared->file, {}, Edit{declared->keys, out.after, ""}});
        return out;
    }
    out.after = python_literal(value);
    out.edits.push_back(
        {declared->file,
         SourceEdit{SourceEdit::Kind::expression, declared->value->span, "", out.after},
         {}});
    return out;
}

bool Planner::is_given(const std::vector<FlowSource>& sources) const {
    return std::ranges::any_of(sources, [&](const FlowSource& source) {
        const FactDeclaration* declared = facts.declaration(source.declaration);
        return declared && declared->given;
    });
}

std::variant<ValueChange, std::string> Planner::change(const FactCall& call,
                                                       const std::string& name, const Json& value,
                                                       const std::string& text) const {
    if (const FactArgument* argument = call.argument(name)) {
        std::string after = python_literal(value);
        if (call.config) return change_declared(argument->sources, value);
        if (argument->literal.is_null() && argument->type != "none") {
            auto declared = change_declared(argument->sources, value);
            // Edit at the call itself, if a run showed the value in force there.
            bool is_here = !std::holds_alternative<ValueChange>(declared) &&
                           machine.watched.loader(call.id) && facts.file(call.file) &&
                           !is_given(argument->sources);
            if (!is_here) return declared;
        }
        if (!text.empty()) after = text;
        ValueChange out{.at = call, .before = argument->text, .after = after};
        if (argument->line > 0) out.at.line = argument->line;
        out.edits.push_back(
            {call.file,
             SourceEdit{SourceEdit::Kind::expression, argument->span, "", out.after},
             {}});
        return out;
    }
    if (const FactSpreadKey* key = call.spread_key(name)) {
        KnownValue now = this->value(call, name);
        if (key->is_maybe && (now.state != KnownValue::State::known || now.from.empty()))
            return fmt::format("{} comes in only under a condition ({})", name, key->place().text());
        return change_declared({{key->declaration, Certainty::certain}}, value);
    }
    return add_expression(call, name, python_literal(value));
}

std::variant<ValueChange, std::string> Planner::add_expression(const FactCall& call,
                                                               const std::string& name,
                                                               const std::string& text) const {
    if (call.argument(name)) return fmt::format("{} is already given", name);
    if (call.may_hold(name))
        return fmt::format("{} may already contain {}", call.spreads.front().text, name);
    if (call.config) return add_key(call, name, text);
    if (!call.may_insert) return std::string("there is no safe place for another argument");
    if (has_comment_with(this->text(call.file, call.span), name + "="))
        return fmt::format("{} is commented out in this call, so you may have had a reason", name);
    ValueChange out{.at = call, .after = text};
    out.edits.push_back(
        {call.file, SourceEdit{SourceEdit::Kind::keyword, call.span, name, text}, {}});
    return out;
}

std::variant<ValueChange, std::string> Planner::add_key(const FactCall& call,
                                                        const std::string& name,
                                                        const std::string& text) {
    bool is_word = text == "True" || text == "False";
    bool is_quoted = text.size() > 1 && text.front() == '"' && text.back() == '"';
    if (!is_word && !is_quoted && text.find_first_not_of("0123456789") != std::string::npos)
        return fmt::format("a configuration cannot hold {}", text);
    ValueChange out{.at = call, .after = text};
    if (is_word) out.after = lower(text);
    if (is_quoted) out.after = text.substr(1, text.size() - 2);
    Edit edit{*call.config, out.after, ""};
    edit.path.push_back(name);
    out.edits.push_back({call.file, {}, edit});
    return out;
}

std::optional<std::string> Planner::torch_in(const std::string& file,
                                             std::vector<FileEdit>& edits) const {
    const FactSource* source = facts.file(file);
    if (!source) return std::nullopt;
    if (!source->torch.empty()) return source->torch;
    if (!source->after_imports) return std::nullopt;
    edits.push_back(
        {file,
         SourceEdit{SourceEdit::Kind::after, *source->after_imports, "", "import torch"},
         {}});
    return "torch";
}

std::string Planner::text(const std::string& file, ByteSpan span) const {
    std::string all = read_if_there(question_.folder / file);
    return span.end <= all.size() ? all.substr(span.begin, span.end - span.begin) : "";
}

// Lightning's Trainer(accelerator="cpu"), TrainingArguments(use_cpu=True).
const FactCall* Planner::cpu_trainer() const {
    for (const FactCall& call : facts.calls) {
        if (call.kind != "trainer" && call.kind != "arguments") continue;
        if (value(call, "accelerator").literal.string() == "cpu" ||
            value(call, "use_cpu").is(true) || value(call, "no_cuda").is(true))
            return &call;
    }
    return nullptr;
}

void Planner::propose(FixProposal proposal) {
    const Remedy* remedy = find_remedy(proposal.setting);
    SATURATE_CHECK(remedy, "what is proposed is in the catalogue");
    const FactCall* on_cpu =
        remedy->for_gpu || proposal.setting == "precision" ? cpu_trainer() : nullptr;
    if (on_cpu) {
        refuse(proposal.at, proposal.setting,
               fmt::format("the program trains on the CPU, so nothing here would use a GPU ({})",
                           on_cpu->place().text()));
        return;
    }
    for (const FileEdit& edit : proposal.edits) {
        if (!std::filesystem::path(edit.file).is_absolute()) continue;
        refuse(proposal.at, proposal.setting,
               fmt::format("{} is outside of the folder you started in, and only files below that "
                           "are changed",
                           edit.file));
        return;
    }
    // Several calls may take their value from one place: the change of it is one proposal, of a call
    // that the watched run made, if there is one.
    for (FixProposal& known : plan_.proposals) {
        if (known.setting != proposal.setting || known.edits != proposal.edits) continue;
        shared_.push_back({proposal.setting, proposal.call, known.edits});
        if (machine.watched.unseen.contains(known.call)) {
            shared_.push_back({known.setting, known.call, known.edits});
            known.call = proposal.call;
        }
        return;
    }
    proposal.level = std::max(proposal.level, remedy->level());
    if (proposal.expected.empty()) proposal.expected = remedy->expect;
    proposal.apply = remedy->shim.name;
    if (remedy->shim.has_value) proposal.apply += fmt::format("={}", proposal.after);
    proposal.id = proposal.setting;
    for (int n = 2; !ids_.insert(proposal.id).second; ++n)
        proposal.id = fmt::format("{}-{}", proposal.setting, n);
    (proposal.level > question_.level ? plan_.above_level : plan_.proposals)
        .push_back(std::move(proposal));
}

void Planner::refuse(const SourcePlace& at, const std::string& setting, const std::string& why) {
    bool is_known = std::ranges::any_of(plan_.refused, [&](const FixRefusal& refusal) {
        return refusal.setting == setting && refusal.at.file == at.file &&
               refusal.at.line == at.line;
    });
    if (!is_known) plan_.refused.push_back({at, setting, why});
}

bool Planner::is_forbidden(const SourcePlace& at, const std::string& setting, int call) {
    const FactTrap* trap = facts.trap(setting, call);
    if (!trap) return false;
    std::string why = trap->why;
    if (trap->line > 0 && (trap->file != at.file || trap->line != at.line))
        why += fmt::format(" ({})", trap->place().text());
    refuse(at, setting, why);
    return true;
}

bool Planner::is_proposed(std::string_view setting, int call) const {
    return !edits_of(setting, call).empty();
}

bool Planner::is_proposed(std::string_view setting) const {
    return std::ranges::any_of(
        plan_.proposals, [&](const FixProposal& proposal) { return proposal.setting == setting; });
}

std::vector<FileEdit> Planner::edits_of(std::string_view setting, int call) const {
    for (const FixProposal& proposal : plan_.proposals)
        if (proposal.setting == setting && proposal.call == call) return proposal.edits;
    for (const SharedEdits& shared : shared_)
        if (shared.setting == setting && shared.call == call) return shared.edits;
    return {};
}

FixPlan plan_fixes(const ProjectFacts& facts, const FixMachine& machine,
                   const FixQuestion& question) {
    Planner planner(facts, machine, question);
    propose_loader(planner);
    propose_reads(planner);
    propose_optimizer(planner);
    propose_precision(planner);
    propose_model(planner);
    propose_frameworks(planner);
    propose_threads(planner);
    propose_intervals(planner);
    return planner.take();
}

}  // namespace saturate
