// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace saturate {

namespace fs = std::filesystem;

namespace {

constexpr int kSchema = 1;
constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kStateFile = "state.safetensors";
constexpr const char* kFactsFile = "state.json";
constexpr const char* kUnfinished = "unfinished_";
constexpr std::uint64_t kFactsLargest = 16 << 20;

void sync_folder(const fs::path& folder) {
    int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    ::fsync(fd);
    ::close(fd);
}

Json seal_json(const FileSeal& seal) {
    return Json::object({{"bytes", seal.bytes}, {"crc32c", seal.checksum}});
}

void check_seal(const fs::path& file, const Json& written) {
    FileSeal seal = seal_of(file);
    auto bytes = written["bytes"].integer(), checksum = written["crc32c"].integer();
    if (bytes && checksum && static_cast<std::uint64_t>(*bytes) == seal.bytes &&
        static_cast<std::uint32_t>(*checksum) == seal.checksum) {
        return;
    }
    throw UserError({.where = {file.string()},
                     .found = bytes && static_cast<std::uint64_t>(*bytes) != seal.bytes
                                  ? fmt::format("incomplete: {} bytes of {}", seal.bytes, *bytes)
                                  : std::string("damaged: its content is not what was written"),
                     .expected = "the file as it was written",
                     .fix = "resume from another checkpoint of this folder"});
}

std::optional<std::int64_t> step_of(const fs::path& path) {
    std::string name = path.filename();
    if (!name.starts_with("step_")) return std::nullopt;
    return parse_integer(std::string_view(name).substr(5));
}

std::string shape_text(const torch::Tensor& tensor) {
    std::vector<std::string> lengths;
    for (std::int64_t length : tensor.sizes()) lengths.push_back(std::to_string(length));
    return fmt::format("{} [{}]", c10::toString(tensor.scalar_type()), join(lengths, ", "));
}

std::string checkpoint_name(std::int64_t step) { return fmt::format("step_{:010}", step); }

}  // namespace

bool has_checkpoint(const fs::path& folder, std::int64_t step) {
    std::error_code error;
    return fs::exists(folder / checkpoint_name(step), error);
}

fs::path write_checkpoint(const fs::path& folder, const Checkpoint& checkpoint) {
    std::string name = checkpoint_name(checkpoint.step);
    fs::path path = folder / name, unfinished = folder / (kUnfinished + name);
    std::error_code error;
    fs::create_directories(folder, error);
    fs::remove_all(unfinished, error);
    if (!fs::create_directory(unfinished, error)) {
        throw MachineError({.where = {unfinished.string()},
                            .found = fmt::format("cannot create a folder: {}", error.message()),
                            .expected = "free space on the disk and permission to write"});
    }
    try {
        FileSeal model = write_safetensors(unfinished / kModelFile, checkpoint.model);
        FileSeal state = write_safetensors(unfinished / kStateFile, checkpoint.state);
        Json facts = Json::object({{"schema", kSchema},
                                   {"step", checkpoint.step},
                                   {"files", Json::object({{kModelFile, seal_json(model)},
                                                           {kStateFile, seal_json(state)}})},
                                   {"trainer", checkpoint.facts}});
        write_file_whole(unfinished / kFactsFile, facts.pretty() + "\n");
        sync_folder(unfinished);
        fs::remove_all(path);  // from an earlier run that reached this step
        fs::rename(unfinished, path);
        sync_folder(folder);
    } catch (const fs::filesystem_error& failed) {
        fs::remove_all(unfinished, error);
        throw MachineError({.where = {path.string()},
                            .found = fmt::format("cannot be written: {}", failed.code().message()),
                            .expected = "free space on the disk and permission to write"});
    } catch (...) {
        fs::remove_all(unfinished, error);
        throw;
    }
    return path;
}

Checkpoint read_checkpoint(const fs::path& path) {
    fs::path file = path / kFactsFile;
    Json facts = Json::parse(read_file(file, kFactsLargest, "a checkpoint"), file.string());
    if (facts["schema"].integer() != kSchema || !facts["step"].integer()) {
        throw UserError({.where = {file.string()},
                         .found = "not a checkpoint state of this version",
                         .expected = fmt::format("schema {} and a step", kSchema)});
    }
    check_seal(path / kModelFile, facts["files"][kModelFile]);
    check_seal(path / kStateFile, facts["files"][kStateFile]);
    return {.step = *facts["step"].integer(),
            .model = read_safetensors(path / kModelFile),
            .state = read_safetensors(path / kStateFile),
            .facts = facts["trainer"]};
}

