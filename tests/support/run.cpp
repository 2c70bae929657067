// SPDX-License-Identifier: Apache-2.0
#include "support/run.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "base/text.h"

namespace saturate {

namespace {

// Uses files and not pipes, so that a child with much output on both streams cannot block.
int temporary_file() {
    std::FILE* file = std::tmpfile();
    if (!file) throw std::runtime_error("no temporary file");
    return ::dup(::fileno(file));  // the FILE stays open until the process ends
}

std::string content_of(int fd) {
    std::string out;
    char buffer[65536];
    ::lseek(fd, 0, SEEK_SET);
    while (ssize_t got = ::read(fd, buffer, sizeof buffer)) {
        if (got < 0) throw std::runtime_error("unreadable output");
        out.append(buffer, static_cast<std::size_t>(got));
    }
    ::close(fd);
    return out;
}

}  // namespace

Ran run(const std::vector<std::string>& command, const RunWhere& where) {
    int in = temporary_file(), out = temporary_file(), err = temporary_file();
    if (!where.input.empty() && ::write(in, where.input.data(), where.input.size()) < 0) {
        throw std::runtime_error("input not written");
    }
    ::lseek(in, 0, SEEK_SET);
    pid_t child = ::fork();
    if (child == 0) {
        ::dup2(in, 0);
        ::dup2(out, 1);
        ::dup2(err, 2);
        if (!where.folder.empty() && ::chdir(where.folder.c_str()) != 0) ::_exit(126);
        for (const auto& [name, value] : where.environment) {
            value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
        }
        std::vector<char*> words;
        for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
        words.push_back(nullptr);
        ::execvp(words[0], words.data());
        ::_exit(127);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ::close(in);
    Ran ran;
    ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ran.out = content_of(out);
    ran.err = content_of(err);
    return ran;
}

std::string python_with_torch(const std::string& source_tree) {
    Ran found = run({source_tree + "/tests/support/python_torch"});
    return found.status == 0 ? std::string(trim(found.out)) : "";
}

TemporaryFolder::TemporaryFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "saturate-test-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) throw std::runtime_error("no temporary folder");
    path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path TemporaryFolder::file(const std::string& name,
                                            const std::string& content) const {
    std::filesystem::path path = path_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path;
}

}  // namespace saturate
