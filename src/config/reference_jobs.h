// SPDX-License-Identifier: Apache-2.0
// The reference jobs as everything but their models must know them: what their samples are, which
// data can be made for them, how large they are, what their write-ups claim. A new job is a row
// here, its model in workloads/, and its line in workloads/registry.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/model_shape.h"
#include "config/schema.h"

namespace saturate {

enum class JobSamples {
    made,            // in memory, nothing to read
    as_they_are,     // whatever `data` holds: the model is the user's
    classes,         // pictures in a folder per class
    pairs,           // pictures before and after
    points,          // pictures and the places of points in them
    windows,         // of a table: [rows, columns]
    window_pictures  // ... as pictures of one channel: [1, rows, columns]
};

// How a picture comes to the model; 0 x 0: as the data's kind usually does.
struct JobPicture {
    int width = 0, height = 0;  // unless image_size says otherwise
    int channels = 3;
    float mean = 0, deviation = 1;  // of all channels
};

// Files that `data make` writes.
enum class MadeFiles { none, pairs, points, classes, load_table, air_table };
struct JobDataMade {
    MadeFiles files = MadeFiles::none;
    std::string_view path = {};  // as configs/<job>_before.yaml has it
    std::int64_t samples = 0;    // pictures or rows: enough for a try
    std::string_view layout = {};
};

// The write-up that a job comes from: the GPU it names, what went wrong there, and the figures it
// claims, of its own data, code and machine. Empty: it claims none.
struct WriteUp {
    std::string_view gpu = {};  // empty: the job has no write-up
    std::string_view fault = {};
    std::string_view busy = {}, rate = {}, steps = {}, wait = {}, power = {}, speed_up = {};
    double busy_least = 0;         // the least of what it claims, in percent ...
    double speed_up_least = 1;     // ... and in times
    std::string_view as_run = {};  // KEY=VALUE that the fault amounts to; empty: the file as it is
};

struct ReferenceJob {
    std::string_view name;
    JobSamples samples = JobSamples::made;
    JobPicture picture = {};
    bool has_convolutions = false;  // the layout of tensors matters
    double usual_batch_max = 512;   // the largest that people train such a model with
    bool can_recompute = false;     // its blocks may be computed again: gradient_checkpointing
    // Settings by which a file of nobody's framework shows a model like this one: all of them, with
    // so many numbers in the first. None: it cannot be told.
    std::vector<Setting> told_by = {};
    std::size_t told_by_numbers = 1;
    std::vector<Setting> grows_by = {};  // what makes its model larger where a card has room
    Workload (*estimate)(const ModelShape& shape) = nullptr;  // null: nothing is known
    JobDataMade made = {};
    WriteUp write_up = {};
    bool is_shown = false;  // by `demo` without a job: gains most, by a cause that has a name

    [[nodiscard]] bool wants_windows() const {
        return samples == JobSamples::windows || samples == JobSamples::window_pictures;
    }
    [[nodiscard]] bool wants_pictures() const {
        return samples == JobSamples::classes || samples == JobSamples::pairs ||
               samples == JobSamples::points;
    }
};

[[nodiscard]] std::span<const ReferenceJob> reference_job_table();
// The one that `demo` shows unless told otherwise.
[[nodiscard]] const ReferenceJob& shown_job();
// Those that have a write-up, joined by `between`.
[[nodiscard]] std::string written_up_jobs(std::string_view between);
// Null: a job of the user's own, or none.
[[nodiscard]] const ReferenceJob* find_reference_job(std::string_view name);

}  // namespace saturate
