// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/file_write.h"
#include "base/text.h"

namespace saturate {

namespace {

[[noreturn]] void throw_write_error(const std::filesystem::path& path, int error) {
    Problem problem{.where = {path.string()},
                    .found = fmt::format("cannot be written: {}", std::strerror(error))};
    if (error == ENOSPC || error == EDQUOT || error == EIO || error == EFBIG) {
        problem.expected = "free space on the disk; nothing was changed";
        problem.fix = "free some space, or write elsewhere";
        throw MachineError(problem);
    }
    problem.expected = "a folder that exists and that you can write to; nothing was changed";
    problem.fix = error == ENOENT ? fmt::format("mkdir -p {}", path.parent_path().string())
                                  : "name another output file";
    throw UserError(problem);
}

void write_all(int fd, std::string_view content, const std::filesystem::path& path) {
    while (!content.empty()) {
        ssize_t written = ::write(fd, content.data(), content.size());
        if (written < 0) {
            if (errno == EINTR) continue;
            throw_write_error(path, errno);
        }
        content.remove_prefix(static_cast<std::size_t>(written));
    }
}

}  // namespace

std::string read_file(const std::filesystem::path& path, std::uint64_t limit_bytes,
                      std::string_view what) {
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status {};
    if (!file.is_open() || ::fstat(file.get(), &status) != 0) {
        throw UserError({.where = {path.string()},
                         .found = fmt::format("cannot be read: {}", std::strerror(errno)),
                         .expected = fmt::format("{} that exists and is readable", what)});
    }
    if (S_ISDIR(status.st_mode)) {
        throw UserError({.where = {path.string()},
                         .found = "is a directory",
                         .expected = fmt::format("{}, one file", what)});
    }
    Problem too_large{.where = {path.string()},
                      .found = fmt::format("is larger than {}", bytes_text(limit_bytes)),
                      .expected = fmt::format("{} of at most {}", what, bytes_text(limit_bytes))};
    auto size = static_cast<std::uint64_t>(status.st_size);
    if (S_ISREG(status.st_mode) && size > limit_bytes) throw UserError(too_large);
    std::string content;
    content.resize(std::min(size, limit_bytes));
    std::size_t used = 0;
    while (true) {
        // Room for one more byte shows that a file grows or has no size (a pipe).
        if (used == content.size()) content.resize(used + std::max<std::size_t>(used / 2, 4096));
        ssize_t got = ::read(file.get(), content.data() + used, content.size() - used);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            throw UserError({.where = {path.string()},
                             .found = fmt::format("cannot be read: {}", std::strerror(errno)),
                             .expected = std::string(what)});
        }
        if (got == 0) break;
        used += static_cast<std::size_t>(got);
        if (used > limit_bytes) throw UserError(too_large);
    }
    content.resize(used);
    return content;
}

std::string read_if_there(const std::filesystem::path& path) {
    try {
        return read_file(path, 1 << 20, "a kernel file");
    } catch (const UserError&) {
        return {};
    }
}

namespace {

std::string read_up_to(const Descriptor& file, std::size_t limit_bytes) {
    std::string content;
    char buffer[16384];
    while (content.size() < limit_bytes) {
        std::size_t wanted = std::min(sizeof buffer, limit_bytes - content.size());
        ssize_t got = ::read(file.get(), buffer, wanted);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        content.append(buffer, static_cast<std::size_t>(got));
    }
    return content;
}

}  // namespace

std::string read_start_if_there(const std::filesystem::path& path, std::size_t limit_bytes) {
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    return file.is_open() ? read_up_to(file, limit_bytes) : "";
}

std::string read_end_if_there(const std::filesystem::path& path, std::size_t limit_bytes) {
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.is_open()) return {};
    off_t size = ::lseek(file.get(), 0, SEEK_END);
    off_t start = std::max<off_t>(size - static_cast<off_t>(limit_bytes), 0);
    ::lseek(file.get(), start, SEEK_SET);  // fails on a pipe, which has no end to seek
    return read_up_to(file, limit_bytes);
}

std::filesystem::path followed(const std::filesystem::path& path) {
    constexpr int kMostLinks = 40;  // the kernel's limit
    std::filesystem::path out = path;
    std::error_code error;
    for (int i = 0; i < kMostLinks; ++i) {
        std::filesystem::path next = std::filesystem::read_symlink(out, error);
        if (error) return out;
        out = out.parent_path() / next;  // an absolute path replaces the whole path
    }
    return path;  // a loop: opening the file reports it
}

namespace {

// The name of a temporary file. It also differs between threads.
std::filesystem::path neighbour_of(const std::filesystem::path& path) {
    static std::atomic<int> count{0};
    return path.parent_path() / fmt::format(".saturate-{}-{}.tmp", ::getpid(), ++count);
}

// Renames only if `to` does not exist; otherwise returns -1 with EEXIST.
int rename_to_new(const char* from, const char* to) {
    int done = static_cast<int>(
        ::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, /*RENAME_NOREPLACE*/ 1));
    if (done == 0 || (errno != EINVAL && errno != ENOSYS)) return done;
    // The file system does not support it: make a hard link, which never replaces, and remove
    // `from`.
    if (::link(from, to) != 0) return -1;
    return ::unlink(from);
}

}  // namespace

void write_file_whole(const std::filesystem::path& path, std::string_view content) {
    write_file(path, content, {});
}

void write_file(const std::filesystem::path& given, std::string_view content,
                const WriteRule& rule) {
    std::filesystem::path path = followed(given);
    struct stat old {};
    bool replaces = ::stat(path.c_str(), &old) == 0;
    if (!replaces && errno != ENOENT) throw_write_error(path, errno);
    if (replaces && S_ISDIR(old.st_mode)) throw_write_error(path, EISDIR);
    // Devices such as /dev/stdout cannot be replaced by a rename: write to them directly.
    if (replaces && !S_ISREG(old.st_mode)) {
        Descriptor device(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
        if (!device.is_open()) throw_write_error(path, errno);
        write_all(device.get(), content, path);
        return;
    }
    std::filesystem::path neighbour = neighbour_of(path);
    mode_t mode = replaces ? old.st_mode & 07777 : rule.mode;
    Descriptor file(
        ::open(neighbour.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode & 0666));
    if (!file.is_open()) throw_write_error(path, errno);
    try {
        write_all(file.get(), content, path);
        if (replaces && ::fchmod(file.get(), mode) != 0) throw_write_error(path, errno);
        if (::fsync(file.get()) != 0) throw_write_error(path, errno);
        if (file.close() != 0) throw_write_error(path, errno);
        int renamed = rule.replaces ? ::rename(neighbour.c_str(), path.c_str())
                                    : rename_to_new(neighbour.c_str(), path.c_str());
        if (renamed != 0) throw_write_error(path, errno);
    } catch (...) {
        ::unlink(neighbour.c_str());
        throw;
    }
}

std::filesystem::path make_temporary_folder(const std::filesystem::path& parent,
                                            std::string_view name) {
    std::string pattern = fmt::format("{}XXXXXX", (parent / name).string());
    if (!::mkdtemp(pattern.data())) {
        throw MachineError(
            {.where = {parent.string()},
             .found = fmt::format("cannot create a folder here: {}", std::strerror(errno)),
             .expected = "a folder for temporary files",
             .fix = "set TMPDIR"});
    }
    return pattern;
}

}  // namespace saturate
