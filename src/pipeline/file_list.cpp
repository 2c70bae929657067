// SPDX-License-Identifier: Apache-2.0
#include "pipeline/file_list.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"

namespace saturate {

const FileList::Folder& FileList::folder_of(std::int64_t file) const {
    auto after = std::ranges::upper_bound(folders_, file, {}, &Folder::first);
    return *(after - 1);
}

std::string_view FileList::name(std::int64_t file) const {
    return names_.c_str() + starts_[static_cast<std::size_t>(file)];
}

void FileList::path(std::int64_t file, std::string& out) const {
    const Folder& folder = folder_of(file);
    out.assign(root_);
    if (!folder.path.empty()) out.append("/").append(folder.path);
    out.append("/").append(name(file));
}

namespace {

constexpr std::int64_t kNanoseconds = 1'000'000'000;

std::int64_t changed_ns(const struct stat& status) {
    return status.st_mtim.tv_sec * kNanoseconds + status.st_mtim.tv_nsec;
}

struct Identity {
    dev_t device;
    ino_t number;
    bool operator==(const Identity&) const = default;
};

struct Listed {  // a folder that has been read
    std::string path;
    std::int64_t changed_ns = 0;
    std::vector<std::string> names;
};

struct Waiting {  // a folder still to be read
    std::string path;
    std::vector<Identity> parents;  // a link back to one of these is not followed
};

bool has_ending(std::string_view name, const std::vector<std::string>& endings) {
    std::size_t dot = name.rfind('.');
    if (dot == std::string_view::npos || dot == 0) return false;
    std::string ending = lower(name.substr(dot));
    return std::ranges::find(endings, ending) != endings.end();
}

}  // namespace

// The threads share a queue of folders to read.
class FileLister {
  public:
    FileLister(std::string root, const FileListSettings& settings)
        : root_(std::move(root)), settings_(settings) {}

    [[nodiscard]] std::vector<Listed> list();
    [[nodiscard]] bool still_true(const std::vector<Listed>& listed) const;
    [[nodiscard]] FileList pack(const std::vector<Listed>& listed) const;
    [[nodiscard]] std::optional<FileList> load(const std::filesystem::path& cache) const;
    void save(const std::filesystem::path& cache, const FileList& list) const;
    [[nodiscard]] std::filesystem::path cache_path() const;

  private:
    [[nodiscard]] std::string full(const std::string& path) const {
        return path.empty() ? root_ : root_ + "/" + path;
    }
    void work();
    void read_folder(const Waiting& folder);
    void consider(int directory, const dirent& entry, const Waiting& folder,
                  const std::vector<Identity>& parents, Listed& listed);

    std::string root_;
    const FileListSettings& settings_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Waiting> waiting_;
    std::vector<Listed> done_;
    int busy_ = 0;
    std::exception_ptr error_;
};

std::vector<Listed> FileLister::list() {
    done_.clear();
    waiting_.push_back({});
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < std::max(1, settings_.threads); ++i)
            threads.emplace_back([this] { work(); });
    }
    if (error_) std::rethrow_exception(error_);
    std::ranges::sort(done_, {}, &Listed::path);
    return std::move(done_);
}

void FileLister::work() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return !waiting_.empty() || busy_ == 0 || error_; });
        if (error_ || waiting_.empty()) return;
        Waiting folder = std::move(waiting_.back());
        waiting_.pop_back();
        ++busy_;
        lock.unlock();
        std::exception_ptr error;
        try {
            read_folder(folder);
        } catch (...) {
            error = std::current_exception();
        }
        lock.lock();
        if (error && !error_) error_ = error;
        --busy_;
        changed_.notify_all();
    }
}

