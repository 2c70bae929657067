// SPDX-License-Identifier: Apache-2.0
// The C++ snippets of docs/pipeline.md, compiled and run where the files that they name are.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>

#include "pipeline/image_write.h"
#include "support/run.h"

namespace saturate {
namespace {

class PipelineDocsTest : public testing::Test {
  protected:
    PipelineDocsTest() : before_(std::filesystem::current_path()) {
        std::string table = "Date;CO;T;\n";
        for (int i = 0; i < 200; ++i) table += fmt::format("10/03/2004;{},5;{};\n", i % 7, i % 24);
        folder_.file("air.csv", table);
        std::vector<std::uint8_t> pixels(80 * 60 * 3, 100);
        for (const char* name : {"cat/1.jpg", "cat/2.jpg", "dog/3.jpg", "dog/4.jpg"}) {
            std::filesystem::path path = folder_.path() / "photos" / name;
            std::filesystem::create_directories(path.parent_path());
            write_jpeg(path,
                       {.pixels = pixels.data(), .size = {80, 60}, .channels = 3, .stride = 240});
        }
        std::filesystem::current_path(folder_.path());
    }
    ~PipelineDocsTest() override { std::filesystem::current_path(before_); }

  private:
    TemporaryFolder folder_;
    std::filesystem::path before_;
};

}  // namespace
}  // namespace saturate

#include "pipeline_snippets.inc"
