// SPDX-License-Identifier: Apache-2.0
#include "base/compress.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/text.h"

namespace saturate {
namespace {

constexpr std::size_t kBlock = 256 << 10;

// The source of packed bytes: a file or memory.
class PackedBytes {
  public:
    explicit PackedBytes(Descriptor file) : file_(std::move(file)), buffer_(kBlock) {}
    explicit PackedBytes(std::string_view bytes) : bytes_(bytes) {}

    // The next bytes, empty at the end. Valid until the next call.
    std::string_view next() {
        if (!file_.is_open()) return std::exchange(bytes_, {});
        ssize_t count = 0;
        do {
            count = ::read(file_.get(), buffer_.data(), buffer_.size());
        } while (count < 0 && errno == EINTR);
        return {buffer_.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
    }

  private:
    Descriptor file_;
    std::vector<char> buffer_;
    std::string_view bytes_;
};

class UnpackedStream : public ByteStream {
  public:
    // `first` has the bytes already read from the source to recognise its format.
    UnpackedStream(std::unique_ptr<PackedBytes> source, std::string_view first, std::string name,
                   std::uint64_t limit, std::string_view flag)
        : input_(first),
          source_(std::move(source)),
          name_(std::move(name)),
          limit_(limit),
          flag_(flag) {}

    std::size_t read(char* into, std::size_t size) final {
        std::size_t done = 0;
        while (done < size) {
            std::size_t count = unpack(into + done, size - done);
            if (count == 0) break;
            done += count;
        }
        given_ += done;
        if (given_ > limit_) {
            throw UserError({.where = {name_},
                             .found = fmt::format("unpacks to more than {}", bytes_text(limit_)),
                             .expected = "a file that fits the limit",
                             .fix = flag_.empty() ? "" : flag_ + " GB raises the limit"});
        }
        return done;
    }
    [[nodiscard]] bool torn() const final { return torn_; }

  protected:
    // Returns at least one byte, or 0 at the end.
    virtual std::size_t unpack(char* into, std::size_t size) = 0;
    bool refill() {
        if (input_.empty()) input_ = source_->next();
        return !input_.empty();
    }

    std::string_view input_;  // packed bytes not used yet
    bool torn_ = false;

  private:
    std::unique_ptr<PackedBytes> source_;
    std::string name_;
    std::uint64_t limit_;
    std::string flag_;
    std::uint64_t given_ = 0;
};

class PlainStream : public UnpackedStream {
  public:
    using UnpackedStream::UnpackedStream;

  private:
    std::size_t unpack(char* into, std::size_t size) override {
        if (!refill()) return 0;
        std::size_t count = std::min(size, input_.size());
        std::memcpy(into, input_.data(), count);
        input_.remove_prefix(count);
        return count;
    }
};

class GzipStream : public UnpackedStream {
  public:
    template <typename... Args>
    explicit GzipStream(Args&&... args) : UnpackedStream(std::forward<Args>(args)...) {
        SATURATE_CHECK(inflateInit2(&state_, 15 + 16) == Z_OK, "zlib starts");
    }
    ~GzipStream() override { inflateEnd(&state_); }

  private:
    std::size_t unpack(char* into, std::size_t size) override {
        size = std::min<std::size_t>(size, 1u << 30);
        state_.next_out = reinterpret_cast<Bytef*>(into);
        state_.avail_out = static_cast<uInt>(size);
        while (!ended_ && state_.avail_out == size) {
            if (!refill()) {
                torn_ = !between_members_;
                break;
            }
            uInt give = static_cast<uInt>(std::min<std::size_t>(input_.size(), 1u << 30));
            state_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input_.data()));
            state_.avail_in = give;
            int said = inflate(&state_, Z_NO_FLUSH);
            input_.remove_prefix(give - state_.avail_in);
            between_members_ = said == Z_STREAM_END;
            if (said == Z_STREAM_END) {
                // Another member may follow (files made with cat). Other bytes after it are
                // ignored.
                if (!refill() || input_[0] != '\x1f') ended_ = true;
                inflateReset(&state_);
            } else if (said != Z_OK && said != Z_BUF_ERROR) {
                torn_ = ended_ = true;
            }
        }
        return size - state_.avail_out;
    }

    z_stream state_ = {};
    bool ended_ = false;
    bool between_members_ = false;
};

class ZstdStream : public UnpackedStream {
  public:
    template <typename... Args>
    explicit ZstdStream(Args&&... args)
        : UnpackedStream(std::forward<Args>(args)...), state_(ZSTD_createDStream()) {
        SATURATE_CHECK(state_ != nullptr, "zstd starts");
    }
    ~ZstdStream() override { ZSTD_freeDStream(state_); }

