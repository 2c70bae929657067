// SPDX-License-Identifier: Apache-2.0
#include "engine/rank_team.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "base/clock.h"
#include "base/text.h"
#include "engine/random_state.h"
#include "engine/seed.h"

namespace saturate {

namespace {

constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15u;
constexpr std::chrono::milliseconds kStepMost{60'000};  // limit for one step of the device

std::uint64_t hash_bytes(std::uint64_t hash, const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::uint8_t*>(data);
    for (; size >= 8; size -= 8, bytes += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes, 8);
        hash = (hash ^ word) * kSpread;
        hash ^= hash >> 29;
    }
    for (; size > 0; --size, ++bytes) hash = (hash ^ *bytes) * kSpread;
    return hash;
}

// The host's state, followed by the device's.
torch::Tensor both_states(DeviceBackend& backend) {
    torch::Tensor host = random_state(torch::kCPU);
    std::optional<torch::Tensor> device = backend.random_state();
    return device ? torch::cat({host, *device}) : host;
}

class OneProcess final : public Ranks {
  public:
    [[nodiscard]] int rank() const override { return 0; }
    [[nodiscard]] int count() const override { return 1; }
    void stands(std::int64_t, const char*) override {}
    void compare(const std::vector<RankFact>&) override {}
    std::string text_of_first(const std::string& mine) override { return mine; }
    void from_first(const NamedTensors&) override {}
    void compare_weights(const NamedTensors&, std::int64_t) override {}
    NamedTensors random_states(DeviceBackend&) override { return {}; }
    void set_random_states(DeviceBackend&, const NamedTensors&, std::uint64_t,
                           std::int64_t) override {}
    void join(TrainingStep&, std::vector<torch::Tensor>, const ReducerSettings&) override {}
    void settle() override {}
    AtMark stands_at(std::optional<std::int64_t>) override { return AtMark::passed; }
    std::optional<CollectiveTimes> device_times(std::int64_t) override { return std::nullopt; }
    StopWish agree(TrainingStep&, const StopWish& own) override { return own; }
    void mean(std::vector<float>&) override {}
    void sum(torch::Tensor&, std::int64_t&) override {}
    std::string text_of_any(const std::string& mine) override { return mine; }
    void give_up(const std::string&) noexcept override {}
    void lose_others() noexcept override {}
};

class GroupRanks final : public Ranks {
  public:
    explicit GroupRanks(ProcessGroup& group) : group_(group) {}
    [[nodiscard]] int rank() const override { return group_.rank(); }
    [[nodiscard]] int count() const override { return group_.count(); }
    void stands(std::int64_t step, const char* doing) override { group_.stands(step, doing); }

    void compare(const std::vector<RankFact>& facts) override {
        std::string mine;
        for (const RankFact& fact : facts) mine += fact.value + "\n";
        std::vector<std::string> all = group_.texts_of_all(mine);
        std::vector<std::string_view> first = split(all[0], '\n');
        for (std::size_t rank = 1; rank < all.size(); ++rank) {
            std::vector<std::string_view> theirs = split(all[rank], '\n');
            for (std::size_t i = 0; i < facts.size(); ++i) {
                if (i < theirs.size() && theirs[i] == first[i]) continue;
                throw UserError(
                    {.found = fmt::format("{}: {} on rank {}, and {} on rank 0", facts[i].name,
                                          i < theirs.size() ? theirs[i] : "none", rank, first[i]),
                     .expected = "the same data and settings on all ranks",
                     .fix = "the same configuration and the same files on all hosts"});
            }
        }
    }

    std::string text_of_first(const std::string& mine) override {
        return group_.text_of_first(mine);
    }

