// SPDX-License-Identifier: Apache-2.0
#include "engine/feed.h"

#include <fmt/format.h>

#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace saturate {

Feed::Feed(Loader& loader, DeviceBackend& backend, LoaderState start)
    : loader_(loader),
      backend_(backend),
      state_(start),
      ahead_(static_cast<std::size_t>(backend.uploads_ahead())) {}

void Feed::fetch() {
    std::int64_t begin = now_ns();
    std::optional<Batch> batch = unsent_ ? std::exchange(unsent_, {}) : loader_.next();
    std::int64_t loaded = now_ns();
    times_.wait_ns += loaded - begin;
    if (!batch) {
        ready_.emplace_back(std::nullopt);
        return;
    }
    try {
        with_memory_errors([&] { ready_.emplace_back(backend_.start_upload(*batch)); });
    } catch (const c10::OutOfMemoryError&) {
        ahead_ = 0;  // no room for two batches at once
        unsent_ = std::move(batch);
    }
    if (unsent_ && ready_.empty()) {
        ready_.emplace_back(upload_alone(*unsent_));
        unsent_.reset();
    }
    times_.copy_ns += now_ns() - loaded;
}

// Uploads one batch after freeing all cached memory.
Upload Feed::upload_alone(const Batch& batch) {
    std::string said;
    backend_.release_cached();
    try {
        Upload out;
        with_memory_errors([&] { out = backend_.start_upload(batch); });
        return out;
    } catch (const c10::OutOfMemoryError& error) {
        said = error.what_without_backtrace();
    }
    throw MachineError(
        {.found = fmt::format("out of memory for a batch of {}: {}", batch.size, said),
         .expected = "memory for the model and one batch",
         .fix = "a smaller batch_size with more gradient_accumulation_steps"});
}

std::optional<Upload> Feed::next() {
    if (first_) return first_;
    if (ready_.empty()) fetch();
    std::optional<Upload> upload = std::move(ready_.front());
    ready_.pop_front();
    if (upload) {
        state_.batch = upload->batch.index + 1;
        backend_.await_upload(*upload);
        if (repeats_) first_ = upload;
        top_up();
    } else {
        state_ = {.epoch = state_.epoch + 1, .batch = 0};
    }
    return upload;
}

void Feed::top_up() {
    while (!repeats_ && ready_.size() < ahead_ && has_loaded()) fetch();
}

Feed::Times Feed::take_times() { return std::exchange(times_, {}); }

}  // namespace saturate
