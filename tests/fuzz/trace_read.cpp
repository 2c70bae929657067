// SPDX-License-Identifier: Apache-2.0
// Any bytes as a trace, through reader, repair, timeline, replay and rules: a UserError or an
// answer.
#include "diagnosis/trace_read.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "diagnosis/diagnosis.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        saturate::Trace trace =
            saturate::parse_trace(std::string_view(reinterpret_cast<const char*>(data), size),
                                  "fuzz", {.limit_bytes = 16 << 20});
        saturate::Diagnosis diagnosis = saturate::diagnose_trace(trace);
        (void)saturate::to_json(diagnosis, 99, true).line();
    } catch (const saturate::UserError&) {
    }
    return 0;
}
