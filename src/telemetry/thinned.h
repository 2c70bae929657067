// SPDX-License-Identifier: Apache-2.0
// Keeps some values of a long stream, spread evenly over it, and always the last one. For drawing
// and for statistics that need only a few thousand values. Do not compute sums from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace saturate {

// Takes every value at first. When the list is full, drops every other value and from then on takes
// only every second, fourth ... value.
template <typename T>
class Thinned {
  public:
    explicit Thinned(std::size_t most) : most_(most) {}

    void add(const T& value) {
        bool is_taken = seen_++ % stride_ == 0;
        last_ = is_taken ? std::nullopt : std::optional<T>(value);
        if (!is_taken) return;
        kept_.push_back(value);
        if (kept_.size() < most_) return;
        std::size_t out = 0;
        if (kept_.size() % 2 == 0) last_ = kept_.back();
        for (std::size_t i = 0; i < kept_.size(); i += 2) {
            if (out != i) kept_[out] = std::move(kept_[i]);
            ++out;
        }
        kept_.resize(out);
        stride_ *= 2;
    }

    [[nodiscard]] std::int64_t seen() const { return seen_; }
    [[nodiscard]] std::vector<T> values() const {
        std::vector<T> out = kept_;
        if (last_) out.push_back(*last_);
        return out;
    }

  private:
    std::size_t most_;
    std::int64_t stride_ = 1;
    std::int64_t seen_ = 0;
    std::vector<T> kept_;
    std::optional<T> last_;  // if it is not in kept_
};

}  // namespace saturate
