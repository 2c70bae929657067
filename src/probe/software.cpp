// SPDX-License-Identifier: Apache-2.0
#include "probe/software.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
    std::error_code error;
    return fs::exists(path, error);
}

// The quoted text in "name = 'value'" or "name: Optional[str] = 'value'"; nothing for None.
std::optional<std::string> python_string(std::string_view text, std::string_view name) {
    for (std::string_view line : split(text, '\n')) {
        if (!line.starts_with(name)) continue;
        std::string_view rest = line.substr(name.size());
        if (!rest.starts_with(" ") && !rest.starts_with(":") && !rest.starts_with("=")) continue;
        std::size_t first = rest.find_first_of("'\"");
        if (first == std::string_view::npos) return std::nullopt;
        std::size_t last = rest.find(rest[first], first + 1);
        if (last == std::string_view::npos) return std::nullopt;
        return std::string(rest.substr(first + 1, last - first - 1));
    }
    return std::nullopt;
}

bool holds_cublas(const fs::path& folder) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
        if (entry->path().filename().string().starts_with("libcublas.so")) return true;
    }
    return false;
}

// The wheel has the CUDA libraries as separate packages. They are not installed on machines without
// a GPU.
bool has_cuda_libraries(const fs::path& site) {
    if (holds_cublas(site / "torch/lib")) return true;
    std::error_code error;
    for (fs::directory_iterator entry(site / "nvidia", error);
         !error && entry != fs::directory_iterator(); entry.increment(error)) {
        if (holds_cublas(entry->path() / "lib")) return true;
    }
    return false;
}

// The rest of the first line that starts with `words`.
std::optional<std::string> text_behind(std::string_view text, std::string_view words) {
    for (std::string_view line : split(text, '\n')) {
        if (line.starts_with(words)) return std::string(trim(line.substr(words.size())));
    }
    return std::nullopt;
}

std::optional<std::string> toolkit_version(const fs::path& folder) {
    std::string text = read_if_there(folder / "version.json");
    if (!text.empty()) {
        try {
            return Json::parse(text, "version.json")["cuda"]["version"].string();
        } catch (const UserError&) {
            return std::nullopt;  // broken file: the toolkit is there, its version is unknown
        }
    }
    // Before CUDA 11: "CUDA Version 10.2.89".
    if (auto version = text_behind(read_if_there(folder / "version.txt"), "CUDA Version "))
        return version;
    // A toolkit installed from single packages has neither file: "#define CUDA_VERSION 13000".
    auto number = parse_integer(text_behind(read_start_if_there(folder / "include/cuda.h", 1 << 16),
                                            "#define CUDA_VERSION ")
                                    .value_or(""));
    if (!number) return std::nullopt;
    return fmt::format("{}.{}", *number / 1000, *number % 1000 / 10);
}

}  // namespace

TorchFacts probe_torch(const fs::path& site) {
    TorchFacts torch{.folder = site};
    if (site.empty()) return torch;
    torch.found = is_there(site / "torch/lib/libtorch_cpu.so");
    if (!torch.found) return torch;
    std::string text = read_if_there(site / "torch/version.py");
    torch.version = python_string(text, "__version__");
    torch.cuda_version = python_string(text, "cuda");
    torch.gpu_ready = is_there(site / "torch/lib/libtorch_cuda.so") && has_cuda_libraries(site);
    return torch;
}

void refuse_other_torch(const fs::path& torch, std::string_view built_with) {
    auto version = python_string(read_if_there(torch / "version.py"), "__version__");
    if (!version) return;
    std::size_t minor = version->find('.');
    std::size_t end = version->find_first_not_of("0123456789", minor + 1);
    std::string_view found = std::string_view(*version).substr(0, end);
    if (found == built_with) return;
    throw MachineError(
        {.where = {torch.string()},
         .found =
             fmt::format("PyTorch {}, and this engine was built with {}", *version, built_with),
         .expected = fmt::format("PyTorch {}: tensors of another version would be read wrongly",
                                 built_with),
         .fix =
             fmt::format("pip install \"torch=={}.*\", or the saturate-gpu-engine for PyTorch {}",
                         built_with, found)});
}

std::optional<ToolkitFacts> probe_toolkit(std::span<const fs::path> folders) {
    for (const fs::path& folder : folders) {
        if (folder.empty() || !is_there(folder / "bin/nvcc")) continue;
        return ToolkitFacts{.folder = folder, .version = toolkit_version(folder)};
    }
    return std::nullopt;
}

}  // namespace saturate
