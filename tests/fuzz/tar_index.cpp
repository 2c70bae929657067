// SPDX-License-Identifier: Apache-2.0
// Any bytes as a tar archive, their header checksums mended: a UserError, or entries that lie
// within the archive.
#include "pipeline/tar_index.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"

namespace {

class MemoryBytes final : public saturate::TarBytes {
  public:
    explicit MemoryBytes(std::string text) : text_(std::move(text)) {}
    [[nodiscard]] std::uint64_t size() const override { return text_.size(); }
    void read(std::uint64_t offset, std::size_t count, char* out) override {
        if (offset > text_.size() || count > text_.size() - offset) std::abort();
        std::memcpy(out, text_.data() + offset, count);
    }

  private:
    std::string text_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string text(reinterpret_cast<const char*>(data), size);
    for (std::size_t at = 0; at + 512 <= text.size(); at += 512) {
        if (text[at] == 0) continue;
        unsigned sum = 0;
        for (std::size_t i = 0; i < 512; ++i)
            sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(text[at + i]);
        char digits[8];
        std::snprintf(digits, sizeof digits, "%06o", sum);
        text.replace(at + 148, 8, std::string(digits, 6) + '\0' + ' ');
    }
    MemoryBytes bytes(text);
    try {
        for (const saturate::TarEntry& entry : saturate::index_tar(bytes, "fuzz"))
            if (entry.offset > size || entry.size > size - entry.offset) std::abort();
    } catch (const saturate::UserError&) {
    }
    return 0;
}
