// SPDX-License-Identifier: Apache-2.0
#include "remedies/advisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace saturate {

namespace {

using enum Setting;

// Beside which settings a missing one belongs, the best first.
std::vector<Setting> neighbours(Setting setting) {
    switch (setting) {
        case num_workers:
        case prefetch_factor:
        case pin_memory:
        case persistent_workers:
        case non_blocking:
            return {non_blocking,    persistent_workers, pin_memory,
                    prefetch_factor, num_workers,        batch_size};
        case grad_clip:
        case gradient_accumulation_steps:
        case log_interval:
        case eval_interval:
        case checkpoint_interval:
            return {grad_clip,           gradient_accumulation_steps,
                    checkpoint_interval, eval_interval,
                    log_interval,        epochs,
                    batch_size,          learning_rate};
        default:
            return {set_to_none,   fused_optimizer,
                    compile_mode,  compile,
                    channels_last, tf32,
                    precision,     gradient_accumulation_steps,
                    num_workers,   batch_size,
                    learning_rate};
    }
}

std::string number_text(double value, Kind kind) {
    if (kind != Kind::number) return fmt::format("{:.0f}", value);
    return value == std::floor(value) ? fmt::format("{:.1f}", value) : fmt::format("{}", value);
}

// A learning rate in the style of the old one; with a dot, because PyYAML reads "6e-4" as a word.
std::string rate_text(double value, const std::string& old) {
    if (old.find_first_of("eE") == std::string::npos) {
        std::string text = fmt::format("{:.3g}", value);
        if (text.find('e') == std::string::npos) return text;
    }
    std::string text = fmt::format("{:.2e}", value);  // 6.00e-04
    std::size_t exponent = text.find('e');
    std::string digits = text.substr(0, exponent);
    while (digits.back() == '0' && digits[digits.size() - 2] != '.') digits.pop_back();
    return fmt::format("{}e{:+d}", digits,
                       *parse_integer(text.substr(exponent + (text[exponent + 1] == '+' ? 2 : 1))));
}

std::string precision_text(Convention convention, Precision precision) {
    std::string name(precision_name(precision));
    bool off = precision == Precision::fp32;
    switch (convention) {
        case Convention::boolean:
            return off ? "false" : "true";
        case Convention::boolean_bf16:
            return precision == Precision::bf16 ? "true" : "false";
        case Convention::boolean_fp16:
            return precision == Precision::fp16 ? "true" : "false";
        case Convention::no_word:
            return off ? "no" : name;
        case Convention::lightning:
            return off ? "32-true" : precision == Precision::bf16 ? "bf16-mixed" : "16-mixed";
        case Convention::amp_word:
            return off ? "fp32" : "amp_" + name;
        case Convention::torch_dtype:
            return off ? "float32" : precision == Precision::bf16 ? "bfloat16" : "float16";
        case Convention::amp_wrapper:
            return off ? "OptimWrapper" : "AmpOptimWrapper";
        default:
            return off ? "none" : name;
    }
}

bool is_switch(Convention convention) {
    return convention == Convention::boolean || convention == Convention::boolean_bf16 ||
           convention == Convention::boolean_fp16;
}

std::string capitals(std::string text) {
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text;
}

}  // namespace

Advisor::Advisor(const Document& document_, const Settings& settings_, const Target& target_,
                 Level level_)
    : document(document_),
      settings(settings_),
      target(target_),
      level(level_),
      shape(shape_of(settings_)) {
    advice_.warnings = settings.warnings();
}

std::string Advisor::word(const std::string& text, bool was_quoted) const {
    bool needs_quotes = document.format() != Format::yaml || was_quoted;
    // YAML 1.1 readers take a bare no for a truth value.
    needs_quotes = needs_quotes || text == "no";
    return needs_quotes ? fmt::format("\"{}\"", text) : text;
}

std::string Advisor::flag_text(Convention convention, const Value* value, bool wanted) const {
    if (convention == Convention::hf_optim) {
        // Only the one that has a fused twin of the same name.
        if (!value || value->text != "adamw_torch" || !wanted) return "";
        return word("adamw_torch_fused", value->quoted);
    }
    if (convention == Convention::word_fused)
        return word(wanted ? "fused" : "foreach", value && value->quoted);
    if (convention == Convention::timm_compile) return wanted ? word("inductor", false) : "";
    if (convention == Convention::dynamo) return word(wanted ? "INDUCTOR" : "NO", false);
    if (convention == Convention::word_mode) return "";
    bool capital =
        value && !value->text.empty() && (value->text[0] == 'T' || value->text[0] == 'F');
    if (capital && document.format() == Format::yaml) return wanted ? "True" : "False";
    return wanted ? "true" : "false";
}

