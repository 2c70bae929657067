// SPDX-License-Identifier: Apache-2.0
#include "engine/rank_watch.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/text.h"

namespace saturate {

namespace {

constexpr std::string_view kFailed = "failed ", kLost = "lost ";
constexpr std::chrono::seconds kAnswerMost{1}, kTellMost{2};

std::string beat_key(int rank) { return fmt::format("beat/{}", rank); }
std::string note_key(int rank) { return fmt::format("note/{}", rank); }

double seconds_of(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

std::int64_t ns_of(std::chrono::milliseconds time) { return time.count() * 1'000'000; }

// A rank's heartbeat: "<turn> <collectives> <step> <doing>".
struct Beat {
    std::int64_t collectives = 0, step = 0;
    std::string doing;
};

Beat parse_beat(const std::string& text) {
    std::vector<std::string_view> parts = split(text, ' ');
    if (parts.size() < 4) return {};
    return {parse_integer(parts[1]).value_or(0), parse_integer(parts[2]).value_or(0),
            std::string(text.substr(static_cast<std::size_t>(parts[3].data() - text.data())))};
}

}  // namespace

std::string ranks_text(const std::vector<int>& ranks) {
    if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
    std::string out = "ranks ";
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (i > 0) out += i + 1 == ranks.size() ? " and " : ", ";
        out += std::to_string(ranks[i]);
    }
    return out;
}

struct RankWatch::Impl {
    // What the heartbeat thread read last.
    struct Look {
        std::vector<std::string> beats, notes;
    };
    struct Seen {
        std::string beat;
        std::int64_t since_ns = 0;  // when the heartbeat last changed
    };

    Impl(std::unique_ptr<KeyStore> given, int own, int all, int serving, RankTimes wanted)
        : store(std::move(given)),
          rank(own),
          count(all),
          server(serving),
          times(wanted),
          seen(static_cast<std::size_t>(all)) {
        for (int i = 0; i < count; ++i) {
            beat_keys.push_back(beat_key(i));
            note_keys.push_back(note_key(i));
        }
        store->set(note_key(rank), "");
        send_beat();
        thread = std::jthread([this](const std::stop_token& stop) { work(stop); });
    }

    void send_beat() {
        store->set(beat_key(rank), fmt::format("{} {} {} {}", ++turn, collectives.load(),
                                               step.load(), doing.load()));
    }

    void work(const std::stop_token& stop) {
        ::pthread_setname_np(::pthread_self(), "heartbeat");
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals belong to the main thread
        std::int64_t due_ns = now_ns() + ns_of(times.beat);
        std::unique_lock lock(mutex);
        while (!stop.stop_requested()) {
            auto left = std::chrono::nanoseconds(std::max<std::int64_t>(due_ns - now_ns(), 0));
            changed.wait_for(lock, stop, left, [&] { return wants_look || !note.empty(); });
            bool looks = wants_look;
            std::string told = note;
            lock.unlock();
            Look fresh;
            bool failed = false;
            try {
                if (!told.empty()) store->set(note_key(rank), told);
                if (now_ns() >= due_ns) {
                    send_beat();
                    due_ns = now_ns() + ns_of(times.beat);
                }
                if (looks) {
                    fresh.beats = store->get(beat_keys);
                    fresh.notes = store->get(note_keys);
                }
            } catch (const std::exception&) {
                failed = true;
            }
            lock.lock();
            if (failed) {
                store_gone = true;
                changed.notify_all();
                return;
            }
            if (!told.empty()) note.clear();
            if (looks) {
                look = std::move(fresh);
                wants_look = false;
            }
            changed.notify_all();
        }
    }

    void tell(const std::string& text) noexcept {
        try {
            std::unique_lock lock(mutex);
            if (store_gone) return;
            note = text;
            changed.notify_all();
            changed.wait_for(lock, kTellMost, [&] { return note.empty() || store_gone; });
        } catch (const std::exception&) {  // no memory for the text: the others will notice anyway
        }
    }

    // Has the thread read the store again. Returns nothing if the store does not answer.
    std::optional<Look> ask() {
        std::unique_lock lock(mutex);
        wants_look = true;
        look.reset();
        changed.notify_all();
        changed.wait_for(lock, kAnswerMost, [&] { return look.has_value() || store_gone; });
        return look;
    }

    [[nodiscard]] Blame blame_server(const std::string& what) const {
        if (server < 0) return {{}, fmt::format("the launcher's store {}", what)};
        return {{server}, fmt::format("the store that it serves {}", what)};
    }

