// SPDX-License-Identifier: Apache-2.0
#include "remedies/advisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace saturate {

namespace {

using enum Setting;

// The settings next to which a missing one belongs, the best first.
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

bool is_switch(Convention convention) {
    return convention == Convention::boolean || convention == Convention::boolean_bf16 ||
           convention == Convention::boolean_fp16;
}

// True if the value in the file means the same as the wanted text.
bool same_value(const Value& value, const std::string& wanted) {
    if (auto number = parse_number(wanted))
        return !value.numbers.empty() && value.numbers[0] == *number;
    if (value.flag && (wanted == "true" || wanted == "false"))
        return *value.flag == (wanted == "true");
    return lower(value.text) == wanted;
}

}  // namespace

Advisor::Advisor(const Document& document, const Settings& settings, Level level,
                 const KeyReader& reader)
    : document_(document), settings_(settings), level_(level), reader_(reader) {
    advice_.warnings = settings.warnings();
    advice_.notes = settings.notes();
}

std::string Advisor::said(const Value& value, const std::string& wanted) const {
    std::string word = dialect_word(value.setting, value.convention, wanted, value.text);
    // The engine reads booleans and words.
    bool is_ours = settings_.dialect().is_ours();
    if (is_ours && value.setting == precision && value.type == ScalarType::boolean) return word;
    // A boolean only says whether to use it: the program chooses the type of the precision.
    bool is_type = value.setting == precision && value.type == ScalarType::boolean;
    if (is_type) word = word == "none" || word == "false" ? "false" : "true";
    return word.empty() ? "" : in_type_of(value, word, document_.format()).value_or("");
}

std::string Advisor::new_text(Setting setting, const Alias& alias,
                              const std::string& wanted) const {
    std::string word = dialect_word(setting, alias.convention, wanted, "");
    if (word.empty()) return "";
    bool is_literal = scalar_type(word, false, document_.format()) != ScalarType::word;
    bool is_word = info_of(setting).kind == Kind::word || info_of(setting).kind == Kind::precision;
    bool is_bare = is_literal && !(is_word && !is_switch(alias.convention));
    if (info_of(setting).kind == Kind::number && word.find_first_of(".eE") == std::string::npos)
        word += ".0";
    if (is_bare || (document_.format() == Format::yaml && !is_literal)) return word;
    return fmt::format("\"{}\"", word);
}

// The parent of a framework's key: below the prefix of its other keys in this file.
KeyPath Advisor::own_parent(const Alias& alias) const {
    KeyPath parent;
    if (!settings_.values().empty()) {
        const Value& any = settings_.values()[0];
        parent.assign(any.path.begin(), any.path.begin() + static_cast<std::ptrdiff_t>(any.prefix));
    }
    parent.insert(parent.end(), alias.key.begin(), alias.key.end() - 1);
    return parent;
}

