// SPDX-License-Identifier: Apache-2.0
#include "config/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"

namespace saturate {

namespace {

using enum Convention;

std::optional<bool> parse_flag(std::string_view text) {
    std::string word = lower(text);
    if (word == "true" || word == "yes" || word == "on") return true;
    if (word == "false" || word == "no" || word == "off") return false;
    return std::nullopt;
}

bool is_left_alone(std::string_view text) {
    std::string word = lower(text);
    return word.empty() || word == "auto" || word == "null" || word == "none" || word == "~" ||
           text == "???" || text.find("${") != std::string_view::npos ||
           text.find("{{") != std::string_view::npos;
}

std::string range_text(const SettingInfo& info) {
    const char* kind = info.kind == Kind::number ? "a number" : "a whole number";
    return fmt::format("{} from {} to {}", kind, info.least, info.most);
}

// All names for the types of mixed precision, over all dialects.
std::optional<Precision> parse_precision_type(std::string_view text) {
    std::string word = lower(text);
    if (word.find("bf16") != std::string::npos || word == "bfloat16") return Precision::bf16;
    static const char* kOff[] = {"none",    "off", "no",      "false",       "fp32",
                                 "float32", "32",  "32-true", "optimwrapper"};
    if (std::ranges::find(kOff, word) != std::end(kOff)) return Precision::fp32;
    static const char* kHalf[] = {"fp16",     "float16", "half",     "16",
                                  "16-mixed", "16-true", "amp_fp16", "amp"};
    if (std::ranges::find(kHalf, word) != std::end(kHalf)) return Precision::fp16;
    return std::nullopt;
}

class SettingReader {
  public:
    SettingReader(const Document& document, const Dialect& dialect)
        : document_(document), dialect_(dialect) {}

    std::vector<Value> values;
    std::vector<Warning> warnings;
    std::vector<Problem> problems;
    std::vector<std::string> notes;

    void read(const Alias& alias, const Found& found) {
        const Node& node = *document_.resolve(*found.node);
        Value value{.setting = alias.setting,
                    .convention = alias.convention,
                    .path = found.path,
                    .prefix = found.path.size() - alias.key.size(),
                    .place = node.place.line > 0 ? node.place : found.member->place,
                    .text = node.text,
                    .quoted = node.quoted,
                    .type = scalar_type(node.text, node.quoted, document_.format())};
        const SettingInfo& info = info_of(alias.setting);
        if (node.kind == Node::Kind::map) return;  // a section with that name
        if (node.kind == Node::Kind::sequence) {
            if (info.kind == Kind::word) return;
            if (info.kind != Kind::size) {
                // In a user's own loop a list is a grid to search. Ours has --grid for that.
                if (dialect_.is_ours())
                    wrong(value, "a list",
                          info.kind == Kind::flag ? "true or false" : range_text(info));
                return;
            }
            for (const Node& item : node.items) {
                auto number = number_of(document_.resolve(item)->text);
                if (!number) return wrong(value, in_quotes(item.text), "a list of whole numbers");
                value.numbers.push_back(*number);
            }
            if (value.numbers.empty())
                return wrong(value, "an empty list", "a list of whole numbers");
            value.left_alone = !dialect_.is_ours();  // a list stays unchanged
        } else if (node.tagged) {
            leave(value, "a tag says how to read it");
        } else if (info.kind != Kind::precision && is_left_alone(node.text)) {
            value.left_alone = true;
        } else {
            read_scalar(info, value);
        }
        values.push_back(std::move(value));
    }

  private:
    [[nodiscard]] std::optional<double> number_of(std::string_view text) const {
        return scalar_number(text, document_.format());
    }

    void leave(Value& value, const std::string& why) {
        value.left_alone = true;
        value.numbers.clear();
        notes.push_back(fmt::format("{} is {}: {}", path_text(value.path),
                                    value.text.empty() ? "a list" : in_quotes(value.text), why));
    }

    void wrong(Value& value, const std::string& found, const std::string& expected,
               const std::string& fix = "") {
        // Another program may accept the value.
        if (!dialect_.is_ours()) return leave(value, "not " + expected);
        problems.push_back({.where = value.place,
                            .found = fmt::format("{} is {}", path_text(value.path), found),
                            .expected = expected,
                            .fix = fix});
    }

    void read_scalar(const SettingInfo& info, Value& value) {
        switch (info.kind) {
            case Kind::whole:
            case Kind::number:
            case Kind::size:
                return read_number(info, value);
            case Kind::flag:
                return read_flag(value);
            case Kind::compile:
                value.flag = parse_flag(value.text).value_or(true);
                return;
            case Kind::precision:
                return read_precision(value);
            case Kind::word:
                return;
        }
    }