    void from_first(const NamedTensors& tensors) override {
        torch::NoGradGuard no_gradients;
        for (const auto& [name, tensor] : tensors) {
            torch::Tensor whole = tensor.detach().contiguous();
            group_.broadcast(whole);
            if (!is_first() && whole.data_ptr() != tensor.data_ptr()) tensor.detach().copy_(whole);
        }
        // The next read of a weight would wait for the device, without noticing a lost rank.
        if (DeviceCollectives* device = group_.device()) {
            device->mark_waiting(kStartMark);
            device->mark_waited(kStartMark);
            group_.await_device(kStartMark);
            (void)device->times(kStartMark);  // not needed, but what was sent is held until then
        }
    }

    void compare_weights(const NamedTensors& weights, std::int64_t step) override {
        if (alone_) return;
        settle();
        torch::Tensor hashes = torch::zeros({count()}, torch::kLong);
        auto* values = hashes.mutable_data_ptr<std::int64_t>();
        values[rank()] = static_cast<std::int64_t>(hash_of(weights, true));
        group_.sum(hashes);
        std::vector<int> others;
        for (int i = 1; i < count(); ++i) {
            if (values[i] != values[0]) others.push_back(i);
        }
        if (others.empty()) return;
        throw MachineError({.found = fmt::format("the weights of {} differ from those of rank 0 "
                                                 "after step {}",
                                                 ranks_text(others), step),
                            .expected = "the same weights on all ranks",
                            .fix = "the same build and the same kind of device on all hosts"});
    }

    NamedTensors random_states(DeviceBackend& backend) override {
        if (alone_) return {};
        torch::Tensor own = both_states(backend);
        torch::Tensor all = torch::zeros({count(), own.numel()}, torch::kByte);
        all[rank()].copy_(own);
        group_.sum(all);
        NamedTensors out;
        for (int i = 1; i < count(); ++i)
            out.emplace_back(fmt::format("random.rank{}", i), all[i].clone());
        return out;
    }

    void set_random_states(DeviceBackend& backend, const NamedTensors& kept, std::uint64_t seed,
                           std::int64_t step) override {
        // So far every rank has the generator that the checkpoint saved for rank 0, which would
        // give the same dropout on all ranks.
        if (!is_first())
            set_seed(seed ^ (static_cast<std::uint64_t>(rank()) * kSpread +
                             static_cast<std::uint64_t>(step)));
        torch::Tensor own = both_states(backend);
        torch::Tensor all = torch::zeros({count(), own.numel()}, torch::kByte);
        bool there = false;
        if (is_first() && static_cast<int>(kept.size()) == count() - 1) {
            there = true;
            for (const auto& [name, state] : kept) {
                auto rank = parse_integer(std::string_view(name).substr(name.rfind('k') + 1));
                // Another size means another kind of device, with other generators.
                if (!rank || *rank < 1 || *rank >= count() || state.numel() != own.numel())
                    there = false;
                else
                    all[*rank].copy_(state);
            }
        }
        if (group_.text_of_first(there ? "1" : "0") != "1") return;
        group_.broadcast(all);
        if (is_first()) return;
        std::int64_t of_host = random_state(torch::kCPU).numel();
        set_random_state(torch::kCPU, all[rank()].narrow(0, 0, of_host).clone());
        if (own.numel() > of_host)
            backend.set_random_state(all[rank()].narrow(0, of_host, own.numel() - of_host).clone());
    }

    void settle() override {
        if (reducer_ && !alone_) reducer_->settle();
    }

