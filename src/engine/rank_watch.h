// SPDX-License-Identifier: Apache-2.0
// Heartbeats between the ranks of a job. Once a second a thread writes to a shared store that this
// rank is alive and what it is doing. When a collective is slow or breaks, blame() names the rank
// it waits for. stands(), count_collective() and blame() are called from the training thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace saturate {

// Keys that every rank can read. Calls may block for a long time, or throw std::exception, when the
// network or the server is gone.
class KeyStore {
  public:
    virtual ~KeyStore() = default;
    virtual void set(const std::string& key, const std::string& value) = 0;
    // Every rank sets its own keys before the watch begins, so all of them exist.
    [[nodiscard]] virtual std::vector<std::string> get(const std::vector<std::string>& keys) = 0;
};

struct RankTimes {
    std::chrono::milliseconds beat{1000};         // between two heartbeats
    std::chrono::milliseconds stale{3000};        // silence allowed once a connection has broken
    std::chrono::milliseconds lost{15'000};       // silence that means the process or host is gone
    std::chrono::milliseconds patience{300'000};  // for a rank that is alive but does not come
};

struct Blame {
    std::vector<int> ranks;  // empty: the culprit is unknown
    std::string why;         // "no sign of life for 15 s"
};

class RankWatch {
  public:
    // Sets this rank's keys before it returns. `server`: the rank that serves the store; -1: none.
    RankWatch(std::unique_ptr<KeyStore> store, int rank, int count, int server, RankTimes times);
    ~RankWatch();

    // Sets what this rank is doing, for the others' messages. `doing` is a literal: "loading".
    void stands(std::int64_t step, const char* doing);
    void count_collective();
    // Tells the others why this rank ends. Returns when the store has the message,
    // or after two seconds.
    void tell_failed(const std::string& why) noexcept;
    void tell_lost(const Blame& blame) noexcept;

    // Returns the ranks that a collective begun at `since_ns` waits for, or nothing: ask again.
    // Takes up to a second. `broken`: the collective ended with an error, so blame somebody sooner.
    [[nodiscard]] std::optional<Blame> blame(std::int64_t since_ns, bool broken);

    [[nodiscard]] const RankTimes& times() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// "rank 2", "ranks 1, 2 and 5"
[[nodiscard]] std::string ranks_text(const std::vector<int>& ranks);

}  // namespace saturate
