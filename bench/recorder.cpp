// SPDX-License-Identifier: Apache-2.0
// What one step record costs the thread that trains. bench/recorder builds and runs it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "telemetry/record_writer.h"

using namespace saturate;

namespace {

StepRecord step_like_a_trainers(std::int64_t index) {
    return {.step = index,
            .start_ns = now_ns(),
            .duration_ns = 1'000'000,
            .samples = 64,
            .input_wait_ns = 100'000,
            .copy_ns = 50'000,
            .forward_ns = 300'000,
            .backward_ns = 400'000,
            .optimizer_ns = 100'000,
            .synchronisation_ns = 20'000,
            .log_ns = 1'000};
}

}  // namespace

// Arguments: rounds, and a file for the result as JSON (or none).
int main(int argc, char** argv) {
    int rounds = argc > 1 ? std::atoi(argv[1]) : 51;
    constexpr int kSteps = 4000;  // fewer than the writer holds: what is measured is recording
    std::string pattern =
        (std::filesystem::temp_directory_path() / "saturate-bench-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) return 3;
    std::vector<double> ns;
    RecordDrops drops;
    {
        RecordWriter writer(std::filesystem::path(pattern) / "run",
                            {.kind = "train", .started_ns = now_ns()});
        for (int round = -2; round < rounds; ++round) {
            std::int64_t start = now_ns();
            for (int i = 0; i < kSteps; ++i) writer.step(step_like_a_trainers(i));
            double each = static_cast<double>(now_ns() - start) / kSteps;
            if (round >= 0) ns.push_back(each);
            writer.flush();
        }
        drops = writer.drops();
    }
    std::filesystem::remove_all(pattern);
    std::ranges::sort(ns);
    double median = ns[ns.size() / 2];
    fmt::print("step record: {:.0f} ns (n={}, {:.0f}..{:.0f}), limit 2000 ns, dropped {}\n", median,
               ns.size(), ns.front(), ns.back(), drops.steps);
    if (argc > 2) {
        write_file_whole(argv[2],
                         fmt::format("{{\"schema\":1,\"step_record_ns\":{{\"median\":{:.1f},"
                                     "\"low\":{:.1f},\"high\":{:.1f},"
                                     "\"n\":{}}},\"limit_ns\":2000,\"dropped\":{}}}\n",
                                     median, ns.front(), ns.back(), ns.size(), drops.steps));
    }
    return median < 2000 && drops.steps == 0 ? 0 : 1;
}
