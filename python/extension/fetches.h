// SPDX-License-Identifier: Apache-2.0
// Adds up the time that each batch takes in the data set, per loader and worker, in the ring. Wall
// time is measured for every batch. CPU time and time spent ready without a core are measured for
// every 16th batch, or for each one while batches are slow enough to hide the measurement. Runs in
// the training process and in each worker, under the interpreter's lock.
#pragma once

#include <cstdint>

namespace saturate {

class Fetches {
  public:
    struct Began {
        std::int64_t wall = 0, cpu = 0, delay = 0;
        bool is_close = false;  // CPU time and delay are measured too
    };

    // Call again after a fork. `ring` belongs to the training process; worker 0 is
    // that process itself.
    void open(unsigned char* ring, int worker);
    void forget() { is_open_ = false; }
    void turn_off() { is_off_ = true; }
    [[nodiscard]] bool is_open() const { return is_open_; }
    [[nodiscard]] bool is_off() const { return is_off_; }
    void set_loader(std::int64_t number) { loader_ = number; }
    [[nodiscard]] std::int64_t loader() const { return loader_; }

    [[nodiscard]] Began begin(std::int64_t now);
    void end(const Began& began, std::int64_t now, std::int64_t loader);

  private:
    [[nodiscard]] std::int64_t delay() const;

    unsigned char* ring_ = nullptr;
    int worker_ = 0, schedstat_ = -1;
    int left_ = 0;  // batches until the next close measurement
    std::int64_t loader_ = 0;
    bool is_open_ = false, is_off_ = false;
};

}  // namespace saturate
