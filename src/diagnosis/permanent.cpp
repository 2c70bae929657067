// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/permanent.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "diagnosis/patch.h"
#include "remedies/catalogue.h"

namespace saturate {
namespace {

std::string where_of(const Json& site) {
    auto file = site["file"].string();
    if (!file) return "";
    return fmt::format("{}:{} ({})", *file, site["line"].integer().value_or(0),
                       site["function"].string().value_or("?"));
}

// The last entry about each change, by name and loader (-1: none).
using LastChanges = std::map<std::pair<std::string, std::int64_t>, Json>;

LastChanges in_force(const Json& changes) {
    LastChanges out;
    for (const Json& change : changes.items()) {
        std::pair key(change["name"].string().value_or(""),
                      change["loader"].integer().value_or(-1));
        out[key] = change;
    }
    std::erase_if(out,
                  [](const auto& entry) { return entry.second["state"].string() != "applied"; });
    return out;
}

std::string python_text(const Json& value) {
    if (auto flag = value.boolean()) return *flag ? "True" : "False";
    return fmt::format("{}", value.integer().value_or(0));
}

PermanentEdit keyword_edit(const Json& entry, const std::string& callee,
                           const std::vector<KeywordChange>& changes) {
    PermanentEdit edit{.where = where_of(entry["site"])};
    std::vector<std::string> words;
    for (const KeywordChange& change : changes) {
        edit.names.push_back(change.name);
        words.push_back(change.name + "=" + change.value);
    }
    edit.line = fmt::format("{}(..., {})", callee, join(words, ", "));
    edit.patch = keyword_patch(entry["site"], entry["call"], changes);
    return edit;
}

// Returns the changes of `run --apply` that a script makes with a keyword of this call. Keyword and
// change have the same name.
std::vector<std::string> keywords_of(std::string_view target) {
    std::vector<std::string> out;
    for (const Remedy& remedy : remedies()) {
        if (!remedy.shim.name.empty() && remedy.source.kind == SourceWay::Kind::keyword &&
            remedy.source.target == target)
            out.emplace_back(remedy.source.text);
    }
    return out;
}

// Adds the keywords of DataLoader calls, in one edit per loader.
void loader_edits(const Json& python, const LastChanges& changes, std::vector<PermanentEdit>& out) {
    for (const Json& loader : python["loaders"].items()) {
        std::vector<KeywordChange> keywords;
        for (const std::string& name : keywords_of("DataLoader")) {
            auto found = changes.find({name, loader["id"].integer().value_or(-1)});
            if (found != changes.end())
                keywords.push_back({name, python_text(found->second["value"])});
        }
        if (!keywords.empty()) out.push_back(keyword_edit(loader, "DataLoader", keywords));
        if (!changes.contains({"batched_fetch", loader["id"].integer().value_or(-1)})) continue;
        out.push_back({.names = {"batched_fetch"},
                       .where = where_of(loader["site"]),
                       .line = "for rows in torch.randperm(n).split(batch_size): x[rows], y[rows]"
                               "  # in place of the DataLoader"});
    }
}

void optimizer_edits(const Json& python, const LastChanges& changes,
                     std::vector<PermanentEdit>& out) {
    for (const std::string& name : keywords_of("optimizer")) {
        if (!changes.contains({name, -1})) continue;
        for (const Json& optimizer : python["optimizers"].items()) {
            if (!optimizer[name].boolean().value_or(false)) continue;
            out.push_back(keyword_edit(optimizer, optimizer["type"].string().value_or("Optimizer"),
                                       {{name, "True"}}));
        }
    }
    for (const std::string& name : keywords_of("zero_grad")) {
        if (changes.contains({name, -1}))
            out.push_back(keyword_edit(python["zero_grad"], "zero_grad", {{name, "True"}}));
    }
}

}  // namespace

std::vector<PermanentEdit> permanent_edits(const Json& python) {
    LastChanges changes = in_force(python["changes"]);
    std::vector<PermanentEdit> out;
    loader_edits(python, changes, out);
    optimizer_edits(python, changes, out);
    auto add = [&](const std::string& name, const std::string& line) {
        if (changes.contains({name, -1})) out.push_back({.names = {name}, .line = line});
    };
    for (const Remedy& remedy : remedies()) {
        auto change = changes.find({std::string(remedy.shim.name), -1});
        if (change == changes.end() || remedy.source.kind != SourceWay::Kind::statement) continue;
        add(change->first.first,
            fmt::format(fmt::runtime(remedy.source.text), python_text(change->second["value"])));
    }
    add("channels_last",
        "model.to(memory_format=torch.channels_last), and x.contiguous(memory_format="
        "torch.channels_last) for its input");
    std::string device =
        python["device"].string().value_or("").starts_with("cuda") ? "cuda" : "cpu";
    add("autocast",
        fmt::format("with torch.autocast(\"{}\", torch.bfloat16): around the model and the loss",
                    device));
    add("compile", "model.compile()");
    return out;
}

}  // namespace saturate
