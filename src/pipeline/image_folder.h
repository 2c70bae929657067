// SPDX-License-Identifier: Apache-2.0
// Images on disk as samples: a folder per class, pairs of input and target, images with a table of
// numbers, or images alone. Made by pipeline/open or a job; write() from many threads.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/file_list.h"
#include "pipeline/source.h"
#include "pipeline/transform.h"

namespace saturate {

enum class FolderLayout {
    classes,  // root/<class>/**/<image>: fields image, label (int64: index of the class by name)
    pairs,    // root/input/** and root/target/**, matched by path without ending; fields input,
              // target; the same crop and flips for both
    table,    // root/**/<image> and a CSV: file name, then numbers; fields image, target (float32)
    plain,    // root/**/<image>: field image
};

struct ImageFolderSettings {
    std::filesystem::path root;
    FolderLayout layout = FolderLayout::classes;
    ImageTransform transform;
    std::string input = "input";  // pairs: names of the two folders
    std::string target = "target";
    std::string table = "labels.csv";  // table: below the root
    // table: its numbers are x, y of points in pixels of the image on disk; they are moved along
    // with the image by the transform
    bool points = false;
    std::vector<std::string> classes = {};  // by label; empty: the classes found, sorted by name
    FileListSettings listing;
};

class ImageFolder final : public CacheableSource {
  public:
    // Lists the files. Throws UserError if there are none or they do not fit the layout.
    explicit ImageFolder(ImageFolderSettings settings);
    ~ImageFolder() override;

    [[nodiscard]] std::int64_t size() const override;
    [[nodiscard]] const std::vector<FieldSpec>& fields() const override;
    [[nodiscard]] std::unique_ptr<Scratch> make_scratch() const override;
    void write(const SampleDraw& draw, Scratch& scratch, std::span<std::byte* const> places,
               SampleCost& cost) const override;
    [[nodiscard]] std::string name_of(std::int64_t index) const override;
    // Prepares whole decoded images for the cache; crops, flips and colours stay random.
    void prepare(std::int64_t index, Scratch& scratch, std::vector<std::byte>& prepared,
                 SampleCost& cost) const override;
    void finish(const SampleDraw& draw, std::span<const std::byte> prepared, Scratch& scratch,
                std::span<std::byte* const> places, SampleCost& cost) const override;
    [[nodiscard]] std::string identity() const override;

    [[nodiscard]] const std::vector<std::string>& classes() const;  // by label
    [[nodiscard]] std::vector<std::string> notes() const override;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
