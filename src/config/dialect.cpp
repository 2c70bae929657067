// SPDX-License-Identifier: Apache-2.0
#include "config/dialect.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/csv.h"
#include "base/text.h"
#include "config/framework.h"
#include "config/reference_jobs.h"

namespace saturate {

std::string_view embedded_aliases();  // the text of src/config/aliases.csv

namespace {

using enum Convention;

constexpr std::string_view kFramework = "framework";

const std::vector<CsvRow>& alias_rows() {
    static const std::vector<CsvRow> kRows =
        parse_csv(embedded_aliases(), "src/config/aliases.csv");
    return kRows;
}

const std::map<std::string_view, Convention>& conventions() {
    static const std::map<std::string_view, Convention> kConventions = {
        {"", none},
        {"epochs", epochs},
        {"steps", steps},
        {"by-epoch", by_epoch},
        {"unit-text", unit_text},
        {"tokens", tokens},
        {"total", total},
        {"nominal", nominal},
        {"ultralytics", ultralytics},
        {"per-rank", per_rank},
        {"self-scaling", self_scaling},
        {"bool", boolean},
        {"bool-bf16", boolean_bf16},
        {"bool-fp16", boolean_fp16},
        {"word", word},
        {"no-word", no_word},
        {"lightning", lightning},
        {"amp-word", amp_word},
        {"torch-dtype", torch_dtype},
        {"amp-wrapper", amp_wrapper},
        {"hf-optim", hf_optim},
        {"word-fused", word_fused},
        {"word-mode", word_mode},
        {"timm-compile", timm_compile},
        {"dynamo", dynamo},
    };
    return kConventions;
}

KeyPath path_of(std::string_view dotted) {
    KeyPath path;
    for (std::string_view key : split(dotted, '.')) path.emplace_back(key);
    return path;
}

// Our own names, which hand-written loops use too.
std::vector<Alias> canonical_aliases() {
    std::vector<Alias> out;
    for (const SettingInfo& info : schema()) {
        Convention convention = none;
        if (info.id == Setting::precision) convention = word;
        if (info.id == Setting::eval_interval || info.id == Setting::checkpoint_interval)
            convention = epochs;
        out.push_back({info.id, {std::string(info.name)}, convention});
    }
    return out;
}

std::vector<Dialect> read_dialects() {
    std::vector<Dialect> out{{.name = "saturate", .aliases = canonical_aliases()},
                             {.name = "plain", .aliases = canonical_aliases()}};
    std::erase_if(out[1].aliases, [](const Alias& a) { return is_for_train_only(a.setting); });
    for (const CsvRow& row : alias_rows()) {
        const std::string& name = row.at("dialect");
        auto dialect = std::ranges::find(out, name, &Dialect::name);
        if (dialect == out.end()) dialect = out.insert(out.end(), Dialect{.name = name});
        if (row.at("canonical") == kFramework) continue;
        if (row.at("canonical") == "marker") {
            dialect->markers.push_back(path_of(row.at("key")));
            continue;
        }
        const SettingInfo* info = find_setting(row.at("canonical"));
        auto convention = conventions().find(row.at("convention"));
        SATURATE_CHECK(info && convention != conventions().end(),
                       fmt::format("aliases.csv: {} of {} is in the schema", row.at("key"), name));
        dialect->aliases.push_back({info->id, path_of(row.at("key")), convention->second});
        // Our own files may use the names of hand-written loops too.
        if (name == "plain") out[0].aliases.push_back(dialect->aliases.back());
    }
    return out;
}

bool same_key(const std::string& a, const std::string& b, bool ignore_case) {
    return ignore_case ? lower(a) == lower(b) : a == b;
}

// Sections whose batch size, workers and precision are not for training.
bool is_side_section(const std::string& key) {
    static const char* kSides[] = {"val_",      "valid",   "eval",    "test",     "infer",
                                   "predict",   "serving", "export",  "callback", "checkpointer",
                                   "tokenizer", "decod",   "generat", "augment",  "transform",
                                   "metric",    "deploy",  "onnx",    "quant",    "benchmark_"};
    std::string name = lower(key);
    return name == "val" ||
           std::ranges::any_of(kSides, [&](const char* side) { return name.starts_with(side); });
}

// Rare keys weigh more: everybody has "lr", one framework has "per_device_train_batch_size".
double weight_of(const KeyPath& key) {
    int users = 0;
    for (const Dialect& dialect : dialects()) {
        bool uses =
            std::ranges::any_of(dialect.aliases, [&](const Alias& a) { return a.key == key; }) ||
            std::ranges::find(dialect.markers, key) != dialect.markers.end();
        users += uses ? 1 : 0;
    }
    return users <= 1 ? 1.0 : 0.2 / users;
}

}  // namespace

const Alias* Dialect::alias_of(Setting setting) const {
    auto found = std::ranges::find(aliases, setting, &Alias::setting);
    return found == aliases.end() ? nullptr : &*found;
}

std::span<const Dialect> dialects() {
    static const std::vector<Dialect> kDialects = read_dialects();
    return kDialects;
}

const Dialect* find_dialect(std::string_view name) {
    auto found = std::ranges::find(dialects(), name, &Dialect::name);
    return found == dialects().end() ? nullptr : &*found;
}

std::vector<std::string> frameworks_of(const Dialect& dialect) {
    std::vector<std::string> out;
    for (const CsvRow& row : alias_rows()) {
        if (row.at("canonical") == kFramework && row.at("dialect") == dialect.name)
            out.push_back(row.at("key"));
    }
    return out;
}

KeyIndex::KeyIndex(const Document& document, bool ignore_case)
    : document_(document), ignore_case_(ignore_case) {
    walk(document.root(), {});
}

void KeyIndex::walk(const Node& map, const KeyPath& prefix) {
    constexpr std::size_t kDeepest = 3;
    for (const Member& member : map.members) {
        auto& sections = by_key_[ignore_case_ ? lower(member.key) : member.key];
        if (sections.empty() || sections.back() != sections_.size())
            sections.push_back(sections_.size());
    }
    sections_.push_back({prefix, &map});
    if (prefix.size() >= kDeepest) return;
    for (const Member& section : map.members) {
        // Aliases are not followed: their content is found at the anchor.
        if (section.value.kind != Node::Kind::map || is_side_section(section.key)) continue;
        KeyPath below = prefix;
        below.push_back(section.key);
        walk(section.value, below);
    }
}

std::vector<Found> KeyIndex::find(const KeyPath& key) const {
    std::vector<Found> out;
    auto sections = by_key_.find(ignore_case_ ? lower(key[0]) : key[0]);
    if (sections == by_key_.end()) return out;
    for (std::size_t index : sections->second) {
        const Section& section = sections_[index];
        Found found{.path = section.prefix, .prefix = section.prefix.size()};
        const Node* node = section.map;
        for (const std::string& part : key) {
            const Node* inside = document_.resolve(*node);
            auto member = std::ranges::find_if(inside->members, [&](const Member& m) {
                return same_key(m.key, part, ignore_case_);
            });
            node = member == inside->members.end() ? nullptr : &member->value;
            if (!node) break;
            found.path.push_back(member->key);
            found.member = &*member;
        }
        found.node = node;
        if (node) out.push_back(std::move(found));
    }
    return out;
}

DialectKeys::DialectKeys(const KeyIndex& index, const Dialect& dialect)
    : index_(index), dialect_(dialect) {
    if (dialect.is_free()) return;
    std::map<KeyPath, int> homes;
    auto count = [&](const KeyPath& key) {
        for (const Found& found : index.find(key))
            ++homes[KeyPath(found.path.begin(),
                            found.path.begin() + static_cast<std::ptrdiff_t>(found.prefix))];
    };
    for (const Alias& alias : dialect.aliases) count(alias.key);
    for (const KeyPath& marker : dialect.markers) count(marker);
    int most = 0;
    for (const auto& [path, number] : homes) {
        if (number < most || (number == most && path.size() >= home_.size())) continue;
        home_ = path;
        most = number;
    }
}

bool DialectKeys::is_home(const Found& found, const KeyPath& key) const {
    if (dialect_.is_free()) return true;
    if (dialect_.name == "kohya") return found.prefix <= 1;  // in sections with any name
    // Lightning's Trainer has one section, its data another one next to it.
    bool is_beside = key.size() > 1 && found.prefix <= home_.size();
    return (found.prefix == home_.size() || is_beside) &&
           std::equal(found.path.begin(),
                      found.path.begin() + static_cast<std::ptrdiff_t>(found.prefix),
                      home_.begin());
}

std::vector<Found> DialectKeys::find(const Alias& alias) const {
    std::vector<Found> out = index_.find(alias.key);
    std::erase_if(out, [&](const Found& found) { return !is_home(found, alias.key); });
    auto rank = [](const Found& found) {
        bool in_training = std::ranges::any_of(
            found.path, [](const std::string& key) { return lower(key).starts_with("train"); });
        return std::pair(in_training ? 0 : 1, found.path.size());
    };
    std::ranges::stable_sort(out, {}, rank);
    return out;
}

std::vector<std::pair<KeyPath, KeyPath>> DialectKeys::explained() const {
    std::vector<std::pair<KeyPath, KeyPath>> out;
    auto add = [&](const KeyPath& key) {
        for (const Found& found : index_.find(key))
            if (is_home(found, key)) out.emplace_back(found.path, key);
    };
    for (const Alias& alias : dialect_.aliases) {
        // The keys of a model do not show who trains it.
        if (info_of(alias.setting).level != Level::model) add(alias.key);
    }
    for (const KeyPath& marker : dialect_.markers) add(marker);
    return out;
}

namespace {

// `job: NAME` makes a file ours if it names a reference job or has other settings of ours. In other
// files, the word means other things.
bool names_a_job(const Document& document) {
    const Node* job = document.find({"job"});
    if (!job || job->kind != Node::Kind::scalar) return false;
    if (find_reference_job(job->text)) return true;
    return std::ranges::any_of(document.root().members, [](const auto& member) {
        return member.key != "job" && find_setting(member.key);
    });
}

}  // namespace

const Dialect& recognise_dialect(const Document& document) {
    std::span<const Dialect> all = dialects();
    if (names_a_job(document)) return all[0];

    KeyIndex index(document, false), forgiving(document, true);
    std::set<KeyPath> known;  // keys that the plain dialect knows
    for (const auto& [path, key] : DialectKeys(forgiving, all[1]).explained()) known.insert(path);
    std::vector<std::set<KeyPath>> explained(all.size());
    std::vector<double> scores(all.size(), 0);
    for (std::size_t i = 2; i < all.size(); ++i) {
        std::set<KeyPath> keys;
        for (const auto& [path, key] : DialectKeys(index, all[i]).explained()) {
            explained[i].insert(path);
            if (keys.insert(key).second) scores[i] += weight_of(key);
        }
    }
    const Dialect* best = &all[1];
    double best_score = 1.0;  // at least two keys, one of them the framework's own
    for (std::size_t i = 2; i < all.size(); ++i) {
        std::set<KeyPath> of_any = known;
        of_any.insert(explained[i].begin(), explained[i].end());
        bool has_most = 2 * explained[i].size() > of_any.size();
        if (!has_most || scores[i] <= best_score) continue;
        best_score = scores[i];
        best = &all[i];
    }
    return *best;
}

}  // namespace saturate
