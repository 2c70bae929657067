// SPDX-License-Identifier: Apache-2.0
// Batches on the device, in order: takes them from the loader and copies the next one while the
// device works, never waiting for it before a step is given to the device. Knows the position that
// a checkpoint must name. Training thread.
#pragma once

#include <deque>
#include <optional>

#include "engine/device_backend.h"
#include "pipeline/loader.h"

namespace saturate {

class Feed {
  public:
    Feed(Loader& loader, DeviceBackend& backend, LoaderState start);
    // From now on the first batch is given again and again.
    void repeat_first() { repeats_ = true; }

    // Nothing once at the end of an epoch. Throws MachineError when the device has no memory for a
    // batch at all.
    [[nodiscard]] std::optional<Upload> next();
    // Starts copies of batches that are loaded already, as many as the device wants ahead.
    void top_up();
    // After the last batch that next() gave, whatever was fetched ahead of it.
    [[nodiscard]] LoaderState state() const { return state_; }

    // Since the last call of take_times().
    struct Times {
        std::int64_t wait_ns = 0;  // for the loader
        std::int64_t copy_ns = 0;  // starting copies
    };
    [[nodiscard]] Times take_times();

  private:
    [[nodiscard]] bool has_loaded() const { return unsent_ || loader_.is_ready(); }
    void fetch();
    [[nodiscard]] Upload upload_alone(const Batch& batch);

    Loader& loader_;
    DeviceBackend& backend_;
    LoaderState state_;
    bool repeats_ = false;
    std::size_t ahead_;            // copies beyond the batch that is given next
    std::optional<Batch> unsent_;  // loaded, but the device had no memory for it yet
    std::optional<Upload> first_;
    std::deque<std::optional<Upload>> ready_;
    Times times_;
};

}  // namespace saturate
