// SPDX-License-Identifier: Apache-2.0
// The processes of a data-parallel job, and what they do together: sums, broadcasts, and telling
// which rank is missing. On PyTorch's c10d: Gloo on the CPU, NCCL where the device brings it.
// Every rank makes the same calls in the same order. Training thread; start_sum() also from
// autograd's threads.
#pragma once

#include <torch/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/rank_watch.h"

namespace c10d {
class Store;
}

namespace saturate {

struct GroupSettings {
    int rank = 0;
    int count = 1;
    std::string address = "127.0.0.1";  // of the store, which rank 0 serves ...
    int port = 29500;
    bool store_is_served = false;  // ... unless the launcher does (torchrun)
    std::string prefix;            // of all keys
    RankTimes times;
    std::chrono::milliseconds join_most{60'000};  // until all ranks are there
};

// A rank that does not answer any more. The group is of no use after it.
class RankLost : public MachineError {
  public:
    RankLost(Problem problem, std::vector<int> ranks)
        : MachineError(std::move(problem)), ranks_(std::move(ranks)) {}
    [[nodiscard]] const std::vector<int>& ranks() const { return ranks_; }

  private:
    std::vector<int> ranks_;
};

// A collective under way. wait() blocks the host on the CPU; on a GPU what is computed next waits.
class Collective {
  public:
    virtual ~Collective() = default;
    virtual void wait() = 0;
    [[nodiscard]] virtual std::int64_t done_ns() const = 0;  // 0: unknown
};

// Of the sums and broadcasts between two marks, by the device's own clock.
struct CollectiveTimes {
    std::int64_t exposed_ns = 0;  // nothing else could be computed
    std::int64_t total_ns = 0;    // they were under way, hidden or not
};

// Where the device is: before it waits for the sums of a mark, in that, or behind it.
enum class AtMark { before, waiting, passed };

// The device's own collectives (NCCL), which libsaturate_cuda.so brings.
class DeviceCollectives {
  public:
    virtual ~DeviceCollectives() = default;
    [[nodiscard]] virtual std::unique_ptr<Collective> start_sum(torch::Tensor tensor) = 0;
    [[nodiscard]] virtual std::unique_ptr<Collective> start_broadcast(torch::Tensor tensor) = 0;
    // Before the device waits for what was started since the last mark, and after it. Marks count up.
    virtual void mark_waiting(std::int64_t mark) = 0;
    virtual void mark_waited(std::int64_t mark) = 0;
    // Once the device has passed the mark; asks, never waits. Absent: not yet, or long forgotten.
    [[nodiscard]] virtual std::optional<CollectiveTimes> times(std::int64_t mark) = 0;
    [[nodiscard]] virtual AtMark stands_at(std::int64_t mark) = 0;  // asks, never waits
    // Gives up what waits for a rank that will not come: the device computes and answers again. Of
    // no use after it.
    virtual void give_up() noexcept = 0;
};

class ProcessGroup {
  public:
    // Returns when all ranks are there. Throws RankLost naming those that did not come.
    explicit ProcessGroup(const GroupSettings& settings);
    ~ProcessGroup();  // rank 0, which serves the store, waits a while until the others have left
    ProcessGroup(const ProcessGroup&) = delete;
    ProcessGroup& operator=(const ProcessGroup&) = delete;

    [[nodiscard]] int rank() const;
    [[nodiscard]] int count() const;
    [[nodiscard]] bool is_first() const { return rank() == 0; }
    // Tensors on the device go through these from now on.
    void use_device(std::unique_ptr<DeviceCollectives> device);
    [[nodiscard]] DeviceCollectives* device();  // null: all goes over the CPU
    [[nodiscard]] c10d::Store& store();

    // Returns when the device has passed the mark. Throws RankLost: a host that waited for the
    // device itself would wait for ever.
    void await_device(std::int64_t mark);

    // In place; waiting throws RankLost.
    [[nodiscard]] std::unique_ptr<Collective> start_sum(torch::Tensor tensor);
    [[nodiscard]] std::unique_ptr<Collective> start_broadcast(torch::Tensor tensor);  // of rank 0
    void sum(const torch::Tensor& tensor) { start_sum(tensor)->wait(); }
    void broadcast(const torch::Tensor& tensor) { start_broadcast(tensor)->wait(); }
    [[nodiscard]] std::string text_of_first(const std::string& mine);
    [[nodiscard]] std::vector<std::string> texts_of_all(const std::string& mine);

    void stands(std::int64_t step, const char* doing);  // for the others' messages
    // This rank ends: the others' messages then say why.
    void tell_failed(const std::string& why) noexcept;
    [[nodiscard]] bool is_lost() const;  // a RankLost was thrown
    // After it: what was read from the device hangs no longer behind the lost rank.
    void abort_device() noexcept;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
