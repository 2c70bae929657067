// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "diagnosis/diagnosis.h"
#include "diagnosis/trace_read.h"

namespace saturate {

Diagnosis diagnose_run_folder(const std::filesystem::path& folder) {
    Diagnosis of_run = diagnose_run(read_run(folder), folder.string());
    std::filesystem::path file = folder / "trace.json.gz";
    if (!std::filesystem::exists(file)) return of_run;
    try {
        Diagnosis of_trace = diagnose_traces(read_traces({file}, {}));
        if (of_trace.busy_percent) return joined(std::move(of_trace), std::move(of_run));
    } catch (const UserError& error) {
        of_run.health.push_back({"trace", error.problems()[0].found, ""});
    }
    return of_run;
}

}  // namespace saturate