    AtMark stands_at(std::optional<std::int64_t> mark) override {
        if (!mark || !group_.device()) return AtMark::passed;
        std::int64_t until = now_ns() + kStepMost.count() * 1'000'000;
        while (true) {
            AtMark at = group_.device()->stands_at(*mark);
            if (at != AtMark::before || now_ns() > until) return at;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }

    std::optional<CollectiveTimes> device_times(std::int64_t mark) override {
        return group_.device() ? group_.device()->times(mark) : std::nullopt;
    }

    void join(TrainingStep& step, std::vector<torch::Tensor> buffers,
              const ReducerSettings& settings) override {
        reducer_ = std::make_unique<GradientReducer>(group_, step.parameters(), std::move(buffers),
                                                     settings);
        step.set_reducer(reducer_.get());
    }

    StopWish agree(TrainingStep& step, const StopWish& own) override {
        if (alone_) return own;
        step.wish_to_stop(own);
        return step.wish_of_any();
    }

    void mean(std::vector<float>& losses) override {
        if (alone_) return;
        torch::Tensor values = torch::from_blob(
            losses.data(), {static_cast<std::int64_t>(losses.size())}, torch::kFloat);
        group_.sum(values);
        values.div_(count());
    }

    void sum(torch::Tensor& sums, std::int64_t& samples) override {
        torch::Tensor all = torch::zeros({sums.numel() + 1}, torch::kDouble);
        all.narrow(0, 0, sums.numel()).copy_(sums);
        all[sums.numel()].fill_(static_cast<double>(samples));
        group_.sum(all);
        sums.copy_(all.narrow(0, 0, sums.numel()));
        samples = static_cast<std::int64_t>(all[sums.numel()].item<double>());
    }

    std::string text_of_any(const std::string& mine) override {
        if (alone_) return mine;
        std::vector<std::string> all = group_.texts_of_all(mine);
        auto named =
            std::ranges::find_if(all, [](const std::string& text) { return !text.empty(); });
        if (named == all.end()) return mine;
        return fmt::format("{} (rank {})", *named, named - all.begin());
    }

    void give_up(const std::string& why) noexcept override {
        alone_ = true;
        group_.tell_failed(why);
        group_.abort_device();  // pending work waits for ranks that will not come
    }
    void lose_others() noexcept override {
        alone_ = true;
        group_.abort_device();
    }

  private:
    ProcessGroup& group_;
    std::unique_ptr<GradientReducer> reducer_;
    bool alone_ = false;
};

}  // namespace

void compare_devices(ProcessGroup& group, const RankDevice& own) {
    std::vector<std::string> all =
        group.texts_of_all(fmt::format("{}\n{}\n{}", own.kind, own.pci_bus_id, own.host));
    std::string_view kind = split(all[0], '\n')[0];
    std::map<std::string_view, std::size_t> taken;  // "pci_bus_id\nhost" and its first rank
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        std::vector<std::string_view> theirs = split(all[rank], '\n');
        if (theirs[0] != kind) {
            throw UserError({.found = fmt::format("rank {} trains on {}, and rank 0 on {}", rank,
                                                  theirs[0], kind),
                             .expected = "the same kind of device on all ranks",
                             .fix = fmt::format("--device {} makes each rank say what is missing",
                                                kind == "cpu" ? theirs[0] : kind)});
        }
        if (theirs[1].empty() || theirs[2].empty()) continue;
        auto [first, is_new] =
            taken.emplace(std::string_view(all[rank]).substr(theirs[0].size() + 1), rank);
        if (is_new) continue;
        throw UserError({.found = fmt::format("ranks {} and {} have the same GPU ({})",
                                              first->second, rank, theirs[1]),
                         .expected = "a GPU for each process",
                         .fix = "fewer processes on this host (--nproc), or other "
                                "CUDA_VISIBLE_DEVICES for each"});
    }
}

std::uint64_t hash_of(const NamedTensors& tensors, bool with_values) {
    std::uint64_t hash = 1;
    for (const auto& [name, tensor] : tensors) {
        hash = hash_bytes(hash, name.data(), name.size());
        for (std::int64_t length : tensor.sizes()) hash = hash_bytes(hash, &length, sizeof length);
        if (!with_values) continue;
        torch::Tensor values = tensor.detach().cpu().contiguous();
        hash = hash_bytes(hash, values.const_data_ptr(), values.nbytes());
    }
    return hash;
}

std::unique_ptr<Ranks> make_ranks(ProcessGroup* group) {
    if (!group) return std::make_unique<OneProcess>();
    return std::make_unique<GroupRanks>(*group);
}

}  // namespace saturate
