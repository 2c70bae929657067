// SPDX-License-Identifier: Apache-2.0
#include "project/watched_calls.h"

#include <fmt/format.h>

#include <algorithm>

namespace saturate {

namespace {

bool is_file(const std::string& seen, const std::string& read) {
    return seen == read || seen.ends_with(fmt::format("/{}", read));
}

// A call that spans several lines also matches on the lines of its arguments.
int last_line(const FactCall& call) {
    int out = call.line;
    for (const FactArgument& argument : call.arguments) out = std::max(out, argument.line);
    return out;
}

// The call of this kind at the site. If several match, the innermost.
const FactCall* call_at(const ProjectFacts& facts, std::string_view kind, const Json& site) {
    std::string file = site["file"].string().value_or("");
    auto line = static_cast<int>(site["line"].integer().value_or(0));
    const FactCall* best = nullptr;
    for (const FactCall& call : facts.calls) {
        bool is_here = call.kind == kind && is_file(file, call.file) && call.line <= line &&
                       line <= last_line(call);
        if (is_here && (!best || call.line > best->line)) best = &call;
    }
    return best;
}

}  // namespace

const WatchedLoader* WatchedCalls::loader(int call) const {
    auto found = std::ranges::find(loaders, call, &WatchedLoader::call);
    return found == loaders.end() ? nullptr : &*found;
}

bool WatchedCalls::is_unseen(const FactLoop& loop) const {
    return (loop.loader && unseen.contains(*loop.loader)) ||
           (loop.optimizer && unseen.contains(*loop.optimizer));
}

WatchedCalls watched_calls(const ProjectFacts& facts, const Json& python) {
    WatchedCalls out;
    std::set<int> seen;
    std::set<std::string> kinds;  // kinds with at least one match: calls without one were not made
    auto note = [&](const FactCall* call) {
        if (!call) return false;
        seen.insert(call->id);
        kinds.insert(call->kind);
        return true;
    };
    bool on_gpu = python["device"].string().value_or("cpu") != "cpu";
    for (const Json& loader : python["loaders"].items()) {
        const FactCall* call = call_at(facts, "loader", loader["site"]);
        if (!note(call)) continue;
        auto steps = std::ranges::find_if(python["steps_by_loader"].items(), [&](const Json& one) {
            return one["loader"].integer() == loader["id"].integer();
        });
        bool trains = steps != python["steps_by_loader"].items().end();
        WatchedLoader entry{.call = call->id, .values = Json::object({}), .trains = trains};
        for (const char* name : {"num_workers", "persistent_workers"})
            entry.values.set(name, loader[name]);
        // Scripts pin memory only if there is a GPU.
        if (on_gpu) entry.values.set("pin_memory", loader["pin_memory"]);
        entry.is_own = loader["library"].string() == "saturate_gpu";
        entry.like = loader["saturate_loader"];
        entry.has_epochs = loader["starts"].integer().value_or(0) > 1;
        auto known = std::ranges::find(out.loaders, call->id, &WatchedLoader::call);
        if (known == out.loaders.end())
            out.loaders.push_back(entry);
        else if (trains && !known->trains)
            *known = entry;  // one call for training and evaluation: keep the training's
    }
    for (const Json& optimizer : python["optimizers"].items())
        note(call_at(facts, "optimizer", optimizer["site"]));
    for (const FactCall& call : facts.calls)
        if (kinds.contains(call.kind) && !seen.contains(call.id)) out.unseen.insert(call.id);
    return out;
}

std::vector<std::string> folders_written(const Json& python,
                                         const std::vector<std::filesystem::path>& apart) {
    std::set<std::string> out;
    for (const Json& one : python["files"].items()) {
        std::filesystem::path folder = one["folder"].string().value_or("");
        if (folder.empty() || !one["written"].boolean().value_or(false)) continue;
        bool is_apart = std::ranges::any_of(apart, [&](const std::filesystem::path& above) {
            return std::ranges::mismatch(above, folder).in1 == above.end();
        });
        if (!is_apart) out.insert(folder.string());
    }
    return {out.begin(), out.end()};
}

}  // namespace saturate
