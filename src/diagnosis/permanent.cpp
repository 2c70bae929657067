// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/permanent.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "diagnosis/patch.h"

namespace saturate {
namespace {

std::string where_of(const Json& site) {
    auto file = site["file"].string();
    if (!file) return "";
    return fmt::format("{}:{} ({})", *file, site["line"].integer().value_or(0),
                       site["function"].string().value_or("?"));
}

// The last word on a change: by name and loader (-1: none).
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

// Keywords of DataLoader calls, one edit for all of a loader.
void loader_edits(const Json& python, const LastChanges& changes, std::vector<PermanentEdit>& out) {
    for (const Json& loader : python["loaders"].items()) {
        std::vector<KeywordChange> keywords;
        for (const char* name :
             {"num_workers", "persistent_workers", "prefetch_factor", "pin_memory"}) {
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
    for (const char* name : {"fused", "foreach"}) {
        if (!changes.contains({name, -1})) continue;
        for (const Json& optimizer : python["optimizers"].items()) {
            if (!optimizer[name].boolean().value_or(false)) continue;
            out.push_back(keyword_edit(optimizer, optimizer["type"].string().value_or("Optimizer"),
                                       {{name, "True"}}));
        }
    }
    if (changes.contains({"set_to_none", -1}))
        out.push_back(keyword_edit(python["zero_grad"], "zero_grad", {{"set_to_none", "True"}}));
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
    if (auto threads = changes.find({"threads", -1}); threads != changes.end())
        add("threads",
            fmt::format("torch.set_num_threads({})", python_text(threads->second["value"])));
    add("tf32", "torch.set_float32_matmul_precision(\"high\")");
    add("cudnn_benchmark", "torch.backends.cudnn.benchmark = True");
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
