// SPDX-License-Identifier: Apache-2.0
#include "process/scratch_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "project/captured.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

// Mounts the overlay, then becomes the command, so signals and status pass through. The overlay
// would hide other file systems below the folder (often the data). Each of them is bound elsewhere
// first and then mounted back as an overlay. $1 folder, $2 the tree's own folder, $3 where the
// command runs, $4 how many such mounts follow.
constexpr const char* kMount = R"sh(
folder=$1 own=$2 inside=$3 count=$4; shift 4
i=0; for at in "$@"; do [ $i -lt $count ] || break
  mount --rbind "$at" "$own/mounts/$i/lower" || exit 125; i=$((i+1)); done
lay() { mount -t overlay overlay -o lowerdir="$1",upperdir="$2/upper",workdir="$2/work",userxattr "$3"; }
lay "$folder" "$own" "$folder" || exit 125
i=0; while [ $i -lt $count ]; do
  lay "$own/mounts/$i/lower" "$own/mounts/$i" "$1" 2>/dev/null ||
    mount --rbind "$own/mounts/$i/lower" "$1" || exit 125
  shift; i=$((i+1)); done
cd "$inside" && exec "$@")sh";

constexpr std::uintmax_t kCopied = 4 << 20;      // larger files are data and become links ...
constexpr std::uintmax_t kWritten = 512u << 20;  // ... except files that a job writes again
constexpr std::uintmax_t kCopiedAll = 1u << 30;  // in one tree; further files become links
constexpr std::size_t kEntries = 2000;           // a folder with more files is data: one link

std::vector<std::string> mounted(const fs::path& folder, const fs::path& own,
                                 const fs::path& inside, const std::vector<fs::path>& mounts,
                                 const std::vector<std::string>& command) {
    std::vector<std::string> out = {"unshare", "--user", "--map-root-user",
                                    "--mount", "--",     "sh",
                                    "-c",      kMount,   "sh",
                                    folder,    own,      inside,
                                    ""};
    out.back() = std::to_string(mounts.size());
    for (const fs::path& mount : mounts) out.push_back(mount.string());
    out.insert(out.end(), command.begin(), command.end());
    return out;
}

// Makes the folders that an overlay needs.
void make_layers(const fs::path& own) {
    for (const char* part : {"lower", "upper", "work"}) fs::create_directories(own / part);
}

void write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream out(path, std::ios::binary);
    out << text;
    out.flush();
    if (!out) {
        throw MachineError({.where = {path.string()},
                            .found = "the edited file cannot be written",
                            .expected = "free space for a copy of your sources",
                            .fix = "set TMPDIR to a folder with free space"});
    }
}

// False if the path has characters that mount would take for part of an option.
bool is_plain(const fs::path& path) {
    return path.string().find_first_of(",:\\\"") == std::string::npos;
}

bool is_below(const fs::path& path, const fs::path& folder) {
    auto [end, rest] = std::ranges::mismatch(folder, path);
    return end == folder.end();
}

// mountinfo writes a space as \040.
std::string octal_unescaped(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 3 < text.size()) {
            out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                     (text[i + 3] - '0'));
            i += 3;
        } else {
            out += text[i];
        }
    }
    return out;
}

// The topmost mounts below the folder; a bind mount brings along the mounts below each.
std::vector<fs::path> mounts_below(const fs::path& folder) {
    std::set<fs::path> found;
    std::string all = read_if_there("/proc/self/mountinfo");
    for (std::string_view line : split(all, '\n')) {
        std::vector<std::string_view> words = split(line, ' ');
        if (words.size() < 5) continue;
        fs::path at = octal_unescaped(words[4]);
        if (at != folder && is_below(at, folder)) found.insert(at);
    }
    std::vector<fs::path> out;
    for (const fs::path& at : found)
        if (out.empty() || !is_below(at, out.back())) out.push_back(at);
    return out;
}

// Turns the folders on the way to an edited file into real folders of links if they are links.
// Otherwise an edit would go through the link into the user's file.
void open_links(const fs::path& lower, const fs::path& top, const fs::path& folder) {
    fs::path at;
    for (const fs::path& part : folder) {
        at /= part;
        bool is_in_tree = fs::exists(fs::symlink_status(top / at));
        fs::path seen = (is_in_tree ? top : lower) / at;
        if (!fs::is_symlink(fs::symlink_status(seen))) continue;
        fs::path target = fs::canonical(seen);
        fs::remove(top / at);
        fs::create_directories(top / at);
        for (const auto& entry : fs::directory_iterator(target))
            fs::create_symlink(entry.path(), top / at / entry.path().filename());
    }
}

