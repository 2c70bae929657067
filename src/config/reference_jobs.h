// SPDX-License-Identifier: Apache-2.0
// The reference jobs without their models: their samples, the data that can be made for them, their
// size, and the claims of their write-ups. To add a job, add a row here, its model in workloads/,
// and its line in workloads/registry.cpp.
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
    made,            // made in memory, nothing to read
    as_they_are,     // whatever `data` has: the model is the user's
    classes,         // one folder of pictures per class
    pairs,           // pictures before and after
    points,          // pictures with places of points
    windows,         // windows of a table: [rows, columns]
    window_pictures  // the same as one-channel pictures: [1, rows, columns]
};

// The picture that the model gets; 0 x 0: the usual size for this kind of data.
struct JobPicture {
    int width = 0, height = 0;  // unless image_size is set
    int channels = 3;
    float mean = 0, deviation = 1;  // over all channels
};

// Files that `data make` writes.
enum class MadeFiles { none, pairs, points, classes, load_table, air_table };
struct JobDataMade {
    MadeFiles files = MadeFiles::none;
    std::string_view path = {};  // as in configs/<job>_before.yaml
    std::int64_t samples = 0;    // pictures or rows, enough for a try
    std::string_view layout = {};
};

// The write-up that a job comes from: its GPU, its fault, and the figures it claims for its own
// data, code and machine. Empty: it claims none.
struct WriteUp {
    std::string_view gpu = {};  // empty: the job has no write-up
    std::string_view fault = {};
    std::string_view busy = {}, rate = {}, steps = {}, wait = {}, power = {}, speed_up = {};
    double busy_least = 0;         // its lowest claim, in percent ...
    double speed_up_least = 1;     // ... and as a factor
    std::string_view as_run = {};  // KEY=VALUE that reproduces the fault; empty: the file unchanged
};

struct ReferenceJob {
    std::string_view name;
    JobSamples samples = JobSamples::made;
    JobPicture picture = {};
    bool has_convolutions = false;  // the layout of tensors matters
    double usual_batch_max = 512;   // largest batch that people use for such a model
    bool can_recompute = false;     // supports gradient_checkpointing
    // Settings that identify such a model in a file of no framework. All must be there, and the
    // first must have at least told_by_numbers numbers. Empty: not identifiable.
    std::vector<Setting> told_by = {};
    std::size_t told_by_numbers = 1;
    std::vector<Setting> grows_by = {};  // these make the model larger if the card has room
    Workload (*estimate)(const ModelShape& shape) = nullptr;  // null: nothing is known
    JobDataMade made = {};
    WriteUp write_up = {};
    bool is_shown = false;  // shown by `demo` without a job: largest gain, by a cause with a name

    [[nodiscard]] bool wants_windows() const {
        return samples == JobSamples::windows || samples == JobSamples::window_pictures;
    }
    [[nodiscard]] bool wants_pictures() const {
        return samples == JobSamples::classes || samples == JobSamples::pairs ||
               samples == JobSamples::points;
    }
};

[[nodiscard]] std::span<const ReferenceJob> reference_job_table();
// The job that `demo` shows by default.
[[nodiscard]] const ReferenceJob& shown_job();
// Names of the jobs that have a write-up, joined by `between`.
[[nodiscard]] std::string written_up_jobs(std::string_view between);
// Null: a user's own job, or none.
[[nodiscard]] const ReferenceJob* find_reference_job(std::string_view name);

}  // namespace saturate
