// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/trace_json.h"

#include <simdjson.h>

#include "base/text.h"

namespace saturate {
namespace {

namespace ondemand = simdjson::ondemand;
using simdjson::error_code;
using simdjson::SUCCESS;

// Returns the text of a key up to its closing quote. No key that matters has escapes.
std::string_view key_text(ondemand::raw_json_string key) {
    const char* begin = key.raw();
    const char* end = begin;
    while (*end != '"' && *end != '\\') ++end;  // stage 1 has seen the closing quote
    return {begin, static_cast<std::size_t>(end - begin)};
}

// Gives the value as written: a number, or a string with its quotes. Anything else is empty.
error_code token(ondemand::value value, std::string_view& out) {
    std::string_view raw = value.raw_json_token();
    out = {};
    if (raw.empty()) return SUCCESS;
    char first = raw.front();
    if (first == '"' || first == '-' || (first >= '0' && first <= '9')) out = trim(raw);
    return SUCCESS;
}

error_code text(ondemand::value value, std::string_view& out) {
    // Do not lose the event over an argument of an unexpected type.
    if (value.get_string().get(out) != SUCCESS) out = {};
    return SUCCESS;
}

error_code product(ondemand::value value, std::uint64_t& out) {
    ondemand::array items;
    if (value.get_array().get(items) != SUCCESS) return SUCCESS;
    std::uint64_t result = 1;
    int count = 0;
    for (auto item : items) {
        std::uint64_t number = 0;
        if (item.get_uint64().get(number) != SUCCESS || number > (1u << 31)) return SUCCESS;
        if (++count <= 3) result *= number;
    }
    out = count > 0 ? result : 0;
    return SUCCESS;
}

// True for operators that move memory and compute little.
bool is_element_wise(std::string_view name) {
    if (!name.starts_with("aten::")) return false;
    name.remove_prefix(6);
    if (name.ends_with('_')) name.remove_suffix(1);
    for (std::string_view one :
         {"add",      "mul",   "sub",     "div",   "copy", "gelu", "silu",
          "relu",     "pow",   "neg",     "rsqrt", "mean", "sum",  "native_layer_norm",
          "_softmax", "where", "sigmoid", "tanh",  "exp",  "sqrt"}) {
        if (name == one) return true;
    }
    return false;
}

// True for operators whose shapes some rule needs.
bool wants_shapes(std::string_view name) {
    return name.ends_with("mm") || name.ends_with("matmul") || name.ends_with("linear") ||
           name.ends_with("convolution") || name.ends_with("conv2d") || is_element_wise(name);
}

// Calls use(key, value) for each field until one fails.
template <typename Use>
error_code for_each_field(ondemand::object object, Use use) {
    for (auto field : object) {
        ondemand::raw_json_string key;
        ondemand::value value;
        if (auto error = field.key().get(key)) return error;
        if (auto error = field.value().get(value)) return error;
        if (auto error = use(key_text(key), value)) return error;
    }
    return SUCCESS;
}

error_code read_args(ondemand::object args, RawEvent& raw) {
    return for_each_field(args, [&](std::string_view name, ondemand::value value) {
        error_code error = SUCCESS;
        if (name == "correlation") {
            error = token(value, raw.correlation);
        } else if (name == "External id" || name == "external id") {
            error = token(value, raw.external);
        } else if (name == "stream") {
            error = token(value, raw.stream);
        } else if (name == "device" || name == "Device Id") {
            error = token(value, raw.device);
        } else if (name == "bytes") {
            error = token(value, raw.bytes);
        } else if (name == "grid") {
            error = product(value, raw.blocks);
        } else if (name == "block") {
            error = product(value, raw.threads);
        } else if (name == "Total Reserved") {
            error = token(value, raw.reserved);
        } else if (name == "Call stack") {
            error = text(value, raw.call_stack);
        } else if (name == "name") {
            error = text(value, raw.label);
        } else if ((name == "Input Dims" || name == "Input type") && wants_shapes(raw.name)) {
            ondemand::array items;
            if (value.get_array().get(items) != SUCCESS) return SUCCESS;
            error = items.raw_json().get(name == "Input Dims" ? raw.dims : raw.types);
        }
        return error;
    });
}

error_code read_event(ondemand::object event, RawEvent& raw) {
    return for_each_field(event, [&](std::string_view name, ondemand::value value) {
        error_code error = SUCCESS;
        if (name == "ph") {
            std::string_view phase;
            error = text(value, phase);
            raw.phase = phase.size() == 1 ? phase[0] : '\0';
        } else if (name == "cat") {
            error = text(value, raw.category);
        } else if (name == "name") {
            error = text(value, raw.name);
        } else if (name == "pid") {
            error = token(value, raw.process);
        } else if (name == "tid") {
            error = token(value, raw.thread);
        } else if (name == "ts") {
            error = token(value, raw.time);
        } else if (name == "dur") {
            error = token(value, raw.duration);
        } else if (name == "id") {
            error = token(value, raw.id);
        } else if (name == "args") {
            ondemand::object args;
            if (value.get_object().get(args) == SUCCESS) error = read_args(args, raw);
        }
        return error;
    });
}

}  // namespace

struct EventParser::Impl {
    ondemand::parser parser;
};

EventParser::EventParser() : impl_(std::make_unique<Impl>()) {}
EventParser::~EventParser() = default;

bool EventParser::parse(const char* text, std::size_t length, TraceBuilder& builder) {
    simdjson::padded_string_view view(text, length, length + kPadding);
    ondemand::document document;
    if (impl_->parser.iterate(view).get(document) != SUCCESS) return false;
    ondemand::array events;
    if (document.get_array().get(events) != SUCCESS) return false;
    for (auto item : events) {
        ondemand::object event;
        if (item.get_object().get(event) != SUCCESS) return false;
        RawEvent raw;
        if (read_event(event, raw) != SUCCESS) return false;
        builder.add(raw);
    }
    const char* location = nullptr;  // an error means that no text is left, as expected
    return document.current_location().get(location) != SUCCESS;
}

static_assert(EventParser::kPadding >= simdjson::SIMDJSON_PADDING);

}  // namespace saturate