// True if an overlay over this folder works as a trial would mount it.
bool can_lay_over(const fs::path& folder) {
    MortalFolder own(temporary_beside(folder));
    make_layers(own.path());
    std::vector<fs::path> mounts = mounts_below(folder);
    for (std::size_t i = 0; i < mounts.size(); ++i)
        make_layers(own.path() / "mounts" / std::to_string(i));
    Captured tried = run_captured(mounted(folder, own.path(), folder, mounts, {"true"}), "");
    return tried.end == Captured::End::exited && tried.status == 0;
}

}  // namespace

fs::path guarded_around(const fs::path& folder, int above) {
    std::error_code error;
    fs::path own = fs::canonical(folder, error), out = own;
    const char* home = std::getenv("HOME");
    fs::path temporary = fs::canonical(fs::temp_directory_path(error), error);
    // A home folder, / or the folder of temporary files is not a project, whatever it contains.
    auto may_be_one = [&](const fs::path& at) {
        return at.has_relative_path() && !(home && fs::equivalent(at, home, error)) &&
               (at == own || !is_below(temporary, at));
    };
    for (fs::path at = own; may_be_one(at); at = at.parent_path()) {
        if (!fs::exists(at / ".git", error)) continue;
        out = at;
        break;
    }
    fs::path raised = own;
    for (int i = 0; i < above && may_be_one(raised.parent_path()); ++i)
        raised = raised.parent_path();
    bool is_higher = raised != out && is_below(out, raised);
    return is_higher && is_plain(raised) && can_overlay() && can_lay_over(raised) ? raised : out;
}

int folders_above(std::string_view text) {
    constexpr std::string_view kUp = "../";
    constexpr int kMost = 3;  // further up are other people's folders
    int most = 0;
    for (std::size_t at = 0; (at = text.find(kUp, at)) != std::string_view::npos;) {
        // Skips "../" in the middle of a path and dots in a sentence.
        unsigned char before = at == 0 ? ' ' : static_cast<unsigned char>(text[at - 1]);
        bool is_start = !std::isalnum(before) && before != '_' && before != '.' && before != '/';
        int count = 0;
        for (; text.substr(at).starts_with(kUp); at += kUp.size()) ++count;
        if (is_start) most = std::max(most, count);
    }
    return std::min(most, kMost);
}

bool can_overlay() {
    static const bool kCan = [] {
        std::error_code error;
        MortalFolder own(fs::temp_directory_path(error));
        make_layers(own.path());
        Captured tried =
            run_captured(mounted(own.path() / "lower", own.path(), "/", {}, {"true"}), "");
        return tried.end == Captured::End::exited && tried.status == 0;
    }();
    return kCan;
}

ScratchTree::ScratchTree(const ScratchSettings& settings)
    : folder_(fs::canonical(settings.folder)),
      inside_(settings.inside),
      own_(settings.parent.empty() ? temporary_beside(folder_) : settings.parent),
      edited_(settings.edited.size()) {
    make_layers(own_.path());
    is_overlay_ =
        settings.may_overlay && is_plain(folder_) && is_plain(own_.path()) && can_overlay();
    if (!is_overlay_) {
        link_tree(settings.edited);
        guard_ = std::make_unique<WriteGuard>(
            WriteGuardSettings{.folder = folder_, .allowed = settings.writable});
        if (!guard_->is_there()) guard_.reset();
        return;
    }
    mounts_ = mounts_below(folder_);
    for (std::size_t i = 0; i < mounts_.size(); ++i)
        make_layers(own_.path() / "mounts" / std::to_string(i));
    for (const ScratchFile& file : settings.edited) put(file);
}

// Writes the edited file into the overlay layer of the file system that holds it.
void ScratchTree::put(const ScratchFile& edited) {
    fs::path file = (inside_ / edited.file).lexically_normal(), lower = folder_, top = upper();
    for (std::size_t i = 0; i < mounts_.size(); ++i) {
        if (!is_below(folder_ / file, mounts_[i])) continue;
        file = (folder_ / file).lexically_relative(mounts_[i]);
        lower = mounts_[i];
        top = own_.path() / "mounts" / std::to_string(i) / "upper";
        break;
    }
    open_links(lower, top, file.parent_path());
    std::error_code error;
    fs::remove(top / file, error);
    write(top / file, edited.text);
    fs::permissions(top / file, fs::status(lower / file, error).permissions(), error);
}

