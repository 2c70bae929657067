// SPDX-License-Identifier: Apache-2.0
#include "probe/git.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

std::optional<std::string> revision(std::string_view text) {
    text = trim(text);
    bool is_hash = (text.size() == 40 || text.size() == 64) &&
                   text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    return is_hash ? std::optional<std::string>(text) : std::nullopt;
}

// The trimmed rest of a text that starts with `key`, or "".
std::string after(const std::string& text, std::string_view key) {
    return text.starts_with(key) ? std::string(trim(std::string_view(text).substr(key.size())))
                                 : std::string();
}

std::optional<std::string> packed(const fs::path& folder, const std::string& name) {
    std::string text = read_if_there(folder / "packed-refs");
    for (std::string_view line : split(text, '\n')) {
        std::size_t space = line.find(' ');
        if (space != std::string_view::npos && line.substr(space + 1) == name)
            return revision(line.substr(0, space));
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::string> git_revision(fs::path folder) {
    std::error_code error;
    folder = fs::absolute(folder, error);
    while (!fs::exists(folder / ".git", error)) {
        if (folder == folder.parent_path()) return std::nullopt;
        folder = folder.parent_path();
    }
    fs::path git = folder / ".git";
    // In an additional worktree, .git is a file that names the folder. The branches are in the main
    // repository's folder.
    if (std::string own = after(read_if_there(git), "gitdir:"); !own.empty()) git = folder / own;
    fs::path common = git;
    if (std::string shared = read_if_there(git / "commondir"); !shared.empty())
        common = git / std::string(trim(shared));
    std::string head = read_if_there(git / "HEAD");
    std::string name = after(head, "ref:");
    if (name.empty()) return revision(head);
    if (auto loose = revision(read_if_there(common / name))) return loose;
    return packed(common, name);
}

}  // namespace saturate
