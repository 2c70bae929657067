// SPDX-License-Identifier: Apache-2.0
#include "pipeline/make_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <fstream>
#include <map>
#include <mutex>
#include <numbers>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "config/reference_jobs.h"
#include "pipeline/canvas.h"
#include "pipeline/image_write.h"
#include "pipeline/make_tables.h"

namespace saturate {

namespace fs = std::filesystem;

namespace {

using Progress = std::function<void(std::int64_t made, std::int64_t samples)>;
constexpr double kPi = std::numbers::pi;
constexpr std::int64_t kValidationEvery = 10;  // every tenth picture is for validation

bool is_for_validation(std::int64_t index) {
    return index % kValidationEvery == kValidationEvery - 1;
}

const JobDataMade& made_for(const std::string& job) {
    const ReferenceJob* found = find_reference_job(job);
    if (found && found->made.files != MadeFiles::none) return found->made;
    Problem problem{.found = fmt::format("there is no data to make for {}", in_quotes(job)),
                    .expected = join(jobs_with_data(), ", ")};
    if (auto meant = closest(job, jobs_with_data()))
        problem.fix = fmt::format("saturate data make {}", *meant);
    throw UserError(problem);
}

struct Picture {
    std::vector<std::uint8_t> pixels;
    ImageSize size;
    int channels = 3;
    [[nodiscard]] ImageView view() const {
        return {.pixels = pixels.data(),
                .size = size,
                .channels = channels,
                .stride = static_cast<std::size_t>(size.width * channels)};
    }
};

void make_folder(const fs::path& path) {
    std::error_code error;
    fs::create_directories(path, error);
    if (!error) return;
    throw UserError({.where = {path.string()},
                     .found = fmt::format("cannot create the folder: {}", error.message()),
                     .expected = "a folder that you can write to",
                     .fix = "choose another with -o"});
}

// Makes and writes pictures, each from its number alone. One per thread.
class PictureWriter {
  public:
    PictureWriter(const MakeDataSettings& settings, MadeFiles files)
        : settings_(settings), files_(files) {}

    void make(std::int64_t index) {
        index_ = index;
        is_validation_ = is_for_validation(index);
        name_ = fmt::format("{:06}", index);
        dice_ = Dice(mix(settings_.seed, static_cast<std::uint64_t>(index)));
        if (files_ == MadeFiles::pairs) pairs();
        if (files_ == MadeFiles::points) points();
        if (files_ == MadeFiles::classes) classes();
    }

    std::uint64_t bytes = 0;
    std::map<std::int64_t, std::string> labels;  // lines of labels.csv, by picture number

  private:
    void pairs() {
        Canvas canvas(256, 192, 3);
        canvas.scene(dice_);
        Picture target{canvas.bytes(), {256, 192}};
        Picture input{halve_and_enlarge(target.pixels, target.size, 3), target.size};
        put("target", ".png", target);
        put("input", ".png", input);
    }

    void points() {
        Canvas canvas(320, 160, 3);
        canvas.scene(dice_);
        double radius = dice_.between(14, 22), margin = radius * 1.3;
        Outline outline =
            dice_.unit() < 0.6 ? Outline::jigsaw : static_cast<Outline>(dice_.below(3) * 2);
        Shape hole{.outline = outline,
                   .x = dice_.between(160 + margin, 320 - margin),
                   .y = dice_.between(margin, 160 - margin),
                   .radius = radius};
        Shape piece = hole;
        piece.x = dice_.between(margin, 160 - margin);
        piece.y = dice_.between(margin, 160 - margin);
        draw_hole_and_piece(canvas, hole, piece);
        canvas.noise(0.01, dice_);
        put("", ".jpg", {canvas.bytes(), {320, 160}});
        labels[index_] = fmt::format("{}.jpg,{:.2f},{:.2f},{:.2f},{:.2f}\n", name_, hole.x, hole.y,
                                     piece.x, piece.y);
    }

