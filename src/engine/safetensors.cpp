// SPDX-License-Identifier: Apache-2.0
#include "engine/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "engine/safetensors_header.h"

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

namespace saturate {

namespace {

// In the order of kStoredTypes.
constexpr torch::ScalarType kTypes[] = {
    torch::kFloat, torch::kHalf,  torch::kBFloat16, torch::kDouble, torch::kLong,
    torch::kInt,   torch::kShort, torch::kChar,     torch::kByte,   torch::kBool,
};
static_assert(std::size(kTypes) == std::size(kStoredTypes));

torch::ScalarType type_of(const StoredTensor& stored) {
    auto known = std::ranges::find(kStoredTypes, stored.type, &StoredType::name);
    return kTypes[known - std::begin(kStoredTypes)];
}

const char* name_of(torch::ScalarType type) {
    auto known = std::ranges::find(kTypes, type);
    SATURATE_CHECK(known != std::end(kTypes), "every type of a checkpoint has a name");
    return kStoredTypes[known - std::begin(kTypes)].name;
}

constexpr std::uint64_t kLargestHeader = 100'000'000;  // the limit of the format's own library

class File {
  public:
    File(const std::filesystem::path& path, int flags)
        : path_(path), fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
    ~File() {
        if (fd_ >= 0) ::close(fd_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    [[nodiscard]] bool is_open() const { return fd_ >= 0; }

    void write(const void* data, std::size_t bytes) {
        const char* from = static_cast<const char*>(data);
        seal.checksum = crc32c(from, bytes, seal.checksum);
        seal.bytes += bytes;
        while (bytes > 0) {
            ssize_t done = ::write(fd_, from, std::min<std::size_t>(bytes, 1 << 30));
            if (done < 0 && errno == EINTR) continue;
            if (done < 0) fail(errno);
            from += done;
            bytes -= static_cast<std::size_t>(done);
        }
    }
    void sync() {
        if (::fsync(fd_) != 0) fail(errno);
    }
    [[nodiscard]] std::uint64_t size() const {
        struct stat status {};
        return ::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode)
                   ? static_cast<std::uint64_t>(status.st_size)
                   : 0;
    }
    // Returns false if the file ends too early.
    [[nodiscard]] bool read(void* data, std::size_t bytes, std::uint64_t offset) const {
        char* to = static_cast<char*>(data);
        while (bytes > 0) {
            ssize_t done =
                ::pread(fd_, to, std::min<std::size_t>(bytes, 1 << 30), static_cast<off_t>(offset));
            if (done < 0 && errno == EINTR) continue;
            if (done <= 0) return false;
            to += done;
            offset += static_cast<std::uint64_t>(done);
            bytes -= static_cast<std::size_t>(done);
        }
        return true;
    }
    [[noreturn]] void fail(int error) const {
        throw MachineError({.where = {path_.string()},
                            .found = fmt::format("cannot be written: {}", std::strerror(error)),
                            .expected = "free space on the disk and permission to write"});
    }

    FileSeal seal;

  private:
    std::filesystem::path path_;
    int fd_;
};

std::vector<StoredTensor> read_header(const std::filesystem::path& path, const File& file,
                                      std::uint64_t& data_at) {
    std::uint64_t size = file.size(), header_bytes = 0;
    if (size < 8 || !file.read(&header_bytes, 8, 0))
        refuse_safetensors(path, fmt::format("{} bytes are too few for a header", size));
    if (header_bytes > kLargestHeader || header_bytes > size - 8)
        refuse_safetensors(path, fmt::format("its header claims {} bytes, but the file has {}",
                                             header_bytes, size));
    std::string text(header_bytes, '\0');
    if (!file.read(text.data(), text.size(), 8))
        refuse_safetensors(path, "its header cannot be read");
    data_at = 8 + header_bytes;
    return read_safetensors_header(text, size - data_at, path);
}

}  // namespace

FileSeal write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors) {
    Json header = Json::object({{"__metadata__", Json::object({{"format", "pt"}})}});
    std::vector<torch::Tensor> dense;
    std::uint64_t at = 0;
    for (const auto& [name, tensor] : tensors) {
        dense.push_back(tensor.detach().contiguous());
        std::uint64_t bytes = dense.back().nbytes();
        header.set(name, Json::object({{"dtype", name_of(tensor.scalar_type())},
                                       {"shape", Json::array_of(tensor.sizes())},
                                       {"data_offsets", Json::array({at, at + bytes})}}));
        at += bytes;
    }
    std::string text = header.line();
    text.append((8 - text.size() % 8) % 8, ' ');
    File file(path, O_WRONLY | O_CREAT | O_TRUNC);
    if (!file.is_open()) file.fail(errno);
    std::uint64_t header_bytes = text.size();
    file.write(&header_bytes, 8);
    file.write(text.data(), text.size());
    for (const torch::Tensor& tensor : dense) {
        if (tensor.nbytes() > 0) file.write(tensor.const_data_ptr(), tensor.nbytes());
    }
    file.sync();
    return file.seal;
}

NamedTensors read_safetensors(const std::filesystem::path& path) {
    File file(path, O_RDONLY);
    if (!file.is_open()) refuse_safetensors(path, std::strerror(errno));
    std::uint64_t data_at = 0;
    std::vector<StoredTensor> entries = read_header(path, file, data_at);
    NamedTensors out;
    for (const StoredTensor& entry : entries) {
        torch::Tensor tensor =
            torch::empty(entry.shape, torch::TensorOptions().dtype(type_of(entry)));
        if (tensor.nbytes() > 0 &&
            !file.read(tensor.data_ptr(), tensor.nbytes(), data_at + entry.begin)) {
            refuse_safetensors(path,
                               fmt::format("tensor {} cannot be read", in_quotes(entry.name)));
        }
        out.emplace_back(entry.name, std::move(tensor));
    }
    return out;
}

FileSeal seal_of(const std::filesystem::path& path) {
    File file(path, O_RDONLY);
    if (!file.is_open()) refuse_safetensors(path, std::strerror(errno));
    FileSeal seal;
    std::vector<char> part(std::size_t{1} << 20);
    std::uint64_t size = file.size();
    while (seal.bytes < size) {
        std::size_t bytes = std::min<std::uint64_t>(part.size(), size - seal.bytes);
        if (!file.read(part.data(), bytes, seal.bytes))
            refuse_safetensors(path, "cannot be read to its end");
        seal.checksum = crc32c(part.data(), bytes, seal.checksum);
        seal.bytes += bytes;
    }
    return seal;
}

}  // namespace saturate