void FileLister::read_folder(const Waiting& folder) {
    std::string path = full(folder.path);
    DIR* directory = ::opendir(path.c_str());
    if (!directory) {
        if (errno == ENOENT && !folder.path.empty()) return;  // it was removed meanwhile
        throw UserError({.where = {path},
                         .found = fmt::format("cannot be listed: {}", std::strerror(errno)),
                         .expected = "a folder with images"});
    }
    struct Closer {
        DIR* directory;
        ~Closer() { ::closedir(directory); }
    } closer{directory};
    struct stat status {};
    if (::fstat(::dirfd(directory), &status) != 0) return;
    Listed listed{folder.path, changed_ns(status), {}};
    std::vector<Identity> parents = folder.parents;
    parents.push_back({status.st_dev, status.st_ino});
    while (const dirent* entry = ::readdir(directory))
        consider(::dirfd(directory), *entry, folder, parents, listed);
    std::ranges::sort(listed.names);
    std::lock_guard lock(mutex_);
    done_.push_back(std::move(listed));
}

void FileLister::consider(int directory, const dirent& entry, const Waiting& folder,
                          const std::vector<Identity>& parents, Listed& listed) {
    const char* name = entry.d_name;
    if (name[0] == '.') return;  // e.g. files being written under a hidden name
    unsigned char type = entry.d_type;
    if (type == DT_REG) {
        if (has_ending(name, settings_.endings)) listed.names.emplace_back(name);
        return;
    }
    if (type != DT_DIR && type != DT_LNK && type != DT_UNKNOWN) return;
    struct stat status {};
    if (::fstatat(directory, name, &status, 0) != 0) return;  // removed, or a dangling link
    if (S_ISREG(status.st_mode)) {
        if (has_ending(name, settings_.endings)) listed.names.emplace_back(name);
    } else if (S_ISDIR(status.st_mode)) {
        if (std::ranges::find(parents, Identity{status.st_dev, status.st_ino}) != parents.end())
            return;
        std::lock_guard lock(mutex_);
        waiting_.push_back({folder.path.empty() ? name : folder.path + "/" + name, parents});
        changed_.notify_one();
    }
}

bool FileLister::still_true(const std::vector<Listed>& listed) const {
    return std::ranges::all_of(listed, [&](const Listed& folder) {
        struct stat status {};
        return ::stat(full(folder.path).c_str(), &status) == 0 &&
               changed_ns(status) == folder.changed_ns;
    });
}

FileList FileLister::pack(const std::vector<Listed>& listed) const {
    FileList list;
    list.root_ = root_;
    std::size_t bytes = 0, count = 0;
    for (const Listed& folder : listed) {
        count += folder.names.size();
        for (const std::string& name : folder.names) bytes += name.size() + 1;
    }
    list.names_.reserve(bytes);
    list.starts_.reserve(count);
    for (const Listed& folder : listed) {
        list.folders_.push_back({folder.path, folder.changed_ns, list.size()});
        for (const std::string& name : folder.names) {
            list.starts_.push_back(list.names_.size());
            list.names_.append(name).push_back('\0');
        }
    }
    return list;
}

// Format of the cached list: "saturate files 1", root, endings, number of folders, then for each
// folder its path, change time and number of files, then all file names. Each item ends with NUL,
// which no name can contain.
namespace {

constexpr std::string_view kCacheHead = "saturate files 1";
constexpr std::size_t kCacheBytesMax = std::size_t{4} << 30;  // a hundred million files
// A folder may change twice within one tick of its clock, so only older changes can be compared.
constexpr std::int64_t kSettledNs = 2 * kNanoseconds;

class Words {  // splits a text at its NULs
  public:
    explicit Words(std::string_view text) : text_(text) {}
    std::optional<std::string_view> next() {
        std::size_t end = text_.find('\0', at_);
        if (end == std::string_view::npos) return std::nullopt;
        std::string_view word = text_.substr(at_, end - at_);
        at_ = end + 1;
        return word;
    }
    std::optional<std::int64_t> number() {
        auto word = next();
        return word ? parse_integer(*word) : std::nullopt;
    }
    [[nodiscard]] std::size_t position() const { return at_; }
    [[nodiscard]] bool at_end() const { return at_ == text_.size(); }

