// SPDX-License-Identifier: Apache-2.0
#include "project/facts.h"

#include <algorithm>

namespace saturate {

namespace {

std::string text(const Json& value) { return value.string().value_or(""); }
int whole(const Json& value, int otherwise = -1) {
    return static_cast<int>(value.integer().value_or(otherwise));
}
std::optional<int> maybe_whole(const Json& value) {
    auto number = value.integer();
    return number ? std::optional<int>(static_cast<int>(*number)) : std::nullopt;
}

std::optional<ByteSpan> maybe_span(const Json& value) {
    const Json::Array& ends = value.items();
    if (ends.size() != 2) return std::nullopt;
    auto begin = ends[0].integer(), end = ends[1].integer();
    if (!begin || !end || *begin < 0 || *end < *begin) return std::nullopt;
    return ByteSpan{static_cast<std::size_t>(*begin), static_cast<std::size_t>(*end)};
}
ByteSpan span(const Json& value) { return maybe_span(value).value_or(ByteSpan{}); }

Certainty certainty(const Json& value) {
    std::string word = text(value);
    return word == "certain"  ? Certainty::certain
           : word == "likely" ? Certainty::likely
                              : Certainty::unknown;
}

void set_place(SourcePlace& out, const Json& json) {
    out.file = text(json["file"]);
    out.line = whole(json["line"], 0);
    out.span = span(json["bytes"]);
}

// Copies members of the object into strings.
void set_texts(const Json& json,
               std::initializer_list<std::pair<const char*, std::string*>> members) {
    for (const auto& [name, out] : members) *out = text(json[name]);
}

std::optional<SourcePlace> maybe_place(const Json& json) {
    if (!json.is_object()) return std::nullopt;
    SourcePlace out;
    set_place(out, json);
    return out;
}

std::vector<SourcePlace> places(const Json& json) {
    std::vector<SourcePlace> out;
    for (const Json& item : json.items())
        if (auto place = maybe_place(item)) out.push_back(*place);
    return out;
}

template <typename T>
std::vector<T> each(const Json& json, T (*one)(const Json&)) {
    std::vector<T> out;
    for (const Json& item : json.items()) out.push_back(one(item));
    return out;
}

FactSource source_file(const Json& json) {
    return {.file = text(json["file"]),
            .role = text(json["role"]),
            .newline = text(json["newline"]),
            .sha256 = text(json["sha256"]),
            .torch = text(json["torch"]),
            .after_imports = maybe_span(json["after_imports"]),
            .problem = text(json["problem"]["text"]),
            .problem_line = whole(json["problem"]["line"], 0)};
}

FactKey key_of(const Json& json) {
    FactKey out;
    set_place(out, json);
    for (const Json& item : json["path"].items()) out.path.push_back(text(item));
    out.is_there = json["there"].boolean().value_or(false);
    out.type = text(json["type"]);
    return out;
}

FactConfig config_file(const Json& json) {
    return {.file = text(json["file"]),
            .format = text(json["format"]),
            .how = text(json["how"]),
            .sha256 = text(json["sha256"]),
            .certainty = certainty(json["certainty"]),
            .problem = text(json["problem"]["text"]),
            .keys = each(json["keys"], key_of)};
}

void set_value(FactValue& out, const Json& json) {
    out.span = span(json["bytes"]);
    out.line = whole(json["line"], 0);
    out.text = text(json["text"]);
    out.type = text(json["type"]);
    out.literal = json["literal"];
}

FlowSource flow_source(const Json& json) {
    return {whole(json["declaration"]), certainty(json["certainty"]),
            json["derived"].boolean().value_or(false)};
}

FactDeclaration declaration_of(const Json& json) {
    FactDeclaration out;
    set_place(out, json);
    set_texts(json, {{"kind", &out.kind},
                     {"setting", &out.setting},
                     {"key", &out.key},
                     {"escapes", &out.escapes}});
    out.id = whole(json["id"]);
    out.keys = each(json["keys"], text);
    if (json["value"].is_object()) set_value(out.value.emplace(), json["value"]);
    if (json["given"].is_object()) out.given = text(json["given"]["text"]);
    out.reads = json["reads"].items().size();
    out.is_in_branch = json["branch"].boolean().value_or(false);
    out.writes = places(json["writes"]);
    return out;
}

FactArgument argument_of(const Json& json) {
    FactArgument out;
    set_value(out, json);
    out.name = text(json["name"]);
    out.position = maybe_whole(json["position"]);
    out.sources = each(json["sources"], flow_source);
    return out;
}

FactSpread spread_of(const Json& json) {
    FactSpread out{.text = text(json["text"]), .is_open = json["open"].boolean().value_or(true)};
    for (const Json& key : json["keys"].items()) {
        FactSpreadKey& one = out.keys.emplace_back();
        one.name = text(key["key"]);
        one.spread = out.text;
        one.declaration = whole(key["declaration"]);
        one.is_maybe = key["maybe"].boolean().value_or(false);
        set_place(one, key);
    }
    return out;
}

FactCall call_of(const Json& json) {
    FactCall out;
    set_place(out, json);
    set_texts(json, {{"kind", &out.kind},
                     {"callee", &out.callee},
                     {"scope", &out.scope},
                     {"when", &out.when},
                     {"role", &out.role},
                     {"chosen", &out.chosen},
                     {"groups", &out.groups},
                     {"of", &out.of},
                     {"name", &out.flag},
                     {"every", &out.every}});
    out.id = whole(json["id"]);
    out.certainty = certainty(json["certainty"]);
    out.arguments = each(json["arguments"], argument_of);
    out.spreads = each(json["spreads"], spread_of);
    out.may_insert = json["insert"].is_object();
    if (json["config"].is_array()) out.config = each(json["config"], text);
    out.statement = maybe_span(json["statement"]);
    out.in_step = maybe_whole(json["in_step"]);
    out.in_epoch = json["in_epoch"].boolean().value_or(false);
    const Json& dataset = json["dataset"];
    out.dataset = {.name = text(dataset["class"]),
                   .holds_gpu = dataset["holds_gpu"].boolean(),
                   .handle_in_init = dataset["handle_in_init"].boolean(),
                   .iterable = dataset["iterable"].boolean(),
                   .ready_batches = dataset["ready_batches"].boolean(),
                   .numpy_batches = dataset["numpy_batches"].boolean(),
                   .changed_by = places(dataset["changed_by"])};
    out.has_sampler = !json["sampler"].is_null() || !json["batch_sampler"].is_null();
    out.fused_known = json["fused_known"].boolean();
    out.moved = json["moved"].boolean();
    out.from_loader = json["from_loader"].boolean().value_or(false);
    out.made_here = json["made_here"].boolean().value_or(false);
    out.flag_value = text(json["value"]);
    if (auto flag = json["value"].boolean()) out.flag_value = *flag ? "True" : "False";
    if (json["value"].is_object()) out.flag_value = text(json["value"]["text"]);
    out.interval = text(json["interval"]["text"]);
    out.interval_sources = each(json["interval"]["sources"], flow_source);
    return out;
}

FactLoop loop_of(const Json& json) {
    FactLoop out;
    set_place(out, json);
    set_texts(json, {{"kind", &out.kind},
                     {"function", &out.function},
                     {"counter", &out.counter},
                     {"compute_why", &out.compute_why},
                     {"loss", &out.loss}});
    out.id = whole(json["id"]);
    out.epochs = places(json["epochs"]);
    out.loader = maybe_whole(json["loader"]);
    out.forward = maybe_place(json["forward"]);
    out.backward = maybe_whole(json["backward"]);
    out.step = maybe_whole(json["step"]);
    out.zero_grad = maybe_whole(json["zero_grad"]);
    out.optimizer = maybe_whole(json["optimizer"]);
    out.swallows = maybe_place(json["swallows"]);
    out.compute = maybe_span(json["compute"]);
    out.model = text(json["model"]["target"]);
    out.model_at = maybe_place(json["model"]);
    return out;
}

FactAlternative alternative_of(const Json& json) {
    FactAlternative out;
    set_place(out, json);
    set_texts(json, {{"kind", &out.kind}, {"callee", &out.callee}, {"role", &out.role}});
    out.declaration = whole(json["switch"]);
    return out;
}

FactUse use_of(const Json& json) {
    FactUse out;
    set_place(out, json);
    set_texts(json, {{"when", &out.when}, {"form", &out.form}});
    return out;
}

FactWait wait_of(const Json& json) {
    FactWait out;
    set_place(out, json);
    set_texts(json, {{"statement_kind", &out.statement_kind},
                     {"what", &out.what},
                     {"class", &out.kind},
                     {"when", &out.when},
                     {"interval", &out.interval},
                     {"use", &out.use}});
    out.statement = maybe_span(json["statement"]);
    out.value = span(json["value"]["bytes"]);
    out.value_text = text(json["value"]["text"]);
    out.loop = whole(json["loop"]);
    out.path = places(json["path"]);
    out.certainty = certainty(json["certainty"]);
    out.into = text(json["into"]["name"]);
    out.into_list = text(json["into"]["holds"]) == "list";
    out.is_count = text(json["into"]["number"]) == "int";
    out.is_as_read = text(json["into"]["number"]) == "same";
    out.uses = each(json["into"]["uses"], use_of);
    out.every = text(json["every"]["text"]);
    out.every_logs = json["every"]["is_log"].boolean().value_or(false);
    out.every_sources = each(json["every"]["sources"], flow_source);
    return out;
}

FactWithoutEffect without_effect_of(const Json& json) {
    FactWithoutEffect out;
    set_place(out, json);
    set_texts(json, {{"setting", &out.setting},
                     {"kind", &out.kind},
                     {"why", &out.why},
                     {"instead", &out.instead}});
    out.declaration = whole(json["declaration"]);
    out.at = maybe_place(json["at"]);
    out.certainty = certainty(json["certainty"]);
    return out;
}

FactTrap trap_of(const Json& json) {
    FactTrap out;
    set_place(out, json);
    set_texts(json, {{"kind", &out.kind}, {"why", &out.why}});
    for (const Json& item : json["forbids"].items()) out.forbids.push_back(text(item));
    for (const Json& item : json["calls"].items()) out.calls.push_back(whole(item));
    return out;
}

std::vector<std::string> texts(const Json& json, const char* member) {
    std::vector<std::string> out;
    for (const Json& item : json.items()) out.push_back(text(item[member]));
    return out;
}

template <typename T>
const T* find_id(const std::vector<T>& all, int id) {
    auto found = std::ranges::find(all, id, &T::id);
    return found == all.end() ? nullptr : &*found;
}

}  // namespace

const FactArgument* FactCall::argument(std::string_view name) const {
    for (const FactArgument& argument : arguments)
        if (argument.name == name) return &argument;
    return nullptr;
}

const FactSpreadKey* FactCall::spread_key(std::string_view name) const {
    for (const FactSpread& spread : spreads)
        for (const FactSpreadKey& key : spread.keys)
            if (key.name == name) return &key;
    return nullptr;
}

bool FactCall::may_hold(std::string_view name) const {
    return spread_key(name) || std::ranges::any_of(spreads, &FactSpread::is_open);
}

std::string_view FactCall::short_callee() const {
    std::string_view all = callee;
    return all.substr(all.rfind('.') == std::string_view::npos ? 0 : all.rfind('.') + 1);
}

bool FactWait::is_said() const {
    return (when == "step" || when == "branch") && certainty != Certainty::unknown;
}

const FactDeclaration* ProjectFacts::declaration(int id) const { return find_id(declarations, id); }
const FactCall* ProjectFacts::call(int id) const { return find_id(calls, id); }
const FactLoop* ProjectFacts::loop(int id) const { return find_id(loops, id); }

const FactSource* ProjectFacts::file(std::string_view name) const {
    auto found = std::ranges::find(files, name, &FactSource::file);
    return found == files.end() ? nullptr : &*found;
}

bool ProjectFacts::uses(std::string_view framework) const {
    return std::ranges::find(frameworks, framework) != frameworks.end();
}

const FactTrap* ProjectFacts::trap(std::string_view setting, int call) const {
    for (const FactTrap& trap : traps) {
        bool is_about = trap.calls.empty() || call < 0 ||
                        std::ranges::find(trap.calls, call) != trap.calls.end();
        if (is_about && std::ranges::find(trap.forbids, setting) != trap.forbids.end())
            return &trap;
    }
    return nullptr;
}

ProjectFacts parse_facts(const Json& answer) {
    SATURATE_CHECK(answer["schema"].integer() == 1, "the reader speaks the schema we know");
    const Json& command = answer["command"];
    ProjectFacts out{.python = text(answer["python"]),
                     .command_kind = text(command["kind"]),
                     .script = text(command["script"]),
                     .module_name = text(command["module"]),
                     .shell = text(command["shell"]),
                     .command_problem = text(command["problem"]),
                     .files = each(answer["files"], source_file),
                     .configs = each(answer["configs"], config_file),
                     .declarations = each(answer["declarations"], declaration_of),
                     .calls = each(answer["calls"], call_of),
                     .alternatives = each(answer["alternatives"], alternative_of),
                     .loops = each(answer["loops"], loop_of),
                     .waits = each(answer["waits"], wait_of),
                     .without_effect = each(answer["without_effect"], without_effect_of),
                     .traps = each(answer["traps"], trap_of)};
    out.frameworks = texts(answer["frameworks"], "name");
    out.arguments = each(answer["command"]["arguments"], text);
    out.convolves = answer["convolves"].boolean().value_or(true);
    out.limits = texts(answer["limits"], "text");
    return out;
}

std::vector<ConfigReaderFacts> parse_readers(const Json& answer) {
    SATURATE_CHECK(answer["schema"].integer() == 1, "the reader speaks the schema we know");
    std::vector<ConfigReaderFacts> out;
    for (const Json& program : answer["programs"].items())
        out.push_back({.script = text(program["script"]),
                       .keys = each(program["keys"], key_of),
                       .without_effect = each(program["without_effect"], without_effect_of),
                       .frameworks = texts(program["frameworks"], "name")});
    return out;
}

}  // namespace saturate
