// SPDX-License-Identifier: Apache-2.0
// Any bytes as an export of Nsight Systems: read, or refused with a UserError that has a message;
// never a crash, another exception or an event outside its tables.
#include "diagnosis/trace_nsys.h"

#include "base/error.h"
#include "fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace saturate;
    std::string bytes(reinterpret_cast<const char*>(data), size);
    try {
        for (const Trace& trace : parse_nsys(bytes, "a.sqlite")) {
            for (const Event& event : trace.events) {
                require(event.lane < trace.lanes.size() && event.name < trace.names.size());
                require(event.duration_ns >= 0 && event.start_ns >= 0);
            }
        }
    } catch (const UserError& error) {
        require(!error.problems().empty() && !error.problems()[0].found.empty());
    }
    return 0;
}
