// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint_writer.h"

#include <fmt/format.h>
#include <pthread.h>

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace saturate {

struct CheckpointWriter::Impl {
    struct Order {
        Checkpoint checkpoint;
        bool is_best = false;
    };

    Impl(std::filesystem::path where, std::size_t how_many)
        : folder(std::move(where)), keep(how_many), thread([this] { work(); }) {}

    void work() {
        ::pthread_setname_np(::pthread_self(), "checkpoints");
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals belong to the main thread
        std::unique_lock lock(mutex);
        while (true) {
            changed.wait(lock, [&] { return order || stopping; });
            if (!order) return;
            lock.unlock();
            SavedCheckpoint saved = write(*order);
            lock.lock();
            finished.push_back(std::move(saved));
            order.reset();
            changed.notify_all();
        }
    }

    [[nodiscard]] SavedCheckpoint write(const Order& given) const {
        SavedCheckpoint saved{.step = given.checkpoint.step, .is_best = given.is_best};
        std::int64_t begin = now_ns();
        try {
            saved.path = write_checkpoint(folder, given.checkpoint);
            if (given.is_best) mark_best(folder, saved.path);
            prune_checkpoints(folder, keep);
        } catch (const Failure& failure) {
            const Problem& problem = failure.problems().at(0);
            saved.failure = fmt::format("{}: {}", problem.where.text(), problem.found);
        } catch (const std::exception& error) {
            saved.failure = error.what();
        }
        saved.duration_ns = now_ns() - begin;
        return saved;
    }

    std::filesystem::path folder;
    std::size_t keep;
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Order> order;  // being written, or about to be
    bool stopping = false;
    std::vector<SavedCheckpoint> finished;
    std::jthread thread;  // last: it uses the rest
};

CheckpointWriter::CheckpointWriter(std::filesystem::path folder, std::size_t keep)
    : impl_(std::make_unique<Impl>(std::move(folder), keep)) {}

CheckpointWriter::~CheckpointWriter() {
    {
        std::lock_guard lock(impl_->mutex);
        impl_->stopping = true;
    }
    impl_->changed.notify_all();
}

void CheckpointWriter::save(Checkpoint checkpoint, bool is_best) {
    wait();
    {
        std::lock_guard lock(impl_->mutex);
        impl_->order.emplace(Impl::Order{std::move(checkpoint), is_best});
    }
    impl_->changed.notify_all();
}

std::vector<SavedCheckpoint> CheckpointWriter::take_finished() {
    std::lock_guard lock(impl_->mutex);
    return std::exchange(impl_->finished, {});
}

void CheckpointWriter::wait() {
    std::unique_lock lock(impl_->mutex);
    impl_->changed.wait(lock, [&] { return !impl_->order; });
}

}  // namespace saturate
