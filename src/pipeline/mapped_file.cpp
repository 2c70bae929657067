// SPDX-License-Identifier: Apache-2.0
#include "pipeline/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/descriptor.h"
#include "base/error.h"

namespace saturate {

MappedFile::MappedFile(const std::filesystem::path& path, std::string_view what) {
    auto fail = [&](const std::string& found) {
        return UserError(
            {.where = {path.string()}, .found = found, .expected = std::string(what), .fix = ""});
    };
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.is_open()) throw fail(std::strerror(errno));
    struct stat facts {};
    bool known = ::fstat(file.get(), &facts) == 0;
    if (!known || !S_ISREG(facts.st_mode) || facts.st_size == 0)
        throw fail(!known || S_ISREG(facts.st_mode) ? "an empty file" : "not a regular file");
    size_ = static_cast<std::size_t>(facts.st_size);
    void* memory = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) throw fail(fmt::format("cannot be mapped: {}", std::strerror(errno)));
    data_ = static_cast<const std::byte*>(memory);
}

MappedFile::~MappedFile() { ::munmap(const_cast<std::byte*>(data_), size_); }

}  // namespace saturate
