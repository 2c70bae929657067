// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <set>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/text.h"
#include "probe/machine.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

struct FileToRead {
    fs::path path;
    std::uint64_t bytes = 0;
};

// False for small and sparse files: holes cost no disk time, so a sparse file would look fast.
bool is_worth_reading(const struct stat& status, std::uint64_t smallest) {
    if (!S_ISREG(status.st_mode) || status.st_size <= 0) return false;
    auto size = static_cast<std::uint64_t>(status.st_size);
    auto stored = static_cast<std::uint64_t>(status.st_blocks) * 512;
    bool sparse = size > 65536 && stored < size / 8;
    return size >= smallest && !sparse;
}

// Searches breadth first, each folder once (links may form circles), within the limits of entries
// and time.
std::vector<FileToRead> find_files(const fs::path& top, const ReadBudget& budget,
                                   Clock::time_point end) {
    std::vector<FileToRead> files;
    std::deque<fs::path> folders{top};
    std::set<std::pair<dev_t, ino_t>> seen;
    int entries = 0;
    while (!folders.empty()) {
        fs::path folder = std::move(folders.front());
        folders.pop_front();
        struct stat status {};
        if (::stat(folder.c_str(), &status) != 0) continue;
        if (!seen.emplace(status.st_dev, status.st_ino).second) continue;
        std::error_code error;
        fs::directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error);
        for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
            if (++entries > budget.entries || Clock::now() >= end) return files;
            if (::stat(entry->path().c_str(), &status) != 0) continue;  // a broken link
            if (S_ISDIR(status.st_mode)) {
                folders.push_back(entry->path());
            } else if (is_worth_reading(status, budget.smallest_file)) {
                files.push_back({entry->path(), static_cast<std::uint64_t>(status.st_size)});
            }
        }
    }
    return files;
}

bool is_in_memory(const fs::path& folder) {
    struct statfs status {};
    return ::statfs(folder.c_str(), &status) == 0 &&
           (status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC);
}

// Reads files one after the other and measures the speed of each part.
class TimedReader {
  public:
    TimedReader(const ReadBudget& budget, Clock::time_point end) : budget_(budget), end_(end) {
        void* memory = nullptr;
        if (::posix_memalign(&memory, 4096, kChunk) == 0) buffer_.reset(static_cast<char*>(memory));
    }

    [[nodiscard]] bool is_done() const {
        return !buffer_ || total_bytes_ >= budget_.bytes || Clock::now() >= end_;
    }

    void read(const fs::path& path) {
        Clock::time_point start = Clock::now();
        bool direct = true;
        Descriptor file(
            ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_DIRECT));
        if (!file.is_open() && errno == EINVAL) {
            direct = false;
            file = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
        }
        if (!file.is_open()) return;
        while (!is_done()) {
            ssize_t got = ::read(file.get(), buffer_.get(), kChunk);
            if (got < 0 && errno == EINVAL && direct) {  // as some FUSE file systems do
                direct = false;
                if (::fcntl(file.get(), F_SETFL, O_NONBLOCK) == 0) continue;
            }
            if (got <= 0) break;
            Clock::time_point now = Clock::now();
            count(static_cast<std::uint64_t>(got), now - start);
            start = now;
            any_cached_ = any_cached_ || !direct;
            if (static_cast<std::size_t>(got) < kChunk) break;
        }
    }

    void report(StorageFacts& facts) {
        facts.read_bytes = total_bytes_;
        if (total_bytes_ < kLeast || total_time_.count() <= 0) {
            facts.unknown_because =
                total_bytes_ == 0 ? "no file could be read"
                                  : fmt::format("only {} could be read", bytes_text(total_bytes_));
            return;
        }
        if (parts_.empty()) parts_.push_back(speed(part_bytes_, part_time_));
        facts.read_mb_per_second = speed(total_bytes_, total_time_);
        auto [slowest, fastest] = std::ranges::minmax(parts_);
        facts.slowest_mb_per_second = slowest;
        facts.fastest_mb_per_second = fastest;
        facts.parts = static_cast<int>(parts_.size());
        facts.from_page_cache = facts.from_page_cache || any_cached_;
    }

  private:
    static constexpr std::size_t kChunk = 256 * 1024;  // small: a slow disk overruns by one
    static constexpr std::uint64_t kLeast = 256 * 1024;

    static double speed(std::uint64_t bytes, Clock::duration time) {
        return static_cast<double>(bytes) / 1e6 / std::chrono::duration<double>(time).count();
    }

    void count(std::uint64_t bytes, Clock::duration time) {
        total_bytes_ += bytes;
        total_time_ += time;
        part_bytes_ += bytes;
        part_time_ += time;
        if (part_time_ * 10 < budget_.time) return;
        parts_.push_back(speed(part_bytes_, part_time_));
        part_bytes_ = 0;
        part_time_ = {};
    }

    struct Free {
        void operator()(char* memory) const { std::free(memory); }
    };

    ReadBudget budget_;
    Clock::time_point end_;
    std::unique_ptr<char, Free> buffer_;
    std::vector<double> parts_;
    std::uint64_t total_bytes_ = 0, part_bytes_ = 0;
    Clock::duration total_time_{}, part_time_{};
    bool any_cached_ = false;
};

}  // namespace

StorageFacts probe_storage(const fs::path& folder, const ReadBudget& budget) {
    StorageFacts facts{.folder = folder};
    Clock::time_point start = Clock::now();
    struct stat status {};
    if (::stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
        facts.unknown_because = "there is no such folder";
        return facts;
    }
    struct statvfs space {};
    if (::statvfs(folder.c_str(), &space) == 0)
        facts.free_bytes = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
    if (::access(folder.c_str(), R_OK | X_OK) != 0) {
        facts.unknown_because = "the folder cannot be read";
        return facts;
    }
    // At most a third of the time is for the search, the rest for reading.
    std::vector<FileToRead> files = find_files(folder, budget, start + budget.time / 3);
    if (files.empty()) {
        facts.unknown_because =
            budget.smallest_file > 1
                ? fmt::format("no file of at least {} was found", bytes_text(budget.smallest_file))
                : "only empty files were found";
        return facts;
    }
    facts.from_page_cache = is_in_memory(folder);
    TimedReader reader(budget, start + budget.time);
    for (const FileToRead& file : files) {
        if (reader.is_done()) break;
        reader.read(file.path);
    }
    reader.report(facts);
    return facts;
}

}  // namespace saturate