    void read_number(const SettingInfo& info, Value& value) {
        auto number = number_of(value.text);
        if (value.convention == unit_text || value.convention == tokens ||
            value.convention == by_epoch) {
            value.left_alone = true;
            return;
        }
        // ultralytics: -1 is automatic, a fraction is a share of memory.
        if (value.convention == ultralytics && number &&
            (*number == -1 || (*number > 0 && *number < 1))) {
            value.left_alone = true;
            return;
        }
        bool whole = info.kind != Kind::number;
        bool fits = number && std::isfinite(*number) && *number >= info.least &&
                    *number <= info.most && (!whole || *number == std::floor(*number));
        // Other programs give -1 and 0 their own meanings ("never", "off").
        if (!fits && number && !dialect_.is_ours() && (*number == -1 || *number == 0)) {
            value.left_alone = true;
            return;
        }
        if (!fits) {
            return wrong(value, in_quotes(value.text), range_text(info),
                         info.default_text.empty()
                             ? ""
                             : fmt::format("{}: {}", value.path.back(), info.default_text));
        }
        value.numbers = {*number};
    }

    void read_flag(Value& value) {
        value.flag = parse_flag(value.text);
        if (value.convention == hf_optim) value.flag = lower(value.text).ends_with("_fused");
        if (value.convention == word_fused) value.flag = lower(value.text) == "fused";
        if (value.convention == word_mode) value.flag = lower(value.text) != "none";
        if (value.text == "0" || value.text == "1") value.flag = value.text == "1";
        if (!value.flag)
            return wrong(value, in_quotes(value.text), "true or false",
                         fmt::format("{}: true", value.path.back()));
        if (value.quoted && value.convention == none) {
            warnings.push_back(
                {value.place,
                 fmt::format("{} is {}, a word and not a boolean: a program that tests it sees "
                             "true, whatever it says",
                             path_text(value.path), in_quotes(value.text)),
                 fmt::format("{}: {}", value.path.back(), *value.flag ? "true" : "false")});
        }
    }

    void read_precision(Value& value) {
        value.flag = parse_flag(value.text);
        value.precision = parse_precision_type(value.text);
        bool is_switch = value.convention == boolean || value.convention == boolean_bf16 ||
                         value.convention == boolean_fp16;
        if (value.convention == boolean_bf16 && value.flag == true)
            value.precision = Precision::bf16;
        if (value.convention == boolean_fp16 && value.flag == true)
            value.precision = Precision::fp16;
        if (value.convention == amp_wrapper) value.flag = lower(value.text) == "ampoptimwrapper";
        std::string word = lower(value.text);
        bool is_open = word == "auto" || word == "null" || word.empty() || word == "~" ||
                       value.text == "???" || value.text.find("${") != std::string::npos ||
                       value.text.find("{{") != std::string::npos;
        if (is_open) {
            value.left_alone = true;
            return;
        }
        // bf16-true stores the weights in bf16: mixed precision would double their memory.
        if (!dialect_.is_ours() && word.ends_with("-true") && word != "32-true")
            return leave(value, "the weights themselves are in this type");
        if (value.flag == false) value.precision = Precision::fp32;
        if (!value.flag && !value.precision) {
            wrong(value, in_quotes(value.text),
                  is_switch ? "true or false" : "true, bf16, fp16, none or off",
                  fmt::format("{}: bf16", value.path.back()));
        }
    }

