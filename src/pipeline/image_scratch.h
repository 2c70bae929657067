// SPDX-License-Identifier: Apache-2.0
// What one worker needs to read images from files of their own: shared by the sources that do.
#pragma once

#include <string>

#include "pipeline/image_stage.h"
#include "pipeline/sample_file.h"
#include "pipeline/source.h"

namespace saturate {

struct ImageScratch final : Scratch {
    explicit ImageScratch(const ImageTransform& transform) : stage(transform) {}

    // Reads the file at `path` and passes it to `use`; errors of the image get the file's name.
    template <typename Use>
    void with_file(SampleCost& cost, const Use& use) {
        Bytes bytes = read_sample_file(path, memory, cost);
        try {
            use(bytes);
        } catch (const BadImage& bad) {
            throw BadSample(path, bad.what());
        }
    }

    ImageStage stage;
    std::string path;
    Buffer<std::uint8_t> memory;  // of the file
};

// Adds the path, size and time of a file to the identity of a source.
[[nodiscard]] std::uint64_t mix_file(std::uint64_t hash, const std::string& path);

}  // namespace saturate
