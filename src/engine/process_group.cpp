// SPDX-License-Identifier: Apache-2.0
#include "engine/process_group.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/clock.h"

namespace saturate {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSlice{1000};     // a collective that takes longer is investigated
constexpr milliseconds kLinger{10'000};  // how long rank 0 keeps the store open for the others
constexpr milliseconds kPoll{20};

std::string first_line(const char* text) {
    std::string_view view(text);
    return std::string(view.substr(0, view.find('\n')));
}

class StoreKeys final : public KeyStore {
  public:
    explicit StoreKeys(c10::intrusive_ptr<c10d::Store> store) : store_(std::move(store)) {}
    void set(const std::string& key, const std::string& value) override {
        store_->set(key, std::vector<std::uint8_t>(value.begin(), value.end()));
    }
    std::vector<std::string> get(const std::vector<std::string>& keys) override {
        std::vector<std::string> out;
        for (const auto& value : store_->multiGet(keys))
            out.emplace_back(value.begin(), value.end());
        return out;
    }

  private:
    c10::intrusive_ptr<c10d::Store> store_;
};

// The address from which this host reaches the store, i.e. on the network that the ranks share. A
// host name that resolves to another network, or to the loopback of another host, is the classic
// reason for a hang.
std::string own_address(const std::string& address, int port) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_DGRAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
        return "";
    std::string out;
    for (addrinfo* one = found; one && out.empty(); one = one->ai_next) {
        int fd = ::socket(one->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0) continue;
        sockaddr_storage own{};
        socklen_t length = sizeof own;
        char text[NI_MAXHOST] = {};
        // Nothing is sent: connecting a datagram socket only chooses the route.
        if (::connect(fd, one->ai_addr, one->ai_addrlen) == 0 &&
            ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length) == 0 &&
            ::getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text, sizeof text, nullptr, 0,
                          NI_NUMERICHOST) == 0) {
            out = text;
        }
        ::close(fd);
    }
    ::freeaddrinfo(found);
    return out;
}

std::shared_ptr<::gloo::transport::Device> gloo_device(const GroupSettings& settings) {
    if (const char* name = std::getenv("GLOO_SOCKET_IFNAME"); name && *name)
        return c10d::ProcessGroupGloo::createDeviceForInterface(name);
    std::string own = own_address(settings.address, settings.port);
    return own.empty() ? c10d::ProcessGroupGloo::createDefaultDevice()
                       : c10d::ProcessGroupGloo::createDeviceForHostname(own);
}

Problem lost_problem(const Blame& blame, int count) {
    std::string fix = "--resume continues from the last checkpoint";
    if (blame.ranks.empty()) {
        return {.found = fmt::format("the ranks lost each other: {}", blame.why),
                .expected = fmt::format("{} ranks that answer until the end", count),
                .fix = "check the network between the hosts; " + fix};
    }
    return {.found = fmt::format("{} of {} is lost: {}", ranks_text(blame.ranks), count, blame.why),
            .expected = fmt::format("{} ranks that answer until the end", count),
            .fix = fmt::format("check the log of {}; {}", ranks_text(blame.ranks), fix)};
}

}  // namespace

