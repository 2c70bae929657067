// SPDX-License-Identifier: Apache-2.0
// Signs of life between the ranks of a job. A thread tells a shared store once a second that this
// rank lives and where it stands; when a collective is slow or breaks, blame() says whom it waits
// for. stands(), count_collective() and blame() from the training thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace saturate {

// Keys that every rank can read. Calls may block for long, or throw std::exception, when the
// network or the server is gone.
class KeyStore {
  public:
    virtual ~KeyStore() = default;
    virtual void set(const std::string& key, const std::string& value) = 0;
    // The keys are there: every rank sets its own before the watch begins.
    [[nodiscard]] virtual std::vector<std::string> get(const std::vector<std::string>& keys) = 0;
};

struct RankTimes {
    std::chrono::milliseconds beat{1000};         // between two signs of life
    std::chrono::milliseconds stale{3000};        // without one, once a connection broke
    std::chrono::milliseconds lost{15'000};       // without one: the process or its host is gone
    std::chrono::milliseconds patience{300'000};  // for a rank that lives and does not come
};

struct Blame {
    std::vector<int> ranks;  // empty: nobody can be named
    std::string why;         // "no sign of life for 15 s"
};

class RankWatch {
  public:
    // Sets this rank's keys before it returns. `server`: the rank that serves the store, -1: none.
    RankWatch(std::unique_ptr<KeyStore> store, int rank, int count, int server, RankTimes times);
    ~RankWatch();

    // Where this rank stands, for the others' messages. `doing` is a literal: "loading".
    void stands(std::int64_t step, const char* doing);
    void count_collective();
    // Tells the others why this rank ends. Returns when the store has it, or after two seconds.
    void tell_failed(const std::string& why) noexcept;
    void tell_lost(const Blame& blame) noexcept;

    // Whom a collective begun at `since_ns` waits for; nothing yet: ask again. Takes up to a
    // second. `broken`: it ended with an error, so somebody is to be found soon.
    [[nodiscard]] std::optional<Blame> blame(std::int64_t since_ns, bool broken);

    [[nodiscard]] const RankTimes& times() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// "rank 2", "ranks 1, 2 and 5"
[[nodiscard]] std::string ranks_text(const std::vector<int>& ranks);

}  // namespace saturate
