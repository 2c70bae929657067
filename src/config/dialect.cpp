// SPDX-License-Identifier: Apache-2.0
#include "config/dialect.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/csv.h"
#include "base/text.h"
#include "config/reference_jobs.h"

namespace saturate {

std::string_view embedded_aliases();  // src/config/aliases.csv

namespace {

using enum Convention;

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

// Our own names, which hand-written loops use as well.
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
    const std::string file = "src/config/aliases.csv";
    for (const CsvRow& row : parse_csv(embedded_aliases(), file)) {
        const std::string& name = row.at("dialect");
        auto dialect = std::ranges::find(out, name, &Dialect::name);
        if (dialect == out.end()) dialect = out.insert(out.end(), Dialect{.name = name});
        if (row.at("canonical") == "marker") {
            dialect->markers.push_back(path_of(row.at("key")));
            continue;
        }
        const SettingInfo* info = find_setting(row.at("canonical"));
        auto convention = conventions().find(row.at("convention"));
        SATURATE_CHECK(info && convention != conventions().end(),
                       fmt::format("aliases.csv: {} of {} is in the schema", row.at("key"), name));
        dialect->aliases.push_back({info->id, path_of(row.at("key")), convention->second});
        // What hand-written loops call it is understood in our own files too.
        if (name == "plain") out[0].aliases.push_back(dialect->aliases.back());
    }
    return out;
}

bool same_key(const std::string& a, const std::string& b, bool ignore_case) {
    return ignore_case ? lower(a) == lower(b) : a == b;
}

// Sections whose batch size and workers are not those of training.
bool is_side_section(const std::string& key) {
    static const char* kSides[] = {"val_",  "valid",   "eval",    "test",
                                   "infer", "predict", "serving", "export"};
    std::string name = lower(key);
    return name == "val" ||
           std::ranges::any_of(kSides, [&](const char* side) { return name.starts_with(side); });
}

const Node* follow(const Document& document, const Node& map, std::span<const std::string> keys,
                   bool ignore_case, KeyPath& path, const Member*& last) {
    const Node* node = &map;
    for (const std::string& key : keys) {
        const Node* inside = document.resolve(*node);
        auto member = std::ranges::find_if(
            inside->members, [&](const Member& m) { return same_key(m.key, key, ignore_case); });
        if (member == inside->members.end()) return nullptr;
        path.push_back(member->key);
        last = &*member;
        node = &member->value;
    }
    return node;
}

void collect(const Document& document, const Node& map, const Alias& alias, bool ignore_case,
             int depth, const KeyPath& prefix, std::vector<Found>& out) {
    KeyPath path = prefix;
    const Member* member = nullptr;
    if (const Node* node = follow(document, map, alias.key, ignore_case, path, member)) {
        out.push_back({path, node, member});
    }
    constexpr int kDeepest = 3;
    if (depth >= kDeepest) return;
    for (const Member& section : map.members) {
        // Aliases are not walked into: what stands behind one is found at its anchor.
        if (section.value.kind != Node::Kind::map || is_side_section(section.key)) continue;
        KeyPath below = prefix;
        below.push_back(section.key);
        collect(document, section.value, alias, ignore_case, depth + 1, below, out);
    }
}

// Rare keys weigh more: "lr" is everyone's, "per_device_train_batch_size" is one's own.
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

std::vector<Found> find_alias(const Document& document, const Alias& alias, bool ignore_case) {
    std::vector<Found> out;
    collect(document, document.root(), alias, ignore_case, 0, {}, out);
    auto rank = [](const Found& found) {
        bool in_training = std::ranges::any_of(
            found.path, [](const std::string& key) { return lower(key).starts_with("train"); });
        return std::pair(in_training ? 0 : 1, found.path.size());
    };
    std::ranges::stable_sort(out, {}, rank);
    return out;
}

namespace {

// `job: NAME` is ours, whatever the user's own job is called; it then stands beside settings of
// ours. Elsewhere the word means other things, and stands beside other keys.
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

    const Dialect* best = &all[1];
    double best_score = 1.0;  // a framework must show at least two keys, one of them its own
    for (const Dialect& dialect : all.subspan(2)) {
        double score = 0;
        std::vector<KeyPath> keys = dialect.markers;
        for (const Alias& alias : dialect.aliases) keys.push_back(alias.key);
        std::ranges::sort(keys);
        keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
        for (const KeyPath& key : keys) {
            if (!find_alias(document, {Setting::batch_size, key}, false).empty())
                score += weight_of(key);
        }
        if (score > best_score) {
            best_score = score;
            best = &dialect;
        }
    }
    return *best;
}

}  // namespace saturate
