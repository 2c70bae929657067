// SPDX-License-Identifier: Apache-2.0
// The cache on disk: a head, a row per sample, then the samples' bytes. A lock on the file lets one
// process write; the others read what it has written so far. Samples are written with pwrite, not
// through the mapping, so that a full disk is an error code and not a signal. Each sample's
// checksum is verified once per process: a file torn by a system crash costs time, but never gives
// wrong data.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/descriptor.h"
#include "base/error.h"
#include "pipeline/cache.h"
#include "pipeline/random.h"

namespace saturate {

namespace {

constexpr char kMagic[16] = "saturate cache1";

struct Head {
    char magic[16];
    std::uint64_t identity[2];
    std::uint64_t samples;
    std::uint64_t limit_bytes;
};

// `bytes` is written last; 0 means that the sample is not stored.
struct CacheRow {
    std::uint64_t start;
    std::uint64_t checksum;
    std::uint64_t bytes;
};

std::uint64_t hash(std::span<const std::byte> bytes, std::uint64_t seed) {
    std::uint64_t lanes[4] = {mix(seed), mix(seed + 1), mix(seed + 2), mix(seed + 3)};
    std::size_t at = 0;
    for (; at + 32 <= bytes.size(); at += 32) {
        for (std::size_t i = 0; i < 4; ++i) {
            std::uint64_t word = 0;
            std::memcpy(&word, bytes.data() + at + 8 * i, 8);
            lanes[i] = (lanes[i] ^ word) * 0x9E3779B97F4A7C15u;
            lanes[i] ^= lanes[i] >> 29;
        }
    }
    std::uint64_t out = bytes.size();
    for (std::uint64_t lane : lanes) out = mix(out, lane);
    for (; at < bytes.size(); ++at) out = mix(out, static_cast<std::uint64_t>(bytes[at]));
    return out;
}

class FileStore final : public SampleStore {
  public:
    FileStore(const std::filesystem::path& folder, const std::string& identity,
              std::int64_t samples, std::uint64_t limit_bytes)
        : samples_(static_cast<std::size_t>(samples)), state_(samples_) {
        auto text = std::as_bytes(std::span(identity));
        std::memcpy(head_.magic, kMagic, sizeof kMagic);
        head_.identity[0] = hash(text, 1);
        head_.identity[1] = hash(text, 2);
        head_.samples = samples_;
        head_.limit_bytes = limit_bytes;
        std::error_code ignored;
        std::filesystem::create_directories(folder, ignored);
        path_ =
            folder / fmt::format("{:016x}{:016x}.samples", head_.identity[0], head_.identity[1]);
        data_start_ = (sizeof(Head) + samples_ * sizeof(CacheRow) + 4095) / 4096 * 4096;
        open();
    }
    ~FileStore() override {
        if (memory_) ::munmap(memory_, mapped_bytes_);
    }
    FileStore(const FileStore&) = delete;
    FileStore& operator=(const FileStore&) = delete;

    [[nodiscard]] std::span<const std::byte> find(std::int64_t index) const override {
        auto i = static_cast<std::size_t>(index);
        std::uint8_t state = state_[i].load(std::memory_order_acquire);
        if (state == kBroken) return {};
        CacheRow& row = rows()[i];
        std::uint64_t bytes = std::atomic_ref(row.bytes).load(std::memory_order_acquire);
        if (bytes == 0) return {};
        std::uint64_t room = mapped_bytes_ - data_start_;
        if (row.start > room || bytes > room - row.start) return {};
        std::span<const std::byte> found(memory_ + data_start_ + row.start, bytes);
        if (state == kUnseen) {
            bool good = hash(found, i) == row.checksum;
            state_[i].store(good ? kGood : kBroken, std::memory_order_release);
            if (!good) return {};
        }
        return found;
    }

    void keep(std::int64_t index, std::span<const std::byte> bytes) override {
        auto i = static_cast<std::size_t>(index);
        std::uint8_t unseen = kUnseen;
        if (!writes_ || full_ || bytes.empty()) return;
        // One thread per sample: a second thread that prepared the same sample
        // leaves it to this one.
        if (!state_[i].compare_exchange_strong(unseen, kBroken)) return;
        std::uint64_t start = used_.fetch_add((bytes.size() + 63) / 64 * 64);
        if (start + bytes.size() > head_.limit_bytes || !put(bytes, data_start_ + start)) {
            full_ = true;
            return;
        }
        CacheRow& row = rows()[i];
        row.start = start;
        row.checksum = hash(bytes, i);
        std::atomic_ref(row.bytes).store(bytes.size(), std::memory_order_release);
        state_[i].store(kGood, std::memory_order_release);
    }
    [[nodiscard]] std::uint64_t used_bytes() const override {
        return std::min<std::uint64_t>(used_, head_.limit_bytes);
    }

