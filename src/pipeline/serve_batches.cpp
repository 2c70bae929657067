// SPDX-License-Identifier: Apache-2.0
#include "pipeline/serve_batches.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/system_error.h"
#include "pipeline/loader_report.h"
#include "pipeline/serve_frames.h"
#include "pipeline/serve_request.h"
#include "pipeline/shared_slabs.h"

namespace saturate {

namespace {

// How much is announced before Python asks for it: at least two batches, more if they are small.
// Not as many as memory would allow: what does not fit into the processor's cache takes longer to
// fill (windows of 1 MB a batch: 5.6 million a second with 6 slabs in use, 4.3 with 38).
constexpr std::size_t kAheadBytes = 32 << 20, kAheadMax = 16;
// Batches that follow each other this fast are announced several at once, up to half of what Python
// has room for: waking Python up for each, with cold caches, would take as long as filling it.
constexpr std::int64_t kFastBatchNs = 250'000;

// Collects the unusable samples until they can be reported.
class SkippedSamples final : public Recorder {
  public:
    void step(const StepRecord&) noexcept override {}
    void event(EventRecord record) noexcept override {
        if (record.kind != EventKind::bad_sample) return;
        std::lock_guard lock(mutex_);
        waiting_.push_back(record.values.line());
    }
    void device(DeviceSample) noexcept override {}
    void host(HostSample) noexcept override {}
    [[nodiscard]] std::vector<std::string> take() {
        std::lock_guard lock(mutex_);
        return std::exchange(waiting_, {});
    }

  private:
    std::mutex mutex_;
    std::vector<std::string> waiting_;
};

Json problem_json(std::string_view kind, const std::string& text, const std::string& place) {
    return Json::object({{"kind", kind}, {"text", text}, {"place", place}});
}

// Describes the exception being handled, for Python.
Json current_error() {
    try {
        throw;
    } catch (const UserError& error) {
        return problem_json("user", error.what(), error.problems().front().where.file);
    } catch (const MachineError& error) {
        return problem_json("machine", error.what(), error.problems().front().where.file);
    } catch (const std::system_error& error) {
        Problem problem = system_problem(error);
        return problem_json(is_users(error) ? "user" : "machine", problem.text(),
                            problem.where.file);
    } catch (const std::bad_alloc&) {
        return problem_json("machine", "error: the loader process has no memory left", "");
    } catch (const std::exception& error) {
        return problem_json("bug", error.what(), "");
    }
}

// Describes the opened data, and makes the loader keep enough slabs for those that Python holds.
Json opened_json(ServedData& data) {
    SlabRing layout(data.source->fields(), data.loader.batch_size, ordinary_memory());
    std::size_t ahead = std::clamp<std::size_t>(
        kAheadBytes / std::max<std::size_t>(layout.slab_bytes(), 1), 2, kAheadMax);
    if (std::uint64_t limit = data.loader.prefetch_bytes; limit > 0) {
        // One slab is being filled and two are Python's: announced batches must
        // not take their memory.
        std::size_t fit = limit / std::max<std::size_t>(layout.slab_bytes(), 1);
        ahead = std::min(ahead, fit > 4 ? fit - 3 : 1);
    }
    data.loader.held = static_cast<int>(ahead) + 1;
    data.told_at_once = std::max<std::size_t>(ahead / 2, 1);
    Json fields = Json::array();
    for (const FieldSpec& field : data.source->fields()) {
        fields.add(Json::object({{"name", field.name},
                                 {"dtype", element_name(field.element)},
                                 {"shape", Json::array_of(field.shape)},
                                 {"channels_last", field.channels_last},
                                 {"sample_bytes", field.bytes()}}));
    }
    const LoaderSettings& settings = data.loader;
    SampleOrder order({.size = data.source->size(),
                       .neighbours = data.source->neighbours(),
                       .batch_size = settings.batch_size,
                       .shuffle = settings.shuffle,
                       .drop_last = settings.drop_last,
                       .weights = settings.weights,
                       .seed = settings.seed,
                       .shard = settings.shard});
    return Json::object({{"samples", data.source->size()},
                         {"batches", order.batches_per_epoch()},
                         {"slab_bytes", layout.slab_bytes()},
                         {"ahead", ahead},
                         {"fields", fields},
                         {"classes", Json::array_of(data.classes)},
                         {"notes", Json::array_of(data.source->notes())}});
}

class BatchServer {
  public:
    explicit BatchServer(int socket) : socket_(socket) {}