std::vector<fs::path> list_checkpoints(const fs::path& folder) {
    std::vector<std::pair<std::int64_t, fs::path>> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        if (auto step = step_of(entry.path())) found.emplace_back(*step, entry.path());
    }
    std::ranges::sort(found, std::greater<>());
    std::vector<fs::path> out;
    for (auto& [step, path] : found) out.push_back(std::move(path));
    return out;
}

void prune_checkpoints(const fs::path& folder, std::size_t keep) noexcept {
    try {
        std::error_code error;
        fs::path best = fs::read_symlink(folder / "best", error);
        std::vector<fs::path> all = list_checkpoints(folder);
        for (std::size_t i = keep; i < all.size(); ++i) {
            if (all[i].filename() != best.filename()) fs::remove_all(all[i], error);
        }
        for (const auto& entry : fs::directory_iterator(folder, error)) {
            if (entry.path().filename().string().starts_with(kUnfinished))
                fs::remove_all(entry.path(), error);
        }
    } catch (const std::exception&) {
        // Too many checkpoints are better than none; the next call tries again.
    }
}

void mark_best(const fs::path& folder, const fs::path& checkpoint) {
    fs::path link = folder / (std::string(kUnfinished) + "best");
    std::error_code error;
    fs::remove(link, error);
    fs::create_directory_symlink(checkpoint.filename(), link, error);
    if (!error) fs::rename(link, folder / "best", error);
    if (error) {
        throw MachineError({.where = {(folder / "best").string()},
                            .found = fmt::format("cannot be written: {}", error.message()),
                            .expected = "free space on the disk and permission to write"});
    }
}

std::optional<FoundCheckpoint> find_checkpoint(const fs::path& folder) {
    std::vector<Problem> problems;
    std::vector<std::string> skipped;
    for (const fs::path& path : list_checkpoints(folder)) {
        try {
            return FoundCheckpoint{path, read_checkpoint(path), skipped};
        } catch (const UserError& error) {
            for (const Problem& problem : error.problems()) {
                problems.push_back(problem);
                skipped.push_back(fmt::format("{}: {}", problem.where.text(), problem.found));
            }
        }
    }
    if (!problems.empty()) throw UserError(problems);
    return std::nullopt;
}

void load_tensors(const NamedTensors& from, const NamedTensors& into, const fs::path& file) {
    std::map<std::string, const torch::Tensor*> given;
    for (const auto& [name, tensor] : from) given[name] = &tensor;
    std::vector<std::string> differences;
    for (const auto& [name, tensor] : into) {
        auto found = given.find(name);
        if (found == given.end()) {
            differences.push_back(fmt::format("{} is missing", name));
        } else if (found->second->sizes() != tensor.sizes() ||
                   found->second->scalar_type() != tensor.scalar_type()) {
            differences.push_back(fmt::format("{} is {} there and {} here", name,
                                              shape_text(*found->second), shape_text(tensor)));
        }
        given.erase(name);
    }
    for (const auto& [name, tensor] : given) differences.push_back(fmt::format("{} is new", name));
    if (!differences.empty()) {
        std::size_t more = differences.size() > 3 ? differences.size() - 3 : 0;
        differences.resize(std::min<std::size_t>(3, differences.size()));
        throw UserError(
            {.where = {file.string()},
             .found = fmt::format("the tensors of another model: {}{}", join(differences, ", "),
                                  more > 0 ? fmt::format(", and {} more", more) : ""),
             .expected = "those of the model that the configuration describes",
             .fix = "resume with the configuration that the checkpoint was made with"});
    }
    torch::NoGradGuard no_gradients;
    given.clear();
    for (const auto& [name, tensor] : from) given[name] = &tensor;
    for (const auto& [name, tensor] : into) {
        torch::Tensor target = tensor;
        target.copy_(*given.at(name));
    }
}

}  // namespace saturate
