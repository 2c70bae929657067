// SPDX-License-Identifier: Apache-2.0
#include "process/shim_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>

#include "base/embedded.h"
#include "base/error.h"
#include "base/file.h"
#include "remedies/catalogue.h"

namespace saturate {

std::span<const EmbeddedFile> embedded_python();
std::string_view embedded_extension();  // empty if the build had no Python.h

namespace {

// The folder holds a socket, whose path may have at most 107 bytes.
constexpr std::size_t kLongestFolder = 80;

}  // namespace

ShimFolder::ShimFolder() {
    std::error_code error;
    std::filesystem::path parent = std::filesystem::temp_directory_path(error);
    if (error || parent.string().size() > kLongestFolder) parent = "/tmp";
    std::string pattern = (parent / "saturate-run-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) {
        missing_because_ =
            fmt::format("cannot create a folder in {}: {}", parent.string(), std::strerror(errno));
        return;
    }
    path_ = pattern;
    try {
        write();
    } catch (const Failure& failure) {
        missing_because_ = fmt::format("{}: {}", parent.string(), failure.problems().front().found);
    } catch (const std::filesystem::filesystem_error& failure) {
        missing_because_ = fmt::format("{}: {}", parent.string(), failure.code().message());
    }
}

void ShimFolder::write() {
    constexpr std::string_view kPackage = "saturate_gpu/";
    for (const EmbeddedFile& file : embedded_python()) {
        std::string name(file.name);
        // Not under its own name, because the job may have the package itself.
        if (name.starts_with(kPackage))
            name = fmt::format("_saturate_shim/translation/{}", name.substr(kPackage.size()));
        std::filesystem::path path = path_ / "python" / name;
        std::filesystem::create_directories(path.parent_path());
        write_file_whole(path, file.text);
    }
    write_file_whole(path_ / "python/_saturate_shim/remedies.py", shim_table());
    if (std::string_view extension = embedded_extension(); !extension.empty())
        write_file_whole(path_ / "python/_saturate_shim/_saturate_step.abi3.so", extension);
}

ShimFolder::~ShimFolder() {
    if (path_.empty()) return;
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::vector<std::pair<std::string, std::string>> ShimFolder::environment(
    const ShimWishes& wishes) const {
    if (!missing_because_.empty()) return {};
    std::string path = (path_ / "python").string();
    if (const char* old = std::getenv("PYTHONPATH"); old && *old) path += fmt::format(":{}", old);
    std::vector<std::pair<std::string, std::string>> out = {{"PYTHONPATH", path},
                                                            {"SATURATE_RUN_DIR", path_.string()}};
    if (!wishes.apply.empty()) out.emplace_back("SATURATE_APPLY", wishes.apply);
    if (wishes.with_losses) out.emplace_back("SATURATE_LOSSES", "1");
    if (wishes.with_traces) {
        out.emplace_back("KINETO_USE_DAEMON", "1");
        out.emplace_back("KINETO_IPC_SOCKET_DIR", path_.string());
        // Kineto's messages would appear between the script's lines.
        if (!std::getenv("KINETO_LOG_LEVEL")) out.emplace_back("KINETO_LOG_LEVEL", "5");
    }
    return out;
}

}  // namespace saturate
