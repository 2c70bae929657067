// SPDX-License-Identifier: Apache-2.0
// The words of frameworks for values.
#include <fmt/format.h>

#include "base/text.h"
#include "remedies/advisor.h"

namespace saturate {

namespace {

std::string precision_word(Convention convention, const std::string& wanted,
                           const std::string& was) {
    bool off = wanted == "none" || wanted == "fp32" || wanted == "off" || wanted == "false";
    std::string name = wanted == "true" ? "bf16" : wanted;
    switch (convention) {
        case Convention::boolean:
            return off ? "false" : "true";
        case Convention::boolean_bf16:
            return name == "bf16" && !off ? "true" : "false";
        case Convention::boolean_fp16:
            return name == "fp16" && !off ? "true" : "false";
        case Convention::no_word:
            return off ? "no" : name;
        case Convention::lightning:
            return off ? "32-true" : name == "bf16" ? "bf16-mixed" : "16-mixed";
        case Convention::amp_word:
            return off ? "fp32" : "amp_" + name;
        case Convention::torch_dtype:
            return off ? "float32" : name == "bf16" ? "bfloat16" : "float16";
        case Convention::amp_wrapper:
            return off ? "OptimWrapper" : "AmpOptimWrapper";
        default:
            break;
    }
    // Uses the words that the file has: float32 for float32, 32 for 32.
    std::string word = lower(was);
    if (word == "float32" || word == "float16" || word == "bfloat16")
        return off ? "float32" : name == "bf16" ? "bfloat16" : "float16";
    if (word == "fp32") return off ? "fp32" : name;
    if (word == "no") return off ? "no" : name;
    return off ? "none" : name;
}

}  // namespace

std::string dialect_word(Setting setting, Convention convention, const std::string& wanted,
                         const std::string& was) {
    if (setting == Setting::precision) return precision_word(convention, wanted, was);
    bool on = is_on_text(wanted);
    switch (convention) {
        case Convention::hf_optim:
            // Only this one has a fused variant of the same name.
            return was == "adamw_torch" && on ? "adamw_torch_fused" : "";
        case Convention::word_fused:
            return on ? "fused" : "foreach";
        case Convention::timm_compile:
            return on ? "inductor" : "";
        case Convention::dynamo:
            return on ? "INDUCTOR" : "NO";
        case Convention::word_mode:
            return "";
        default:
            return wanted;
    }
}

}  // namespace saturate
