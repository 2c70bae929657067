// SPDX-License-Identifier: Apache-2.0
// Any bytes as the answer of the reader of sources, through facts, proposals, edits and the answer
// of `fix`: a UserError or an answer. The places in it may lie anywhere, also outside of the files.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "project/fix_answer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace saturate;
    try {
        Json answer =
            Json::parse(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
        if (answer["schema"].integer() != 1) return 0;  // the reader is ours
        (void)parse_readers(answer);
        FixAnswer fix{.facts = parse_facts(answer), .level = Level::training};
        fix.plan = plan_fixes(fix.facts, {.workers = 4}, {.level = Level::training});
        constexpr std::string_view kSource = "import torch\nloader = f(a, b=1)\nx = loader(2)\n";
        for (const FixProposal& proposal : fix.plan.proposals)
            for (const FileEdit& edit : proposal.edits)
                if (edit.source) (void)apply_source_edits(kSource, {&*edit.source, 1});
        (void)to_json(fix).line();
    } catch (const UserError&) {
    }
    return 0;
}