  private:
    std::size_t unpack(char* into, std::size_t size) override {
        ZSTD_outBuffer out = {into, size, 0};
        while (!ended_ && out.pos == 0) {
            bool more = refill();
            ZSTD_inBuffer in = {input_.data(), input_.size(), 0};
            std::size_t said = ZSTD_decompressStream(state_, &out, &in);
            input_.remove_prefix(in.pos);
            if (ZSTD_isError(said)) {
                torn_ = ended_ = true;
            } else {
                if (!more && out.pos == 0) {
                    torn_ = unfinished_ && said != 0;
                    ended_ = true;
                }
                unfinished_ = said != 0;
            }
        }
        return out.pos;
    }

    ZSTD_DStream* state_;
    bool ended_ = false;
    bool unfinished_ = false;
};

std::unique_ptr<ByteStream> open_source(std::unique_ptr<PackedBytes> source, std::string name,
                                        std::uint64_t limit, std::string_view flag) {
    std::string_view first = source->next();
    if (first.starts_with("\x1f\x8b"))
        return std::make_unique<GzipStream>(std::move(source), first, name, limit, flag);
    if (first.starts_with("\x28\xb5\x2f\xfd"))
        return std::make_unique<ZstdStream>(std::move(source), first, name, limit, flag);
    return std::make_unique<PlainStream>(std::move(source), first, name, limit, flag);
}

}  // namespace

std::unique_ptr<ByteStream> open_stream(const std::filesystem::path& path,
                                        std::uint64_t limit_bytes, std::string_view limit_flag) {
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.is_open()) {
        throw UserError({.where = {path.string()},
                         .found = fmt::format("cannot be read: {}", std::strerror(errno)),
                         .expected = "a file"});
    }
    struct stat facts = {};
    if (::fstat(file.get(), &facts) == 0 && S_ISDIR(facts.st_mode)) {
        throw UserError({.where = {path.string()}, .found = "is a folder", .expected = "a file"});
    }
    return open_source(std::make_unique<PackedBytes>(std::move(file)), path.string(), limit_bytes,
                       limit_flag);
}

std::unique_ptr<ByteStream> open_stream_of(std::string_view bytes, std::uint64_t limit_bytes,
                                           std::string_view limit_flag) {
    return open_source(std::make_unique<PackedBytes>(bytes), "", limit_bytes, limit_flag);
}

std::string gzip(std::string_view content) {
    z_stream state = {};
    SATURATE_CHECK(deflateInit2(&state, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK,
                   "zlib starts");
    std::string out(deflateBound(&state, content.size()), '\0');
    state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
    state.avail_in = static_cast<uInt>(content.size());
    state.next_out = reinterpret_cast<Bytef*>(out.data());
    state.avail_out = static_cast<uInt>(out.size());
    int said = deflate(&state, Z_FINISH);
    out.resize(state.total_out);
    deflateEnd(&state);
    SATURATE_CHECK(said == Z_STREAM_END, "the bound holds the whole stream");
    return out;
}

std::optional<std::string> inflate_raw(std::string_view packed, std::size_t size) {
    // Deflate packs at most 1032 to 1. A larger size is false, and no memory is allocated for it.
    if (size / 1032 > packed.size()) return std::nullopt;
    std::string out(size, '\0');
    z_stream stream{};
    if (inflateInit2(&stream, -15) != Z_OK) return std::nullopt;
    std::size_t read = 0, written = 0;
    int status = Z_OK;
    char beyond = 0;  // receives a byte beyond the end
    while (status == Z_OK) {
        std::size_t in = std::min<std::size_t>(packed.size() - read, 1u << 30);
        std::size_t room = std::min<std::size_t>(size - written, 1u << 30);
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + read));
        stream.avail_in = static_cast<uInt>(in);
        stream.next_out = reinterpret_cast<Bytef*>(room > 0 ? out.data() + written : &beyond);
        stream.avail_out = room > 0 ? static_cast<uInt>(room) : 1;
        status = inflate(&stream, Z_NO_FLUSH);
        read += in - stream.avail_in;
        if (room == 0 && stream.avail_out == 0) status = Z_DATA_ERROR;
        if (room > 0) written += room - stream.avail_out;
    }
    inflateEnd(&stream);
    if (status != Z_STREAM_END || written != size) return std::nullopt;
    return out;
}

}  // namespace saturate