    void classes() {
        static constexpr const char* kClasses[] = {"blobs",  "checks",  "cross", "disc",
                                                   "ring",   "square",  "star",  "stripes",
                                                   "target", "triangle"};
        // Every tenth picture is for validation, so the class must not repeat every ten.
        int label = static_cast<int>((index_ + index_ / kValidationEvery) % 10);
        Canvas canvas(128, 128, 1);
        draw_class(canvas, kClasses[label]);
        put(kClasses[label], ".png", {canvas.bytes(), {128, 128}, 1});
    }

    void put(const std::string& folder, const std::string& ending, const Picture& picture) {
        fs::path path = settings_.out / (is_validation_ ? "val" : "train") / folder;
        make_folder(path);
        path /= name_ + ending;
        std::string encoded =
            ending == ".png" ? encode_png(picture.view()) : encode_jpeg(picture.view());
        // Not synced one by one: there are thousands, and they can be made again.
        std::ofstream file(path, std::ios::binary);
        if (!file.write(encoded.data(), static_cast<std::streamsize>(encoded.size())).flush()) {
            throw MachineError(
                {.where = {path.string()},
                 .found = "cannot write the picture",
                 .expected = "a disk with free space and a folder that you can write to"});
        }
        bytes += encoded.size();
    }

    void draw_hole_and_piece(Canvas& canvas, const Shape& hole, const Shape& piece) {
        // The piece shows what the hole lacks: copy the background before darkening the hole.
        Canvas ground = canvas;
        canvas.fill(hole, {0.05, 0.05, 0.08}, dice_.between(0.5, 0.75));
        canvas.outline(hole, {0.9, 0.9, 0.9}, 1.2, 0.5);
        Distance from_piece(piece);
        int dx = static_cast<int>(std::lround(hole.x - piece.x));
        int dy = static_cast<int>(std::lround(hole.y - piece.y));
        for (int y = 0; y < canvas.height(); ++y) {
            for (int x = 0; x < canvas.width(); ++x) {
                int from_x = x + dx, from_y = y + dy;
                bool is_there = from_x >= 0 && from_x < canvas.width() && from_y >= 0 &&
                                from_y < canvas.height();
                if (!is_there || from_piece(x + 0.5, y + 0.5) > 0) continue;
                for (int k = 0; k < 3; ++k) canvas.at(x, y, k) = ground.at(from_x, from_y, k);
            }
        }
        canvas.outline(piece, {1.0, 1.0, 1.0}, 2.0, 0.85);
    }

    void draw_class(Canvas& canvas, std::string_view name) {
        double ground = dice_.between(0.2, 0.8);
        double ink = ground + (ground < 0.5 ? 1 : -1) * dice_.between(0.25, 0.5);
        double other = ground + dice_.between(-0.15, 0.15);
        canvas.gradient({ground, 0, 0}, {other, 0, 0}, dice_.between(0, 2 * kPi));
        double wavelength = dice_.between(8, 20), turn = dice_.between(0, kPi);
        Shape shape{.x = dice_.between(40, 88),
                    .y = dice_.between(40, 88),
                    .radius = dice_.between(18, 38),
                    .turn = dice_.between(0, 2 * kPi)};
        auto filled = [&](Outline outline) {
            shape.outline = outline;
            canvas.fill(shape, {ink, 0, 0}, 1);
        };
        if (name == "blobs") canvas.blobs(wavelength, 0.35, dice_);
        if (name == "checks") {
            canvas.stripes(wavelength, turn, 0.15);
            canvas.stripes(wavelength, turn + kPi / 2, 0.15);
        }
        if (name == "stripes") canvas.stripes(wavelength, turn, 0.25);
        if (name == "cross") filled(Outline::cross);
        if (name == "disc") filled(Outline::disc);
        if (name == "ring") filled(Outline::ring);
        if (name == "square") filled(Outline::square);
        if (name == "star") filled(Outline::star);
        if (name == "triangle") filled(Outline::triangle);
        if (name == "target") {
            filled(Outline::ring);
            shape.radius *= 0.4;
            filled(Outline::disc);
        }
        canvas.blobs(dice_.between(10, 30), 0.08, dice_);
        canvas.noise(dice_.between(0.02, 0.1), dice_);
    }