  private:
    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

std::filesystem::path FileLister::cache_path() const {
    // The name depends on everything that the list depends on.
    std::uint64_t hash = fnv1a(root_ + '\0' + join(settings_.endings, " "));
    return settings_.cache_folder / fmt::format("files-{:016x}", hash);
}

// Returns nothing if there is no cached list, it is for another tree or broken, or a folder has
// changed since.
std::optional<FileList> FileLister::load(const std::filesystem::path& cache) const {
    FileList list;
    list.names_ = read_start_if_there(cache, kCacheBytesMax);
    list.root_ = root_;
    list.from_cache_ = true;
    Words words(list.names_);
    if (words.next() != kCacheHead || words.next() != root_ ||
        words.next() != join(settings_.endings, " "))
        return std::nullopt;
    auto folders = words.number();
    if (!folders || *folders < 1) return std::nullopt;
    for (std::int64_t done = 0; done < *folders; ++done) {
        auto path = words.next();
        auto changed = words.number(), count = words.number();
        if (!path || !changed || !count) return std::nullopt;
        struct stat status {};
        std::string folder(*path);
        if (::stat(full(folder).c_str(), &status) != 0 || changed_ns(status) != *changed)
            return std::nullopt;
        list.folders_.push_back({std::move(folder), *changed, list.size()});
        for (std::int64_t i = 0; i < *count; ++i) {
            std::size_t start = words.position();
            if (!words.next()) return std::nullopt;
            list.starts_.push_back(start);
        }
    }
    if (!words.at_end()) return std::nullopt;
    return list;
}

void FileLister::save(const std::filesystem::path& cache, const FileList& list) const {
    std::int64_t newest = 0;
    for (const FileList::Folder& folder : list.folders_)
        newest = std::max(newest, folder.changed_ns);
    if (wall_ns() - newest < kSettledNs) return;
    std::string text(kCacheHead);
    text.append(1, '\0').append(root_).append(1, '\0');
    text.append(join(settings_.endings, " ")).append(1, '\0');
    text.append(std::to_string(list.folders_.size())).append(1, '\0');
    for (std::size_t i = 0; i < list.folders_.size(); ++i) {
        const FileList::Folder& folder = list.folders_[i];
        bool last = i + 1 == list.folders_.size();
        std::int64_t end = last ? list.size() : list.folders_[i + 1].first;
        text.append(folder.path).append(1, '\0');
        text.append(std::to_string(folder.changed_ns)).append(1, '\0');
        text.append(std::to_string(end - folder.first)).append(1, '\0');
        auto start = [&](std::int64_t file) {
            return file == list.size() ? list.names_.size()
                                       : list.starts_[static_cast<std::size_t>(file)];
        };
        text.append(list.names_, start(folder.first), start(end) - start(folder.first));
    }
    try {
        std::filesystem::create_directories(settings_.cache_folder);
        write_file_whole(cache, text);
    } catch (const std::exception&) {
        // Without the cache the files are listed again next time.
    }
}

FileList list_files(const std::filesystem::path& root, const FileListSettings& settings) {
    std::error_code error;
    std::filesystem::path absolute = std::filesystem::canonical(root, error);
    if (error)
        throw UserError({.where = {root.string()},
                         .found = fmt::format("cannot be listed: {}", error.message()),
                         .expected = "a folder with images"});
    FileLister lister(absolute.string(), settings);
    bool remembers = !settings.cache_folder.empty();
    if (remembers) {
        if (auto list = lister.load(lister.cache_path())) return std::move(*list);
    }
    constexpr int kTries = 3;
    for (int attempt = 1;; ++attempt) {
        std::vector<Listed> listed = lister.list();
        bool settled = lister.still_true(listed);
        if (!settled && attempt < kTries) continue;
        FileList list = lister.pack(listed);
        list.unsettled_ = !settled;
        if (settled && remembers && list.size() >= settings.cache_from)
            lister.save(lister.cache_path(), list);
        return list;
    }
}

}  // namespace saturate