    void run() {
        std::jthread sender([this] { send_batches(); });
        while (std::optional<Frame> frame = socket_.read()) {
            if (!take(*frame)) break;
        }
        {
            std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        changed_.notify_all();
    }

  private:
    // Returns false if nobody listens any more.
    [[nodiscard]] bool take(const Frame& frame) {
        switch (frame.kind) {
            case FrameKind::open:
                return open(frame);
            case FrameKind::start: {
                std::lock_guard lock(mutex_);
                wanted_ = LoaderState{.epoch = frame.a, .batch = frame.b};
                generation_ = frame.c;
                credits_ = 0;
                changed_.notify_all();
                return true;
            }
            case FrameKind::give:
                take_back(frame);
                return true;
            case FrameKind::stats:
                return tell_stats();
            default:
                return false;
        }
    }

    [[nodiscard]] bool open(const Frame& frame) {
        std::string_view payload = frame.payload;
        auto length = static_cast<std::size_t>(frame.a);
        try {
            ServedData data = open_request(Json::parse(payload.substr(0, length), "request"),
                                           payload.substr(std::min(length, payload.size())));
            data.loader.memory = kept_;
            Json answer = opened_json(data);
            {
                std::lock_guard lock(mutex_);
                data_ = std::make_shared<const ServedData>(std::move(data));
            }
            return tell({.kind = FrameKind::opened, .payload = answer.line()});
        } catch (...) {
            return tell({.kind = FrameKind::error, .payload = current_error().line()});
        }
    }

    // Takes back slabs that Python no longer needs. A negative number n means slab ~n, which
    // another process still maps: that process keeps the memory, and the slab gets new memory.
    void take_back(const Frame& frame) {
        std::vector<std::int64_t> numbers(frame.payload.size() / sizeof(std::int64_t));
        if (!numbers.empty())
            std::memcpy(numbers.data(), frame.payload.data(), numbers.size() * sizeof(numbers[0]));
        std::vector<Batch> done;  // destroyed without the lock, since that takes the ring's lock
        {
            std::lock_guard lock(mutex_);
            for (std::int64_t number : numbers) {
                auto found = lent_.find(number < 0 ? ~number : number);
                if (found == lent_.end()) continue;
                if (number < 0 && !replaced(found->second)) continue;
                done.push_back(std::move(found->second));
                lent_.erase(found);
            }
        }
        done.clear();
        {
            // Last, because a batch may be sent into memory that just came back.
            std::lock_guard lock(mutex_);
            credits_ += frame.a;
        }
        changed_.notify_all();
    }

    // Returns false if there is no memory; the slab then stays lent.
    [[nodiscard]] bool replaced(const Batch& batch) {
        try {
            shared_->replace(batch.fields[0].data);
            return true;
        } catch (const std::bad_alloc&) {
            return false;
        }
    }

    [[nodiscard]] bool tell_stats() {
        std::shared_ptr<Loader> loader;
        {
            std::lock_guard lock(mutex_);
            loader = loader_;
        }
        Json answer = Json::object();
        if (loader) {
            LoaderStats stats = loader->stats();
            answer = loader_json(stats);
            answer.set("why_slow", why_slow(stats));
        }
        return tell({.kind = FrameKind::told, .payload = answer.line()});
    }

    bool tell(const Frame& frame) {
        std::string bytes;
        append_frame(bytes, frame);
        return socket_.write(bytes);
    }

    void send_batches() {
        std::unique_lock lock(mutex_);
        while (true) {
            changed_.wait(lock, [&] { return stopping_ || wanted_ || (loader_ && credits_ > 0); });
            if (stopping_) break;
            if (wanted_) {
                begin(lock);
                continue;
            }
            std::shared_ptr<Loader> loader = loader_;
            std::int64_t generation = generation_;
            lock.unlock();
            bool goes_on = send_one(*loader, generation);
            lock.lock();
            if (!goes_on && loader_ == loader) loader_ = nullptr;
        }
        std::shared_ptr<Loader> last = std::move(loader_);
        lock.unlock();
        last.reset();
    }

    // Creates a loader that starts at the wanted place. Locked on entry and exit.
    void begin(std::unique_lock<std::mutex>& lock) {
        LoaderState start = *wanted_;
        std::int64_t generation = generation_;
        std::shared_ptr<const ServedData> data = data_;
        wanted_.reset();
        std::shared_ptr<Loader> old = std::move(loader_), fresh;
        lock.unlock();
        old.reset();    // stops its workers
        (void)flush();  // announces the old loader's batches, which Python gives back
        try {
            SATURATE_CHECK(data, "data is opened before batches are asked for");
            fresh = std::make_shared<Loader>(data->source, data->loader, skipped_, start);
        } catch (...) {
            (void)tell(
                {.kind = FrameKind::error, .c = generation, .payload = current_error().line()});
        }
        batch_ns_ = 0;
        told_at_once_ = data ? data->told_at_once : 1;
        tells_samples_ = data && data->tells_samples;
        lock.lock();
        loader_ = std::move(fresh);
    }

    // Sends the loader's next batch, or the end of its epoch. Returns false if no more can come.
    [[nodiscard]] bool send_one(Loader& loader, std::int64_t generation) {
        std::optional<Batch> batch;
        std::int64_t start_ns = now_ns();
        try {
            batch = loader.next();
        } catch (...) {
            tell_skipped();
            append_frame(
                told_,
                {.kind = FrameKind::error, .c = generation, .payload = current_error().line()});
            (void)flush();
            return false;
        }
        double took = static_cast<double>(now_ns() - start_ns);
        batch_ns_ = batch_ns_ > 0 ? batch_ns_ + (took - batch_ns_) / 8 : took;
        tell_skipped();
        if (!batch) {
            append_frame(told_, {.kind = FrameKind::end, .c = generation});
            return flush();
        }
        if (!tell_fresh_slabs()) return false;
        std::int64_t number = shared_->number_of(batch->fields[0].data);
        Frame frame{.kind = FrameKind::batch, .a = number, .b = batch->size, .c = generation};
        if (tells_samples_)
            frame.payload.assign(reinterpret_cast<const char*>(batch->samples.data()),
                                 batch->samples.size_bytes());
        append_frame(told_, frame);
        ++told_count_;
        bool is_last = false;
        {
            std::lock_guard lock(mutex_);
            lent_[number] = std::move(*batch);
            if (generation == generation_) --credits_;
            is_last = credits_ <= 0 || wanted_.has_value();
        }
        if (is_last || told_count_ >= told_at_once_ || batch_ns_ > kFastBatchNs) return flush();
        return true;
    }

    void tell_skipped() {
        for (std::string& line : skipped_.take())
            append_frame(told_, {.kind = FrameKind::skipped, .payload = std::move(line)});
    }

    // Python must know new memory before the first batch in it.
    [[nodiscard]] bool tell_fresh_slabs() {
        std::vector<SharedSlabs::Fresh> all = shared_->take_fresh();
        if (all.empty()) return true;
        bool is_there = flush();
        for (const SharedSlabs::Fresh& fresh : all) {
            is_there = is_there && socket_.write({.kind = FrameKind::slab,
                                                  .a = fresh.number,
                                                  .b = static_cast<std::int64_t>(fresh.bytes)},
                                                 fresh.file.get());
        }
        return is_there;
    }

    [[nodiscard]] bool flush() {
        told_count_ = 0;
        return socket_.write(std::exchange(told_, {}));
    }

    FrameSocket socket_;
    std::shared_ptr<SharedSlabs> shared_ = std::make_shared<SharedSlabs>();
    // Loaders end when a pass is broken off; their memory is kept for the next.
    std::shared_ptr<SlabMemory> kept_ = kept_memory(shared_);
    SkippedSamples skipped_;

    std::mutex mutex_;  // guards these:
    std::condition_variable changed_;
    std::shared_ptr<const ServedData> data_;
    std::shared_ptr<Loader> loader_;
    std::optional<LoaderState> wanted_;  // restart the loader here
    std::int64_t generation_ = 0;        // of the loader that is wanted or running
    std::int64_t credits_ = 0;           // batches that Python has room for
    std::map<std::int64_t, Batch> lent_;
    bool stopping_ = false;

    // Used only by the sending thread.
    std::string told_;  // frames waiting to be sent
    std::size_t told_count_ = 0, told_at_once_ = 1;
    bool tells_samples_ = false;
    double batch_ns_ = 0;
};

}  // namespace

void serve_batches(int socket) { BatchServer(socket).run(); }

}  // namespace saturate