    const MakeDataSettings& settings_;
    MadeFiles files_;
    std::int64_t index_ = 0;
    bool is_validation_ = false;
    std::string name_;
    Dice dice_{0};
};

// Writes the labels of training and validation pictures into separate tables.
std::uint64_t write_labels(const fs::path& folder,
                           const std::map<std::int64_t, std::string>& labels) {
    std::string tables[2];
    for (const auto& [index, line] : labels) {
        std::string& table = tables[is_for_validation(index) ? 1 : 0];
        if (table.empty()) table = "file,hole_x,hole_y,piece_x,piece_y\n";
        table += line;
    }
    for (int i = 0; i < 2; ++i) {
        if (!tables[i].empty())
            write_file_whole(folder / (i == 1 ? "val" : "train") / "labels.csv", tables[i]);
    }
    return tables[0].size() + tables[1].size();
}

// All cores take the next picture in turn; the calling thread reports the progress.
MadeData make_pictures(const MakeDataSettings& settings, MadeFiles files,
                       const Progress& progress) {
    std::atomic<std::int64_t> next{0};
    std::exception_ptr failed;
    std::mutex mutex;  // guards `failed`
    auto work = [&](PictureWriter& writer, bool tells) {
        try {
            for (std::int64_t i = next++; i < settings.samples; i = next++) {
                if (tells) progress(i, settings.samples);
                writer.make(i);
            }
        } catch (...) {
            std::lock_guard lock(mutex);
            failed = std::current_exception();
            next = settings.samples;
        }
    };
    std::vector<PictureWriter> writers(std::max(1u, std::thread::hardware_concurrency()),
                                       PictureWriter(settings, files));
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 1; i < writers.size(); ++i)
            threads.emplace_back([&, i] { work(writers[i], false); });
        work(writers[0], true);
    }
    if (failed) std::rethrow_exception(failed);
    MadeData out{.path = settings.out, .validation = settings.samples / kValidationEvery};
    out.training = settings.samples - out.validation;
    std::map<std::int64_t, std::string> labels;
    for (PictureWriter& writer : writers) {
        out.bytes += writer.bytes;
        labels.merge(writer.labels);
    }
    out.bytes += write_labels(settings.out, labels);
    return out;
}

void refuse_what_is_there(const fs::path& path) {
    bool is_file = fs::is_regular_file(path);
    if (!is_file && !(fs::is_directory(path) && !fs::is_empty(path))) return;
    throw UserError({.where = {path.string()},
                     .found = is_file ? "the file already exists" : "the folder is not empty",
                     .expected = "a file that does not exist yet",
                     .fix = "choose another with -o, or remove it"});
}

MadeData make_table(const MakeDataSettings& settings, MadeFiles files) {
    std::string text = files == MadeFiles::load_table
                           ? load_csv(settings.samples, settings.seed)
                           : air_quality_csv(settings.samples, settings.seed);
    if (settings.out.has_parent_path()) make_folder(settings.out.parent_path());
    write_file_whole(settings.out, text);
    return {.path = settings.out,
            .training = settings.samples,
            .validation = 0,
            .bytes = text.size(),
            .layout = {}};
}

}  // namespace

std::vector<std::string> jobs_with_data() {
    std::vector<std::string> out;
    for (const ReferenceJob& job : reference_job_table()) {
        if (job.made.files != MadeFiles::none) out.emplace_back(job.name);
    }
    return out;
}

std::filesystem::path usual_data_path(const std::string& job) { return made_for(job).path; }

MadeData make_data(const MakeDataSettings& wish, const Progress& progress) {
    const JobDataMade& made = made_for(wish.job);
    MakeDataSettings settings = wish;
    if (settings.out.empty()) settings.out = made.path;
    if (settings.samples == 0) settings.samples = made.samples;
    refuse_what_is_there(settings.out);
    MadeData out;
    if (made.files == MadeFiles::load_table || made.files == MadeFiles::air_table) {
        out = make_table(settings, made.files);
    } else {
        out = make_pictures(settings, made.files, progress);
    }
    out.layout = made.layout;
    return out;
}

}  // namespace saturate