bool Advisor::may_add(Setting setting) const {
    const Dialect& dialect = settings.dialect();
    if (dialect.is_ours() || dialect.name == "plain") return true;
    // A framework's own default is left alone unless it is known to idle the GPU.
    if (dialect.name == "hf_trainer" && (setting == pin_memory || setting == grad_clip))
        return false;
    static const Setting kWorthAdding[] = {num_workers, persistent_workers, prefetch_factor,
                                           pin_memory,  precision,          tf32};
    return std::ranges::find(kWorthAdding, setting) != std::end(kWorthAdding);
}

// Where a framework's key belongs: below what stands before its names in this file.
KeyPath Advisor::own_parent(const Alias& alias) const {
    KeyPath parent;
    if (!settings.values().empty()) {
        const Value& any = settings.values()[0];
        parent.assign(any.path.begin(), any.path.begin() + static_cast<std::ptrdiff_t>(any.prefix));
    }
    parent.insert(parent.end(), alias.key.begin(), alias.key.end() - 1);
    return parent;
}

std::optional<Edit> Advisor::place_new(Setting setting, const Alias& alias,
                                       const std::string& text) const {
    const Dialect& dialect = settings.dialect();
    bool free_form = dialect.is_ours() || dialect.name == "plain";
    Edit edit{.value = text};
    std::string key = settings.upper_case() ? capitals(alias.key.back()) : alias.key.back();
    // Behind the nearest relative. One that this advice adds counts too: edits behind the same key
    // keep their order.
    for (Setting neighbour : neighbours(setting)) {
        KeyPath path;
        std::string behind;
        if (const Value* value = settings.get(neighbour)) {
            path = value->path;
            behind = path.back();
        }
        for (const Change& change : advice_.changes) {
            if (change.setting != neighbour || !change.before.empty()) continue;
            path = change.edit.path;
            behind = change.edit.behind;
        }
        if (path.empty()) continue;
        KeyPath parent(path.begin(), path.end() - 1);
        if (!free_form && parent != own_parent(alias)) continue;
        edit.path = parent;
        edit.path.push_back(key);
        edit.behind = behind;
        return edit;
    }
    if (free_form) {
        edit.path = {key};
        return edit;
    }
    KeyPath parent = own_parent(alias);
    const Node* map = parent.empty() ? &document.root() : document.find(parent);
    if (map && map->kind == Node::Kind::map) {
        edit.path = parent;
        edit.path.push_back(key);
        return edit;
    }
    // DeepSpeed's bf16.enabled: a section of its own that is not there yet.
    if (setting == precision && alias.key.size() == 2 && document.format() != Format::toml &&
        !document.find({alias.key[0]})) {
        edit.path = {alias.key[0]};
        edit.value = document.format() == Format::json
                         ? fmt::format("{{\"{}\": {}}}", alias.key[1], text)
                         : fmt::format("{{{}: {}}}", alias.key[1], text);
        return edit;
    }
    return std::nullopt;
}

void Advisor::propose(Setting setting, const Value* value, const Alias& alias,
                      const std::string& text, const Because& because) {
    if (text.empty()) return;
    Level change_level = because.level.value_or(info_of(setting).level);
    if (change_level > level) {
        ++above_level_[change_level];
        return;
    }
    Edit edit{.value = text};
    if (value) {
        edit.path = value->path;
    } else {
        std::optional<Edit> placed = place_new(setting, alias, text);
        if (!placed) return;
        edit = *placed;
    }
    edit.reason = fmt::format(
        "saturate: {}{}",
        value ? fmt::format("was {}; ", value->text.empty() ? "empty" : value->text) : "",
        because.reason);
    advice_.changes.push_back({.setting = setting,
                               .edit = edit,
                               .line = value ? value->place.line : 0,
                               .before = value ? value->text : "",
                               .after = text,
                               .level = change_level,
                               .reason = because.reason,
                               .effect = because.effect});
}

