// SPDX-License-Identifier: Apache-2.0
#include "engine/feed.h"

#include <utility>

#include "base/clock.h"

namespace saturate {

Feed::Feed(Loader& loader, DeviceBackend& backend, LoaderState start)
    : loader_(loader), backend_(backend), state_(start) {}

void Feed::fetch() {
    std::int64_t begin = now_ns();
    std::optional<Batch> batch = loader_.next();
    std::int64_t loaded = now_ns();
    times_.wait_ns += loaded - begin;
    if (!batch) {
        ready_.emplace_back(std::nullopt);
        return;
    }
    ready_.emplace_back(backend_.start_upload(std::move(*batch)));
    times_.copy_ns += now_ns() - loaded;
}

std::optional<Upload> Feed::next() {
    if (first_) return first_;
    while (ready_.size() < static_cast<std::size_t>(backend_.uploads_ahead()) + 1) fetch();
    std::optional<Upload> upload = std::move(ready_.front());
    ready_.pop_front();
    if (upload) {
        state_.batch = upload->batch.index + 1;
        backend_.await_upload(*upload);
        if (repeats_) first_ = upload;
    } else {
        state_ = {.epoch = state_.epoch + 1, .batch = 0};
    }
    return upload;
}

Feed::Times Feed::take_times() { return std::exchange(times_, {}); }

}  // namespace saturate
