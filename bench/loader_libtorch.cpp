// SPDX-License-Identifier: Apache-2.0
// A peer of works A and B of bench/loader: LibTorch's own DataLoader with two worker threads, as
// one would write it: libjpeg-turbo or libpng, then ATen. Prints one line of JSON.
//
//   bench_loader_libtorch A|B FOLDER WORKERS SECONDS
#include <png.h>
#include <torch/torch.h>
#include <turbojpeg.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>

namespace {

using torch::indexing::Slice;

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

double cpu_seconds() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Not ru_maxrss: that keeps the peak of the process that started this one.
long peak_bytes() {
    std::ifstream file("/proc/self/status");
    std::string word;
    while (file >> word) {
        long kib = 0;
        if (word == "VmHWM:" && file >> kib) return kib * 1024;
    }
    return 0;
}

std::vector<std::uint8_t> read(const std::string& path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(file.tellg()));
    file.seekg(0);
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return bytes;
}

torch::Tensor decode_jpeg(const std::vector<std::uint8_t>& bytes) {
    thread_local tjhandle handle = tjInitDecompress();
    int width = 0, height = 0, subsampling = 0, colours = 0;
    TORCH_CHECK(tjDecompressHeader3(handle, bytes.data(), bytes.size(), &width, &height,
                                    &subsampling, &colours) == 0);
    torch::Tensor image = torch::empty({height, width, 3}, torch::kUInt8);
    TORCH_CHECK(tjDecompress2(handle, bytes.data(), bytes.size(), image.data_ptr<std::uint8_t>(),
                              width, 0, height, TJPF_RGB, 0) == 0);
    return image;
}

torch::Tensor decode_png(const std::vector<std::uint8_t>& bytes) {
    png_image image;
    std::memset(&image, 0, sizeof image);
    image.version = PNG_IMAGE_VERSION;
    TORCH_CHECK(png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()));
    image.format = PNG_FORMAT_GRAY;
    torch::Tensor out = torch::empty({1, image.height, image.width}, torch::kUInt8);
    TORCH_CHECK(png_image_finish_read(&image, nullptr, out.data_ptr<std::uint8_t>(), 0, nullptr));
    return out;
}

// Random resized crop and flip as torchvision has them.
torch::Tensor crop(const torch::Tensor& image, std::mt19937& random) {
    std::uniform_real_distribution<float> unit(0, 1);
    int height = static_cast<int>(image.size(0)), width = static_cast<int>(image.size(1));
    int side = std::min(width, height), x = 0, y = 0, w = side, h = side;
    for (int attempt = 0; attempt < 10; ++attempt) {
        float area = static_cast<float>(width * height) * (0.08f + 0.92f * unit(random));
        float shape = std::exp(std::log(0.75f) + unit(random) * std::log(16.0f / 9));
        int tried_w = static_cast<int>(std::lround(std::sqrt(area * shape)));
        int tried_h = static_cast<int>(std::lround(std::sqrt(area / shape)));
        if (tried_w <= 0 || tried_h <= 0 || tried_w > width || tried_h > height) continue;
        w = tried_w;
        h = tried_h;
        x = static_cast<int>(unit(random) * static_cast<float>(width - w + 1));
        y = static_cast<int>(unit(random) * static_cast<float>(height - h + 1));
        break;
    }
    torch::Tensor part = image.index({Slice(y, y + h), Slice(x, x + w)}).permute({2, 0, 1});
    part = at::_upsample_bilinear2d_aa(part.unsqueeze(0), {224, 224}, false)[0];
    return unit(random) < 0.5f ? part.flip({2}) : part;
}

class Images : public torch::data::datasets::Dataset<Images> {
  public:
    Images(const std::string& folder, bool photos) : photos_(photos) {
        for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
            if (entry.is_regular_file()) paths_.push_back(entry.path());
        }
        std::sort(paths_.begin(), paths_.end());
        mean_ = torch::tensor({0.485f, 0.456f, 0.406f}).view({3, 1, 1}) * 255;
        deviation_ = torch::tensor({0.229f, 0.224f, 0.225f}).view({3, 1, 1}) * 255;
    }
    torch::optional<std::size_t> size() const override { return paths_.size(); }
    torch::data::Example<> get(std::size_t index) override {
        thread_local std::mt19937 random(std::random_device{}());
        std::vector<std::uint8_t> bytes = read(paths_[index]);
        torch::Tensor label = torch::tensor(std::int64_t{0});
        if (!photos_) return {decode_png(bytes).to(torch::kFloat32).sub_(127.5).div_(63.75), label};
        torch::Tensor image = crop(decode_jpeg(bytes), random).to(torch::kFloat32);
        return {image.sub_(mean_).div_(deviation_).contiguous(), label};
    }

  private:
    bool photos_;
    std::vector<std::string> paths_;
    torch::Tensor mean_, deviation_;
};

}  // namespace

int main(int count, char** words) {
    if (count != 5) return 2;
    double begun = seconds_now();
    at::set_num_threads(1);
    bool photos = std::string(words[1]) == "A";
    double seconds = std::atof(words[4]), first = 0, counted = 0, cpu = 0;
    auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
        Images(words[2], photos).map(torch::data::transforms::Stack<>()),
        torch::data::DataLoaderOptions()
            .batch_size(photos ? 64 : 128)
            .workers(static_cast<std::size_t>(std::atoi(words[3])))
            .drop_last(true));
    std::int64_t samples = 0;
    double start = seconds_now();
    while (true) {
        for (auto& batch : *loader) {
            double now = seconds_now();
            if (first == 0) first = now - begun;
            if (counted > 0) samples += batch.data.size(0);
            if (counted == 0 && now - start > seconds / 5) {
                counted = now;
                cpu = cpu_seconds();
            }
            if (now - start > seconds && samples > 0) {
                double n = static_cast<double>(samples);
                std::printf(
                    "{\"rate\":%.1f,\"first_seconds\":%.4f,\"cpu_us\":%.2f,\"memory_bytes\":%ld}\n",
                    n / (now - counted), first, (cpu_seconds() - cpu) / n * 1e6, peak_bytes());
                std::fflush(stdout);
                std::_Exit(0);  // its workers hold half an epoch that nobody waits for
            }
        }
    }
}
