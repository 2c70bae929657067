// SPDX-License-Identifier: Apache-2.0
// The processes of a data-parallel job and what they do together: sums, broadcasts, and finding out
// which rank is missing. Built on PyTorch's c10d: Gloo on the CPU, NCCL if the device brings it.
// Every rank makes the same calls in the same order. Training thread; start_sum() also from
// autograd's threads.
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
    bool store_is_served = false;  // ... unless the launcher serves it (torchrun)
    std::string prefix;            // prepended to all keys
    RankTimes times;
    std::chrono::milliseconds join_most{60'000};  // how long to wait for all ranks
};

// A rank no longer answers. The group cannot be used after this.
class RankLost : public MachineError {
  public:
    RankLost(Problem problem, std::vector<int> ranks)
        : MachineError(std::move(problem)), ranks_(std::move(ranks)) {}
    [[nodiscard]] const std::vector<int>& ranks() const { return ranks_; }

  private:
    std::vector<int> ranks_;
};

// A collective in progress. wait() blocks the host on the CPU; on a GPU it makes
// later GPU work wait.
class PendingCollective {
  public:
    virtual ~PendingCollective() = default;
    virtual void wait() = 0;
    [[nodiscard]] virtual std::int64_t done_ns() const = 0;  // 0: unknown
};

// Time of the sums and broadcasts between two marks, by the device's own clock.
struct CollectiveTimes {
    std::int64_t exposed_ns = 0;  // the device had nothing else to compute
    std::int64_t total_ns = 0;    // collectives in progress, hidden or not
};

// Where the device is: before it waits for the sums of a mark, waiting for them, or past them.
enum class AtMark { before, waiting, passed };

// The mark of the weights that rank 0 sends at the start; the steps' marks count from 0.
inline constexpr std::int64_t kStartMark = -1;

// The device's own collectives (NCCL), from libsaturate_cuda.so.
class DeviceCollectives {
  public:
    virtual ~DeviceCollectives() = default;
    [[nodiscard]] virtual std::unique_ptr<PendingCollective> start_sum(torch::Tensor tensor) = 0;
    [[nodiscard]] virtual std::unique_ptr<PendingCollective> start_broadcast(
        torch::Tensor tensor) = 0;
    // Called before and after the device waits for the collectives started since the last mark.
    // Marks count up.
    virtual void mark_waiting(std::int64_t mark) = 0;
    virtual void mark_waited(std::int64_t mark) = 0;
    // Times of a mark that the device has passed; its collectives hold what they sent until then.
    // Never waits. Absent if not yet passed or forgotten.
    [[nodiscard]] virtual std::optional<CollectiveTimes> times(std::int64_t mark) = 0;
    [[nodiscard]] virtual AtMark stands_at(std::int64_t mark) = 0;  // never waits
    // Aborts collectives that wait for a lost rank, so that the device computes and answers again.
    // No collective works afterwards.
    virtual void give_up() noexcept = 0;
};

class ProcessGroup {
  public:
    // Returns when all ranks have joined. Throws RankLost with the ranks that did not.
    explicit ProcessGroup(const GroupSettings& settings);
    ~ProcessGroup();  // rank 0 serves the store, so it waits a while for the others to leave
    ProcessGroup(const ProcessGroup&) = delete;
    ProcessGroup& operator=(const ProcessGroup&) = delete;

    [[nodiscard]] int rank() const;
    [[nodiscard]] int count() const;
    [[nodiscard]] bool is_first() const { return rank() == 0; }
    // From now on tensors on the device use these collectives.
    void use_device(std::unique_ptr<DeviceCollectives> device);
    [[nodiscard]] DeviceCollectives* device();  // null: everything goes over the CPU
    [[nodiscard]] c10d::Store& store();

    // Returns when the device has passed the mark. Throws RankLost; a plain wait for the device
    // would never return.
    void await_device(std::int64_t mark);

    // Both work in place; wait() throws RankLost.
    [[nodiscard]] std::unique_ptr<PendingCollective> start_sum(torch::Tensor tensor);
    [[nodiscard]] std::unique_ptr<PendingCollective> start_broadcast(
        torch::Tensor tensor);  // from rank 0
    void sum(const torch::Tensor& tensor) { start_sum(tensor)->wait(); }
    void broadcast(const torch::Tensor& tensor) { start_broadcast(tensor)->wait(); }
    [[nodiscard]] std::string text_of_first(const std::string& mine);
    [[nodiscard]] std::vector<std::string> texts_of_all(const std::string& mine);

    void stands(std::int64_t step, const char* doing);  // quoted in the other ranks' messages
    // Announces that this rank ends. The other ranks' messages then give the reason.
    void tell_failed(const std::string& why) noexcept;
    [[nodiscard]] bool is_lost() const;  // a RankLost was thrown
    // Aborts the device's collectives. Afterwards reads from the device no longer
    // wait for the lost rank.
    void abort_device() noexcept;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