std::optional<Edit> Advisor::place_new(Setting setting, const Alias& alias,
                                       const std::string& text) const {
    Edit edit{.value = text};
    std::string key = settings_.upper_case() ? upper(alias.key.back()) : alias.key.back();
    auto place = [&](KeyPath parent, const std::string& behind) -> std::optional<Edit> {
        const Node* map = parent.empty() ? &document_.root() : document_.find(parent);
        // A list or a map that already has this name stays as it is.
        if (!map || map->kind != Node::Kind::map || map->find(key)) return std::nullopt;
        parent.push_back(key);
        edit.path = std::move(parent);
        edit.behind = behind;
        return edit;
    };
    // Puts it after the nearest related key. A key that this advice adds counts too: edits after
    // the same key keep their order.
    for (Setting neighbour : neighbours(setting)) {
        KeyPath path;
        std::string behind;
        if (const Value* value = settings_.get(neighbour)) {
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
        if (is_free() || parent == own_parent(alias)) return place(parent, behind);
    }
    return place(is_free() ? KeyPath{} : own_parent(alias), "");
}

bool Advisor::propose(Setting setting, const Value* value, const Alias& alias,
                      const std::string& text, const Because& because) {
    if (text.empty()) return false;
    Level change_level = because.level.value_or(info_of(setting).level);
    Edit edit{.value = text};
    if (value) {
        edit.path = value->path;
    } else {
        std::optional<Edit> placed = place_new(setting, alias, text);
        if (!placed) return false;
        edit = *placed;
    }
    std::string reason = because.reason;
    if (!value && !settings_.dialect().is_ours()) {
        std::string who = reader_ ? reader_(edit.path) : "";
        if (who.empty()) {
            if (change_level <= level_)
                advice_.additions.push_back({path_text(edit.path), text, change_level, reason});
            return false;
        }
        reason += fmt::format("; {} reads it", who);
    }
    if (change_level > level_) {
        ++above_level_[change_level];
        return false;
    }
    edit.reason = fmt::format(
        "saturate: {}{}",
        value ? fmt::format("was {}; ", value->text.empty() ? "empty" : value->text) : "", reason);
    advice_.changes.push_back({.setting = setting,
                               .edit = edit,
                               .line = value ? value->place.line : 0,
                               .before = value ? value->text : "",
                               .after = text,
                               .level = change_level,
                               .reason = reason,
                               .effect = because.effect});
    return true;
}

bool Advisor::can_write(Setting setting) const {
    const Value* value = settings_.get(setting);
    if (value) return !value->left_alone;
    const Alias* alias = settings_.dialect().alias_of(setting);
    if (!alias) return false;
    std::optional<Edit> placed = place_new(setting, *alias, "0");
    if (!placed) return false;
    return settings_.dialect().is_ours() || (reader_ && !reader_(placed->path).empty());
}

bool Advisor::want(Setting setting, const std::string& wanted, const Because& because) {
    if (setting == precision) return want_precision(wanted, because);
    const Value* value = settings_.get(setting);
    const Alias* alias = settings_.dialect().alias_of(setting);
    if (!alias || (value && (value->left_alone || same_value(*value, wanted)))) return false;
    std::string text = value ? said(*value, wanted) : new_text(setting, *alias, wanted);
    if (value && text.empty()) {
        note(fmt::format("{} stays {}: {} would be of another type", path_text(value->path),
                         value->text, wanted));
        return false;
    }
    return propose(setting, value, *alias, text, because);
}

bool Advisor::want_precision(const std::string& wanted, const Because& because) {
    const Dialect& dialect = settings_.dialect();
    bool any_there = settings_.get(precision) != nullptr, done = false;
    bool is_off = wanted == "none";
    // With two exclusive switches, one is turned off only if the file has the one to turn on.
    auto there = [&](const Alias& alias) {
        const Value* found = nullptr;
        for (const Value& value : settings_.values()) {
            if (value.setting == precision && value.convention == alias.convention &&
                lower(value.path.back()) == lower(alias.key.back()))
                found = &value;
        }
        return found;
    };
    auto is_on_word = [&](const Alias& alias) {
        return is_switch(alias.convention) &&
               dialect_word(precision, alias.convention, wanted, "") == "true";
    };
    bool has_switch = is_off || std::ranges::none_of(dialect.aliases, [&](const Alias& alias) {
                          return alias.setting == precision && is_on_word(alias) && !there(alias);
                      });
    for (const Alias& alias : dialect.aliases) {
        if (alias.setting != precision) continue;
        const Value* value = there(alias);
        if (value && value->left_alone) continue;
        std::string text = value ? said(*value, wanted) : new_text(precision, alias, wanted);
        if (value && lower(value->text) == lower(text)) continue;
        bool turns_off = is_switch(alias.convention) && lower(text) == "false" && !is_off;
        if (value && turns_off && !has_switch) continue;
        if (!value) {
            // A hand-written loop knows many names; one of them is enough.
            bool is_needless =
                is_off || (is_switch(alias.convention) && text == "false") ||
                (any_there && (dialect.is_free() || alias.convention == Convention::torch_dtype));
            if (is_needless) continue;
        }
        if (value && text.empty()) {
            note(fmt::format("{} stays {}: {} would be of another type", path_text(value->path),
                             value->text, wanted));
            continue;
        }
        done = propose(precision, value, alias, text, because) || done;
        if (dialect.is_free() && !value) break;
    }
    return done;
}

void Advisor::remove(const Value& value, const Because& because) {
    Level change_level = because.level.value_or(info_of(value.setting).level);
    if (change_level > level_ || value.left_alone) return;
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

Advice Advisor::take() {
    for (const auto& [skipped, count] : above_level_) {
        note(fmt::format("{} further change{} at level {}: --level {}", count,
                         count == 1 ? "" : "s", level_name(skipped), level_name(skipped)));
    }
    return std::move(advice_);
}

}  // namespace saturate
