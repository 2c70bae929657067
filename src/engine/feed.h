// SPDX-License-Identifier: Apache-2.0
// Delivers batches on the device, in order. Takes them from the loader and copies the next one
// while the device works; copying ahead never waits for the loader. Keeps the position that a
// checkpoint saves. Training thread.
#pragma once

#include <deque>
#include <optional>

#include "engine/device_backend.h"
#include "pipeline/loader.h"

namespace saturate {

class Feed {
  public:
    Feed(Loader& loader, DeviceBackend& backend, LoaderState start);
    // From now on next() returns the first batch again and again.
    void repeat_first() { repeats_ = true; }

    // Returns nothing once at the end of an epoch. Throws MachineError if the device has no memory
    // for even one batch.
    [[nodiscard]] std::optional<Upload> next();
    // Starts copying batches that are already loaded, up to the number the device wants ahead.
    void top_up();
    // Position after the last batch that next() returned, not counting batches fetched ahead.
    [[nodiscard]] LoaderState state() const { return state_; }

    // Times since the last call of take_times().
    struct Times {
        std::int64_t wait_ns = 0;  // waited for the loader
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
    std::size_t ahead_;            // copies beyond the next batch
    std::optional<Batch> unsent_;  // loaded, but the device had no memory for it yet
    std::optional<Upload> first_;
    std::deque<std::optional<Upload>> ready_;
    Times times_;
};

}  // namespace saturate