    const Document& document_;
    const Dialect& dialect_;
};

// The sections that our own files may use to group settings.
bool is_section(std::string_view key) {
    static const char* kSections[] = {"model",   "train",   "training",   "loader",    "dataloader",
                                      "data",    "dataset", "optim",      "optimizer", "log",
                                      "logging", "eval",    "checkpoint", "hardware"};
    return std::ranges::find(kSections, key) != std::end(kSections);
}

void check_known(const Node& map, const Dialect& dialect, const Document& document, bool is_root,
                 std::vector<Problem>& problems) {
    std::vector<std::string> names;
    for (const Alias& alias : dialect.aliases) names.push_back(alias.key.back());
    for (const Member& member : map.members) {
        const Node& value = *document.resolve(member.value);
        if (value.kind == Node::Kind::map && is_root && is_section(lower(member.key))) {
            check_known(value, dialect, document, false, problems);
            continue;
        }
        if (std::ranges::find(names, lower(member.key)) != names.end()) continue;
        Problem problem{.where = member.place,
                        .found = fmt::format("no setting {}", in_quotes(member.key)),
                        .expected = "a name of docs/settings.md"};
        if (auto meant = closest(member.key, names))
            problem.fix = fmt::format("did you mean {}?", *meant);
        problems.push_back(problem);
    }
}

}  // namespace

Settings Settings::read(const Document& document, const Dialect* dialect) {
    Settings out;
    out.dialect_ = dialect ? dialect : &recognise_dialect(document);
    bool forgiving = out.dialect_->is_ours() || out.dialect_->name == "plain";
    SettingReader reader(document, *out.dialect_);
    std::set<KeyPath> seen;
    KeyIndex index(document, forgiving);
    DialectKeys keys(index, *out.dialect_);
    for (const Alias& alias : out.dialect_->aliases) {
        for (const Found& found : keys.find(alias)) {
            if (!seen.insert(found.path).second) continue;
            reader.read(alias, found);
        }
    }
    if (out.dialect_->is_ours())
        check_known(document.root(), *out.dialect_, document, true, reader.problems);
    if (auto second = document.second_document()) {
        if (out.dialect_->is_ours())
            reader.problems.push_back(
                {.where = *second,
                 .found = "a second document begins here",
                 .expected = "one document in the file",
                 .fix = "keep one of them, or write each to a file of its own"});
        else
            reader.notes.push_back(
                fmt::format("line {} begins a second document: the keys of all are merged, and the "
                            "first of each name counts",
                            second->line));
    }
    if (!reader.problems.empty()) {
        std::ranges::stable_sort(reader.problems, {}, [](const Problem& p) {
            return std::pair(p.where.line, p.where.column);
        });
        throw UserError(reader.problems);
    }
    std::size_t capitals = 0;
    for (const Value& value : reader.values) {
        const std::string& key = value.path.back();
        capitals += std::ranges::any_of(key, [](char c) { return c >= 'a' && c <= 'z'; }) ? 0 : 1;
    }
    out.upper_case_ = forgiving && capitals * 2 > reader.values.size();
    out.values_ = std::move(reader.values);
    out.warnings_ = std::move(reader.warnings);
    out.notes_ = std::move(reader.notes);
    return out;
}

bool Settings::is_training() const {
    if (dialect_->is_ours() || dialect_->name != "plain") return true;
    std::set<Setting> strong, weak;
    for (const Value& value : values_) {
        // Names that have meanings outside of training too.
        static const std::set<std::string> kEverywhere = {
            "workers", "batch", "cache", "compile", "seed",          "data",    "prefetch",
            "bs",      "job",   "fused", "optim",   "deterministic", "threads", "benchmark"};
        bool is_model = info_of(value.setting).level == Level::model;
        bool is_common = kEverywhere.contains(lower(value.path.back())) || is_model;
        (is_common ? weak : strong).insert(value.setting);
    }
    return !strong.empty() || weak.size() >= 3;
}

const Value* Settings::get(Setting setting) const {
    auto found = std::ranges::find(values_, setting, &Value::setting);
    return found == values_.end() ? nullptr : &*found;
}

std::optional<double> Settings::number(Setting setting) const {
    const Value* value = get(setting);
    if (!value || value->numbers.empty()) return std::nullopt;
    return value->numbers[0];
}

std::optional<bool> Settings::flag(Setting setting) const {
    const Value* value = get(setting);
    return value ? value->flag : std::nullopt;
}

std::string Settings::word(Setting setting) const {
    const Value* value = get(setting);
    return value && !value->left_alone ? lower(value->text) : "";
}

std::optional<PrecisionWish> Settings::precision() const {
    std::optional<PrecisionWish> wish;
    for (const Value& value : values_) {
        if (value.setting != Setting::precision || value.left_alone) continue;
        if (!wish) wish = PrecisionWish{};
        // The type next to a switch (amp_dtype next to amp) counts only if the switch is on.
        bool names_type_only = value.convention == torch_dtype && wish->on == false &&
                               dialect_->name != "torchtitan" &&
                               dialect_->name != "torchtitan_toml";
        bool is_on = value.flag.value_or(false) ||
                     (value.precision && *value.precision != Precision::fp32 && !names_type_only);
        wish->on = wish->on || is_on;
        if (is_on && value.precision && *value.precision != Precision::fp32)
            wish->type = value.precision;
        if (value.convention == torch_dtype && wish->on) wish->type = value.precision;
    }
    return wish;
}

}  // namespace saturate