struct ProcessGroup::Impl {
    explicit Impl(const GroupSettings& given) : settings(given) {
        connect();
        watch = std::make_unique<RankWatch>(std::make_unique<StoreKeys>(store->clone()),
                                            settings.rank, settings.count,
                                            settings.store_is_served ? -1 : 0, settings.times);
        wait_for_all();
        // Longer than our own timeouts, so that our message appears and not Gloo's.
        auto options = c10d::ProcessGroupGloo::Options::create(
            settings.times.patience + settings.times.lost + milliseconds(60'000));
        options->devices.push_back(gloo_device(settings));
        options->threads = 2;
        gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(
            c10::make_intrusive<c10d::PrefixStore>("gloo", store), settings.rank, settings.count,
            options);
    }

    void connect() {
        c10d::TCPStoreOptions options;
        options.port = static_cast<std::uint16_t>(settings.port);
        options.isServer = settings.rank == 0 && !settings.store_is_served;
        options.waitWorkers = false;
        options.timeout = settings.join_most;
        try {
            store = c10::make_intrusive<c10d::TCPStore>(settings.address, options);
        } catch (const std::exception& error) {
            if (options.isServer) {
                throw MachineError({.found = fmt::format("rank 0 cannot listen on port {}: {}",
                                                         settings.port, first_line(error.what())),
                                    .expected = "a free port",
                                    .fix = "choose another one with MASTER_PORT"});
            }
            throw RankLost(
                {.found = fmt::format("rank {} finds no rank 0 at {}:{} within {} s", settings.rank,
                                      settings.address, settings.port,
                                      settings.join_most.count() / 1000),
                 .expected = "rank 0 listening there",
                 .fix =
                     "MASTER_ADDR and MASTER_PORT name the host of rank 0 and a free port of it"},
                {0});
        }
        if (!settings.prefix.empty())
            store = c10::make_intrusive<c10d::PrefixStore>(settings.prefix, store);
    }

    void wait_for_all() {
        auto key = [](int rank) { return fmt::format("here/{}", rank); };
        std::int64_t begin = now_ns();
        store->set(key(settings.rank), std::vector<std::uint8_t>{1});
        std::vector<int> missing;
        for (int i = 0; i < settings.count; ++i) missing.push_back(i);
        while (true) {
            std::erase_if(missing, [&](int rank) { return store->check({key(rank)}); });
            if (missing.empty()) return;
            if (now_ns() - begin > settings.join_most.count() * 1'000'000) break;
            std::this_thread::sleep_for(kPoll);
        }
        throw RankLost(
            {.found = fmt::format("{} of {} did not join within {} s", ranks_text(missing),
                                  settings.count, settings.join_most.count() / 1000),
             .expected = "all ranks, started at about the same time",
             .fix = fmt::format("check the log of {}", ranks_text(missing))},
            missing);
    }

    [[noreturn]] void throw_lost(const Blame& blame) {
        lost = true;
        lost_ranks = blame.ranks;
        watch->tell_lost(blame);
        throw RankLost(lost_problem(blame, settings.count), blame.ranks);
    }

    // Waits in slices. Only a collective that is slow or broken costs more than its wait.
    void await(c10d::Work& work) {
        std::int64_t begin = now_ns(), broke_ns = 0;
        while (true) {
            std::string said;
            try {
                work.wait(kSlice);
                return;
            } catch (const std::exception& error) {
                said = first_line(error.what());
            }
            bool broken = work.isCompleted();
            if (broken && work.isSuccess()) return;
            if (broken && broke_ns == 0) broke_ns = now_ns();
            if (auto blame = watch->blame(begin, broken)) throw_lost(*blame);
            if (!broken) continue;
            std::int64_t most = (settings.times.stale + settings.times.lost).count() * 1'000'000;
            if (now_ns() - broke_ns > most) throw_lost({{}, said});
            std::this_thread::sleep_for(kPoll);
        }
    }

    // The device has queued work when this is called, so a late answer costs nothing.
    void await_device(std::int64_t mark) {
        constexpr std::chrono::microseconds kAskAgain{100};
        std::int64_t begin = now_ns(), look_ns = begin + milliseconds(kSlice).count() * 1'000'000;
        while (device->stands_at(mark) != AtMark::passed) {
            if (now_ns() < look_ns) {
                std::this_thread::sleep_for(kAskAgain);
            } else if (auto blame = watch->blame(begin, false)) {
                throw_lost(*blame);
            }
        }
    }

    // The store ends with the process that serves it: rank 0 stays until the others have left.
    void leave() noexcept {
        try {
            auto key = [](int rank) { return fmt::format("bye/{}", rank); };
            store->set(key(settings.rank), std::vector<std::uint8_t>{1});
            if (settings.rank != 0 || settings.store_is_served) return;
            std::int64_t until = now_ns() + kLinger.count() * 1'000'000;
            for (int i = 1; i < settings.count; ++i) {
                if (std::ranges::find(lost_ranks, i) != lost_ranks.end()) continue;
                while (!store->check({key(i)})) {
                    if (now_ns() > until) return;
                    std::this_thread::sleep_for(kPoll);
                }
            }
        } catch (const std::exception&) {  // nobody is left to tell
        }
    }

    GroupSettings settings;
    c10::intrusive_ptr<c10d::Store> store;
    std::unique_ptr<RankWatch> watch;
    c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;
    std::unique_ptr<DeviceCollectives> device;
    std::atomic<bool> lost{false}, failed{false};
    std::vector<int> lost_ranks;
};

namespace {

class GlooCollective final : public PendingCollective {
  public:
    using Await = std::function<void(c10d::Work&)>;
    GlooCollective(c10::intrusive_ptr<c10d::Work> work, Await await)
        : work_(std::move(work)),
          await_(std::move(await)),
          done_(std::make_shared<std::atomic<std::int64_t>>(0)) {
        work_->getFuture()->addCallback([done = done_](auto&) { *done = now_ns(); });
    }
    void wait() override { await_(*work_); }
    [[nodiscard]] std::int64_t done_ns() const override { return *done_; }

  private:
    c10::intrusive_ptr<c10d::Work> work_;
    Await await_;
    std::shared_ptr<std::atomic<std::int64_t>> done_;  // shared: the callback may outlive us
};

}  // namespace

ProcessGroup::ProcessGroup(const GroupSettings& settings)
    : impl_(std::make_unique<Impl>(settings)) {}

ProcessGroup::~ProcessGroup() {
    impl_->leave();
    // Collectives that never end still hold Gloo's threads and perhaps ours. Leave them until the
    // process ends: destroying the group would wait for the lost rank.
    if (impl_->lost || impl_->failed) (void)impl_.release();
}

int ProcessGroup::rank() const { return impl_->settings.rank; }
int ProcessGroup::count() const { return impl_->settings.count; }
bool ProcessGroup::is_lost() const { return impl_->lost; }
c10d::Store& ProcessGroup::store() { return *impl_->store; }
void ProcessGroup::abort_device() noexcept {
    if (impl_->device) impl_->device->give_up();
}

void ProcessGroup::await_device(std::int64_t mark) { impl_->await_device(mark); }

DeviceCollectives* ProcessGroup::device() { return impl_->device.get(); }

void ProcessGroup::use_device(std::unique_ptr<DeviceCollectives> device) {
    impl_->device = std::move(device);
}

std::unique_ptr<PendingCollective> ProcessGroup::start_sum(torch::Tensor tensor) {
    impl_->watch->count_collective();
    if (impl_->device && !tensor.is_cpu()) return impl_->device->start_sum(std::move(tensor));
    std::vector<torch::Tensor> tensors{std::move(tensor)};
    return std::make_unique<GlooCollective>(impl_->gloo->allreduce(tensors),
                                            [this](c10d::Work& work) { impl_->await(work); });
}

std::unique_ptr<PendingCollective> ProcessGroup::start_broadcast(torch::Tensor tensor) {
    impl_->watch->count_collective();
    if (impl_->device && !tensor.is_cpu()) return impl_->device->start_broadcast(std::move(tensor));
    std::vector<torch::Tensor> tensors{std::move(tensor)};
    return std::make_unique<GlooCollective>(impl_->gloo->broadcast(tensors),
                                            [this](c10d::Work& work) { impl_->await(work); });
}

std::string ProcessGroup::text_of_first(const std::string& mine) {
    torch::Tensor length = torch::full({1}, static_cast<std::int64_t>(mine.size()), torch::kLong);
    broadcast(length);
    std::int64_t size = *length.const_data_ptr<std::int64_t>();
    if (size == 0) return "";
    torch::Tensor bytes = torch::zeros({size}, torch::kByte);
    if (is_first()) std::copy(mine.begin(), mine.end(), bytes.mutable_data_ptr<std::uint8_t>());
    broadcast(bytes);
    const std::uint8_t* first = bytes.const_data_ptr<std::uint8_t>();
    return {first, first + size};
}

std::vector<std::string> ProcessGroup::texts_of_all(const std::string& mine) {
    torch::Tensor lengths = torch::zeros({count()}, torch::kLong);
    lengths.mutable_data_ptr<std::int64_t>()[rank()] = static_cast<std::int64_t>(mine.size());
    sum(lengths);
    const std::int64_t* sizes = lengths.const_data_ptr<std::int64_t>();
    std::int64_t longest = std::max<std::int64_t>(1, *std::max_element(sizes, sizes + count()));
    torch::Tensor bytes = torch::zeros({count(), longest}, torch::kByte);
    auto* all = bytes.mutable_data_ptr<std::uint8_t>();
    std::copy(mine.begin(), mine.end(), all + rank() * longest);
    sum(bytes);
    std::vector<std::string> out;
    for (int i = 0; i < count(); ++i)
        out.emplace_back(all + i * longest, all + i * longest + sizes[i]);
    return out;
}

void ProcessGroup::stands(std::int64_t step, const char* doing) {
    impl_->watch->stands(step, doing);
}

void ProcessGroup::tell_failed(const std::string& why) noexcept {
    if (impl_->lost || impl_->failed.exchange(true)) return;
    impl_->watch->tell_failed(why);
}

}  // namespace saturate
