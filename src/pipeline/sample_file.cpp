// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/descriptor.h"

namespace saturate {

namespace {

constexpr std::int64_t kBytesMax = std::int64_t{1} << 30;

[[noreturn]] void fail(const std::string& path, int error) {
    std::string why = fmt::format("cannot be read: {}", std::strerror(error));
    if (error == EIO || error == ESTALE || error == ETIMEDOUT || error == EAGAIN ||
        error == EMFILE || error == ENFILE)
        throw BusySample(path, why);
    throw BadSample(path, why);
}

// `size` below 0 means the whole file.
Bytes read_part(const std::string& path, std::int64_t offset, std::int64_t size,
                Buffer<std::uint8_t>& memory, SampleCost& cost) {
    std::int64_t start = now_ns();
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file.is_open()) fail(path, errno);
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) fail(path, errno);
    if (!S_ISREG(status.st_mode)) throw BadSample(path, "not a file");
    if (size < 0) size = status.st_size;
    if (size > kBytesMax) throw BadSample(path, "more than 1 GiB");
    std::size_t wanted = static_cast<std::size_t>(size), got = 0;
    std::uint8_t* to = memory.get(wanted + 1);
    while (got < wanted) {
        ssize_t count = ::pread(file.get(), to + got, wanted - got,
                                static_cast<off_t>(offset + static_cast<std::int64_t>(got)));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) fail(path, errno);
        if (count == 0) break;  // the file became shorter; the decoder will report it
        got += static_cast<std::size_t>(count);
    }
    cost.read_ns += now_ns() - start;
    cost.read_bytes += static_cast<std::int64_t>(got);
    return {to, got};
}

}  // namespace

Bytes read_sample_file(const std::string& path, Buffer<std::uint8_t>& memory, SampleCost& cost) {
    return read_part(path, 0, -1, memory, cost);
}

Bytes read_sample_part(const std::string& path, std::uint64_t offset, std::uint64_t size,
                       Buffer<std::uint8_t>& memory, SampleCost& cost) {
    if (size > static_cast<std::uint64_t>(kBytesMax)) throw BadSample(path, "more than 1 GiB");
    return read_part(path, static_cast<std::int64_t>(offset), static_cast<std::int64_t>(size),
                     memory, cost);
}

void read_ahead(const std::string& path, std::uint64_t offset, std::uint64_t size) {
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file.is_open()) return;
    ::posix_fadvise(file.get(), static_cast<off_t>(offset), static_cast<off_t>(size),
                    POSIX_FADV_WILLNEED);
}

}  // namespace saturate