// Makes real folders, so that new files land in the tree. Small files are copied. Large and special
// files, and folders with very many files, become links.
void ScratchTree::link_tree(const std::vector<ScratchFile>& edited) {
    static const std::set<std::string> kJobsOwn = {".pt",          ".pth", ".ckpt",
                                                   ".safetensors", ".log", ".jsonl"};
    static const std::set<std::string> kLeft = {".git", "saturate-runs", "__pycache__",
                                                "node_modules"};
    fs::path top = upper();
    std::error_code error;
    std::uintmax_t copied = 0;
    auto options = fs::directory_options::skip_permission_denied;
    auto is_large = [](const fs::path& folder) {
        std::size_t count = 0;
        std::error_code ignored;
        for (fs::directory_iterator it(folder, ignored), end; it != end && count <= kEntries;
             it.increment(ignored))
            ++count;
        return count > kEntries;
    };
    for (fs::recursive_directory_iterator it(folder_, options, error), end; it != end;
         it.increment(error)) {
        if (error) break;
        fs::path to = top / fs::relative(it->path(), folder_);
        bool is_folder = it->is_directory(error) && !it->is_symlink(error);
        if (is_folder &&
            (kLeft.contains(it->path().filename()) || MortalFolder::is_one(it->path()))) {
            it.disable_recursion_pending();
            continue;
        }
        if (is_folder && is_large(it->path())) {
            it.disable_recursion_pending();
            fs::create_directory_symlink(it->path(), to, error);
            error.clear();
            continue;
        }
        // A link to a place within the folder leads to the same place in the tree.
        if (it->is_symlink(error)) {
            fs::path target = fs::canonical(it->path(), error);
            if (!error && is_below(target, folder_)) {
                fs::create_symlink(top / fs::relative(target, folder_), to, error);
                continue;
            }
        }
        std::uintmax_t size = is_folder ? 0 : it->file_size(error);
        bool is_written = kJobsOwn.contains(it->path().extension());
        bool is_copied = !error && !is_folder && it->is_regular_file(error) &&
                         size <= (is_written ? kWritten : kCopied) && copied + size <= kCopiedAll;
        error.clear();
        if (is_folder) {
            fs::create_directories(to, error);
        } else if (is_copied) {
            fs::copy_file(it->path(), to, error);
            copied += size;
        } else {
            fs::create_symlink(
                it->is_symlink(error) ? fs::canonical(it->path(), error) : it->path(), to, error);
        }
        error.clear();
    }
    for (const ScratchFile& file : edited) put(file);
}

std::vector<std::string> ScratchTree::command(const std::vector<std::string>& own) const {
    if (is_overlay_) return mounted(folder_, own_.path(), root(), mounts_, own);
    std::vector<std::string> out = {"sh", "-c", "cd \"$1\" && shift && exec \"$@\"", "sh",
                                    root().string()};
    out.insert(out.end(), own.begin(), own.end());
    return out;
}

FilesMade ScratchTree::files_made() const {
    FilesMade out;
    if (!is_overlay_) return out;
    std::map<fs::path, std::size_t> folders;
    std::error_code error;
    auto options = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator it(upper(), options, error), end; !error && it != end;
         it.increment(error)) {
        std::error_code ignored;
        if (it->path().filename() == "__pycache__") it.disable_recursion_pending();
        if (it->is_regular_file(ignored)) ++folders[it->path().parent_path()], ++out.count;
    }
    out.count -= std::min(out.count, edited_);
    auto most = std::ranges::max_element(folders, {}, [](const auto& one) { return one.second; });
    if (most != folders.end())
        out.folder = most->first.lexically_relative(upper() / inside_).string();
    return out;
}

std::string ScratchTree::unguarded() const {
    return is_overlay_ || guard_
               ? ""
               : "this system does not allow overlays: files named by absolute paths, files over 4 "
                 "MiB and folders of more than 2,000 files are not protected from writes";
}

}  // namespace saturate