void Advisor::want(Setting setting, bool wanted, const Because& because) {
    const Value* value = settings.get(setting);
    const Alias* alias = settings.dialect().alias_of(setting);
    if (!alias || (value && value->left_alone && !value->text.empty())) return;
    if (value && value->flag == wanted) return;
    if (!value && !may_add(setting)) return;
    std::size_t before = advice_.changes.size();
    propose(setting, value, *alias,
            flag_text(value ? value->convention : alias->convention, value, wanted), because);
    if (advice_.changes.size() > before) flags_[setting] = wanted;
}

void Advisor::want(Setting setting, double wanted, const Because& because) {
    const Value* value = settings.get(setting);
    const Alias* alias = settings.dialect().alias_of(setting);
    if (!alias || (value && value->left_alone)) return;
    if (value && !value->numbers.empty() && value->numbers[0] == wanted) return;
    if (!value && !may_add(setting)) return;
    std::string text = setting == learning_rate && value
                           ? rate_text(wanted, value->text)
                           : number_text(wanted, info_of(setting).kind);
    std::size_t before = advice_.changes.size();
    propose(setting, value, *alias, text, because);
    if (advice_.changes.size() > before) numbers_[setting] = wanted;
}

void Advisor::want_word(Setting setting, const std::string& wanted, const Because& because) {
    const Value* value = settings.get(setting);
    const Alias* alias = settings.dialect().alias_of(setting);
    if (!alias || (value && value->left_alone) || (value && lower(value->text) == wanted)) return;
    if (!value && !may_add(setting)) return;
    propose(setting, value, *alias, word(wanted, value && value->quoted), because);
}

void Advisor::want_precision(Precision wanted, const Because& because) {
    const Dialect& dialect = settings.dialect();
    bool any_there = settings.get(precision) != nullptr;
    for (const Alias& alias : dialect.aliases) {
        if (alias.setting != precision) continue;
        const Value* value = nullptr;
        for (const Value& candidate : settings.values()) {
            if (candidate.setting == precision && candidate.convention == alias.convention &&
                lower(candidate.path.back()) == lower(alias.key.back()))
                value = &candidate;
        }
        std::string text = precision_text(alias.convention, wanted);
        if (value && (value->left_alone || lower(value->text) == text)) continue;
        bool free_form = dialect.is_ours() || dialect.name == "plain";
        if (!value) {
            // Of the many names in a hand-written loop one is enough; of two exclusive switches the
            // one to set.
            if (free_form && any_there) continue;
            if (is_switch(alias.convention) && text == "false") continue;
            if (alias.convention == Convention::torch_dtype && wanted == Precision::fp32) continue;
            if (wanted == Precision::fp32 || !may_add(precision)) continue;
        }
        // A hand-written word such as `amp: true` is read as a word by the loops that idle: say the
        // type.
        bool bare = is_switch(alias.convention);
        propose(precision, value, alias,
                bare ? flag_text(Convention::boolean, value, text == "true")
                     : word(text, value && value->quoted),
                because);
        if (free_form && !value) return;
    }
}

void Advisor::remove(const Value& value, const Because& because) {
    Level change_level = because.level.value_or(info_of(value.setting).level);
    if (change_level > level) return;
    advice_.changes.push_back({.setting = value.setting,
                               .edit = {.path = value.path, .remove = true},
                               .line = value.place.line,
                               .before = value.text,
                               .after = "",
                               .level = change_level,
                               .reason = because.reason,
                               .effect = because.effect});
}

void Advisor::warn(const Value& value, std::string what, std::string fix) {
    advice_.warnings.push_back(
        {value.place, fmt::format("{}: {}", path_text(value.path), what), std::move(fix)});
}

void Advisor::note(std::string text) { advice_.notes.push_back(std::move(text)); }

std::optional<double> Advisor::number(Setting setting) const {
    auto found = numbers_.find(setting);
    return found != numbers_.end() ? found->second : settings.number(setting);
}

std::optional<bool> Advisor::flag(Setting setting) const {
    auto found = flags_.find(setting);
    return found != flags_.end() ? found->second : settings.flag(setting);
}

Advice Advisor::take() {
    std::vector<std::string> added;
    for (const Change& change : advice_.changes) {
        if (change.before.empty()) added.push_back(path_text(change.edit.path));
    }
    if (settings.dialect().name == "plain" && !added.empty()) {
        note(fmt::format("new keys count only if your program reads them: {}", join(added, ", ")));
    }
    for (const auto& [skipped, count] : above_level_) {
        note(fmt::format("{} further change{} at level {}: --level {}", count,
                         count == 1 ? "" : "s", level_name(skipped), level_name(skipped)));
    }
    return std::move(advice_);
}

}  // namespace saturate
