// SPDX-License-Identifier: Apache-2.0
#include "engine/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

namespace saturate {

namespace {

struct Type {
    const char* name;
    torch::ScalarType type;
};
constexpr Type kTypes[] = {
    {"F32", torch::kFloat},  {"F16", torch::kHalf}, {"BF16", torch::kBFloat16},
    {"F64", torch::kDouble}, {"I64", torch::kLong}, {"I32", torch::kInt},
    {"I16", torch::kShort},  {"I8", torch::kChar},  {"U8", torch::kByte},
    {"BOOL", torch::kBool},
};

constexpr std::uint64_t kLargestHeader = 100'000'000;  // as the format's own library has it

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
    // False when the file ends before.
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
                            .expected = "room on the disk and permission to write"});
    }

    FileSeal seal;

  private:
    std::filesystem::path path_;
    int fd_;
};

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& found) {
    throw UserError({.where = {path.string()},
                     .found = found,
                     .expected = "a safetensors file",
                     .fix = "use another checkpoint, or make this one again"});
}

// One tensor of the header, checked against the length of the data.
struct Entry {
    std::string name;
    torch::ScalarType type = torch::kFloat;
    std::vector<std::int64_t> shape;
    std::uint64_t begin = 0, end = 0;
};

Entry read_entry(const std::filesystem::path& path, const std::string& name, const Json& fields,
                 std::uint64_t data_bytes) {
    Entry entry{.name = name};
    std::string shown = saturate::quoted(name);
    std::string type = fields["dtype"].string().value_or("");
    auto known = std::ranges::find_if(kTypes, [&](const Type& t) { return type == t.name; });
    if (known == std::end(kTypes))
        refuse(path, fmt::format("tensor {} is of type {}", shown, saturate::quoted(type)));
    entry.type = known->type;
    std::uint64_t bytes = c10::elementSize(entry.type);
    if (!fields["shape"].is_array() || fields["shape"].items().size() > 64)
        refuse(path, fmt::format("tensor {} has no shape", shown));
    for (const Json& item : fields["shape"].items()) {
        auto length = item.integer();
        if (!length || *length < 0)
            refuse(path, fmt::format("the shape of tensor {} is not of whole numbers", shown));
        entry.shape.push_back(*length);
        if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(*length), &bytes))
            refuse(path, fmt::format("the shape of tensor {} is too large for any file", shown));
    }
    const Json::Array& offsets = fields["data_offsets"].items();
    auto begin = offsets.size() == 2 ? offsets[0].integer() : std::nullopt;
    auto end = offsets.size() == 2 ? offsets[1].integer() : std::nullopt;
    if (!begin || !end || *begin < 0 || *end < *begin ||
        static_cast<std::uint64_t>(*end) > data_bytes) {
        refuse(path, fmt::format("tensor {} lies outside the file", shown));
    }
    entry.begin = static_cast<std::uint64_t>(*begin);
    entry.end = static_cast<std::uint64_t>(*end);
    if (entry.end - entry.begin != bytes)
        refuse(path, fmt::format("tensor {} has {} bytes for a shape of {}", shown,
                                 entry.end - entry.begin, bytes));
    return entry;
}

std::vector<Entry> read_header(const std::filesystem::path& path, const File& file,
                               std::uint64_t& data_at) {
    std::uint64_t size = file.size(), header_bytes = 0;
    if (size < 8 || !file.read(&header_bytes, 8, 0))
        refuse(path, fmt::format("{} bytes are too few for a header", size));
    if (header_bytes > kLargestHeader || header_bytes > size - 8)
        refuse(path, fmt::format("its header claims {} bytes of {}", header_bytes, size));
    std::string text(header_bytes, '\0');
    if (!file.read(text.data(), text.size(), 8)) refuse(path, "its header cannot be read");
    data_at = 8 + header_bytes;
    Json header = Json::parse(text, path.string());
    if (!header.is_object()) refuse(path, "its header is not an object");
    std::vector<Entry> entries;
    std::set<std::string> names;
    for (const auto& [name, fields] : header.members()) {
        if (name == "__metadata__") continue;
        if (!names.insert(name).second)
            refuse(path, fmt::format("tensor {} is there twice", saturate::quoted(name)));
        entries.push_back(read_entry(path, name, fields, size - data_at));
    }
    // The tensors fill the file one after the other, as the format asks: nothing is shared or
    // hidden.
    std::vector<Entry> sorted = entries;
    std::ranges::sort(sorted, {}, [](const Entry& e) { return std::pair(e.begin, e.end); });
    std::uint64_t at = 0;
    for (const Entry& entry : sorted) {
        if (entry.begin != at)
            refuse(path, fmt::format("tensor {} begins at {} and not at {}",
                                     saturate::quoted(entry.name), entry.begin, at));
        at = entry.end;
    }
    if (at != size - data_at)
        refuse(path, fmt::format("{} bytes belong to no tensor", size - data_at - at));
    return entries;
}

}  // namespace

FileSeal write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors) {
    Json header = Json::object({{"__metadata__", Json::object({{"format", "pt"}})}});
    std::vector<torch::Tensor> dense;
    std::uint64_t at = 0;
    for (const auto& [name, tensor] : tensors) {
        dense.push_back(tensor.detach().contiguous());
        auto type = std::ranges::find(kTypes, tensor.scalar_type(), &Type::type);
        SATURATE_CHECK(type != std::end(kTypes), "every type of a checkpoint has a name");
        std::uint64_t bytes = dense.back().nbytes();
        header.set(name, Json::object({{"dtype", type->name},
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
    if (!file.is_open()) refuse(path, std::strerror(errno));
    std::uint64_t data_at = 0;
    std::vector<Entry> entries = read_header(path, file, data_at);
    NamedTensors out;
    for (const Entry& entry : entries) {
        torch::Tensor tensor = torch::empty(entry.shape, torch::TensorOptions().dtype(entry.type));
        if (tensor.nbytes() > 0 &&
            !file.read(tensor.data_ptr(), tensor.nbytes(), data_at + entry.begin)) {
            refuse(path, fmt::format("tensor {} cannot be read", saturate::quoted(entry.name)));
        }
        out.emplace_back(entry.name, std::move(tensor));
    }
    return out;
}

FileSeal seal_of(const std::filesystem::path& path) {
    File file(path, O_RDONLY);
    if (!file.is_open()) refuse(path, std::strerror(errno));
    FileSeal seal;
    std::vector<char> part(std::size_t{1} << 20);
    std::uint64_t size = file.size();
    while (seal.bytes < size) {
        std::size_t bytes = std::min<std::uint64_t>(part.size(), size - seal.bytes);
        if (!file.read(part.data(), bytes, seal.bytes)) refuse(path, "cannot be read to its end");
        seal.checksum = crc32c(part.data(), bytes, seal.checksum);
        seal.bytes += bytes;
    }
    return seal;
}

}  // namespace saturate