  private:
    enum State : std::uint8_t { kUnseen, kGood, kBroken };

    [[nodiscard]] CacheRow* rows() const {
        return reinterpret_cast<CacheRow*>(memory_ + sizeof(Head));
    }

    [[nodiscard]] UserError no_file(const std::string& what) const {
        return UserError({.where = {path_.string()},
                          .found = fmt::format("{}: {}", what, std::strerror(errno)),
                          .expected = "a place for decoded samples",
                          .fix = "cache: ram, or free some space"});
    }

    void open() {
        file_ = Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
        if (!file_.is_open()) throw no_file("cannot be opened");
        writes_ = ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0;
        struct stat facts {};
        Head there{};
        bool fits = ::fstat(file_.get(), &facts) == 0 &&
                    ::pread(file_.get(), &there, sizeof there, 0) == ssize_t{sizeof there} &&
                    std::memcmp(&there, &head_, sizeof(Head) - sizeof(std::uint64_t)) == 0 &&
                    static_cast<std::uint64_t>(facts.st_size) >= data_start_ + there.limit_bytes;
        if (!fits && !writes_) throw no_file("is being written by another process");
        if (fits) head_.limit_bytes = std::max(there.limit_bytes, head_.limit_bytes);
        if (writes_) prepare(fits);
        mapped_bytes_ = data_start_ + (writes_ ? head_.limit_bytes : there.limit_bytes);
        int access = writes_ ? PROT_READ | PROT_WRITE : PROT_READ;
        void* memory = ::mmap(nullptr, mapped_bytes_, access, MAP_SHARED, file_.get(), 0);
        if (memory == MAP_FAILED) throw no_file("cannot be mapped");
        memory_ = static_cast<std::byte*>(memory);
        std::uint64_t used = 0;
        for (std::size_t i = 0; i < samples_; ++i) {
            const CacheRow& row = rows()[i];
            if (row.bytes > 0 && row.start < head_.limit_bytes)
                used = std::max(used, (row.start + row.bytes + 63) / 64 * 64);
        }
        used_ = used;
    }

    // Allocates disk space for the head and the rows now; samples take space when they are written.
    void prepare(bool fits) {
        if (!fits && ::ftruncate(file_.get(), 0) != 0) throw no_file("cannot be emptied");
        int refused = ::posix_fallocate(file_.get(), 0, static_cast<off_t>(data_start_));
        if (refused != 0) {
            errno = refused;
            throw no_file("no space for the list of samples");
        }
        if (::ftruncate(file_.get(), static_cast<off_t>(data_start_ + head_.limit_bytes)) != 0 ||
            !put(std::as_bytes(std::span(&head_, 1)), 0))
            throw no_file("cannot be written");
    }

    [[nodiscard]] bool put(std::span<const std::byte> bytes, std::uint64_t at) const {
        while (!bytes.empty()) {
            ssize_t done =
                ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
            if (done < 0 && errno == EINTR) continue;
            if (done <= 0) return false;
            bytes = bytes.subspan(static_cast<std::size_t>(done));
            at += static_cast<std::uint64_t>(done);
        }
        return true;
    }

    std::size_t samples_;
    mutable std::vector<std::atomic<std::uint8_t>> state_;  // of each sample, for this process
    Head head_{};
    std::filesystem::path path_;
    std::uint64_t data_start_ = 0, mapped_bytes_ = 0;
    Descriptor file_;  // also holds the lock
    bool writes_ = false;
    std::atomic<bool> full_ = false;
    std::byte* memory_ = nullptr;
    std::atomic<std::uint64_t> used_ = 0;
};

}  // namespace

std::unique_ptr<SampleStore> file_store(const std::filesystem::path& folder,
                                        const std::string& identity, std::int64_t samples,
                                        std::uint64_t limit_bytes) {
    return std::make_unique<FileStore>(folder, identity, samples, limit_bytes);
}

}  // namespace saturate