    // Blames a rank that wrote down its own end, or the ranks that another one lost.
    [[nodiscard]] std::optional<Blame> blame_notes(const Look& fresh) const {
        for (int i = 0; i < count; ++i) {
            const std::string& text = fresh.notes[static_cast<std::size_t>(i)];
            if (i == rank || !text.starts_with(kFailed)) continue;
            return Blame{{i}, "it failed: " + text.substr(kFailed.size())};
        }
        for (int i = 0; i < count; ++i) {
            const std::string& text = fresh.notes[static_cast<std::size_t>(i)];
            if (i == rank || !text.starts_with(kLost)) continue;
            std::size_t colon = text.find(':');
            Blame out{{}, fmt::format("{} (said by rank {})", text.substr(colon + 1), i)};
            for (std::string_view word :
                 split(std::string_view(text).substr(kLost.size(), colon - kLost.size()), ',')) {
                if (auto other = parse_integer(word)) out.ranks.push_back(static_cast<int>(*other));
            }
            // The ranks they lost may include us, if we were cut off for a while:
            // still worth reporting.
            return out;
        }
        return std::nullopt;
    }

    [[nodiscard]] std::optional<Blame> blame_silent(const Look& fresh, std::int64_t allowed_ns) {
        std::int64_t now = now_ns(), longest = 0;
        Blame out;
        for (int i = 0; i < count; ++i) {
            auto at = static_cast<std::size_t>(i);
            if (fresh.beats[at] != seen[at].beat) seen[at] = {fresh.beats[at], now};
            std::int64_t silent = now - seen[at].since_ns;
            if (i == rank || silent < allowed_ns) continue;
            out.ranks.push_back(i);
            longest = std::max(longest, silent);
        }
        if (out.ranks.empty()) return std::nullopt;
        out.why = fmt::format("no sign of life for {:.0f} s", seconds_of(longest));
        return out;
    }

    [[nodiscard]] Blame blame_behind(const Look& fresh, std::int64_t since_ns) const {
        std::vector<Beat> beats;
        for (const std::string& text : fresh.beats) beats.push_back(parse_beat(text));
        auto [least, most] = std::ranges::minmax(beats, {}, &Beat::collectives);
        double waited = seconds_of(now_ns() - since_ns);
        if (least.collectives == most.collectives)
            return {{}, fmt::format("all ranks have been in it for {:.0f} s", waited)};
        Blame out{
            {},
            fmt::format("alive, but {} in step {} for {:.0f} s", least.doing, least.step, waited)};
        for (int i = 0; i < count; ++i) {
            if (beats[static_cast<std::size_t>(i)].collectives == least.collectives)
                out.ranks.push_back(i);
        }
        return out;
    }

    std::optional<Blame> blame(std::int64_t since_ns, bool broken) {
        if (since_ns != asked_for_ns) {  // another collective: silence counts from now
            asked_for_ns = since_ns;
            answered_ns = now_ns();
            for (Seen& one : seen) one = {"", now_ns()};
        }
        std::int64_t allowed_ns = ns_of(broken ? times.stale : times.lost);
        std::optional<Look> fresh = ask();
        if (!fresh) {
            {
                std::lock_guard lock(mutex);
                if (store_gone) return blame_server("is gone");
            }
            std::int64_t silent = now_ns() - answered_ns;
            if (silent < allowed_ns) return std::nullopt;
            return blame_server(fmt::format("has not answered for {:.0f} s", seconds_of(silent)));
        }
        answered_ns = now_ns();
        if (auto told = blame_notes(*fresh)) return told;
        if (auto silent = blame_silent(*fresh, allowed_ns)) return silent;
        if (now_ns() - since_ns >= ns_of(times.patience)) return blame_behind(*fresh, since_ns);
        return std::nullopt;
    }

    std::unique_ptr<KeyStore> store;  // used by the thread alone once it runs
    int rank, count, server;
    RankTimes times;
    std::vector<std::string> beat_keys, note_keys;
    std::int64_t turn = 0;
    std::atomic<std::int64_t> collectives{0}, step{0};
    std::atomic<const char*> doing{"starting"};

    std::mutex mutex;
    std::condition_variable_any changed;
    bool wants_look = false, store_gone = false;
    std::string note;
    std::optional<Look> look;

    std::int64_t asked_for_ns = 0, answered_ns = 0;
    std::vector<Seen> seen;
    std::jthread thread;  // last: it uses the rest
};

RankWatch::RankWatch(std::unique_ptr<KeyStore> store, int rank, int count, int server,
                     RankTimes times)
    : impl_(std::make_unique<Impl>(std::move(store), rank, count, server, times)) {}
RankWatch::~RankWatch() = default;

void RankWatch::stands(std::int64_t step, const char* doing) {
    impl_->step = step;
    impl_->doing = doing;
}
void RankWatch::count_collective() { ++impl_->collectives; }

void RankWatch::tell_failed(const std::string& why) noexcept {
    impl_->tell(std::string(kFailed) + why);
}

void RankWatch::tell_lost(const Blame& blame) noexcept {
    if (blame.ranks.empty()) return;
    impl_->tell(fmt::format("{}{}:{}", kLost, fmt::join(blame.ranks, ","), blame.why));
}

std::optional<Blame> RankWatch::blame(std::int64_t since_ns, bool broken) {
    return impl_->blame(since_ns, broken);
}

const RankTimes& RankWatch::times() const { return impl_->times; }

}  // namespace saturate
