// SPDX-License-Identifier: Apache-2.0
#include "process/how_to_start.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "process/child.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

// Returns 0, or the errno with which exec would refuse the file.
int start_error(const std::string& file) {
    std::error_code error;
    if (!fs::exists(file, error)) return ENOENT;
    return fs::is_regular_file(file, error) && ::access(file.c_str(), X_OK) == 0 ? 0 : EACCES;
}

int find_error(const std::string& program) {
    if (program.find('/') != std::string::npos) return start_error(program);
    const char* path = std::getenv("PATH");
    if (!path) return 0;  // exec has a default of its own
    int out = ENOENT;
    for (std::string_view folder : split(path, ':')) {
        int error = start_error(folder.empty() ? program : fmt::format("{}/{}", folder, program));
        if (error == 0) return 0;
        if (error == EACCES) out = EACCES;
    }
    return out;
}

// What to type instead, or "" if there is no such advice.
std::string what_to_type(const std::vector<std::string>& command) {
    const std::string& program = command[0];
    std::error_code error;
    std::string line = shell_words(command);
    if (is_one_of(program, {"time", "source", ".", "cd", "export", "set", "ulimit", "eval", "exec",
                            "if", "for", "while", "module"}))
        return fmt::format("{} is a word of the shell: start a shell, as in bash -c '{}'", program,
                           line);
    if (program.ends_with(".ipynb"))
        return fmt::format("make a script of the notebook first: jupyter nbconvert --to script {}",
                           program);
    if (fs::is_directory(program, error)) return "that is a folder: name the program in it";
    if (program.find(' ') != std::string::npos && !fs::exists(program, error))
        return fmt::format("leave out the quotes: -- {}", program);
    std::string start = read_start_if_there(program, 100);
    bool is_python = start.starts_with("#!") && start.find("python") < start.find('\n');
    if (program.ends_with(".py") || is_python)
        return fmt::format("put python before it: python {}", line);
    if (program.ends_with(".sh") || program.ends_with(".bash") || start.starts_with("#!"))
        return fmt::format("put bash before it: bash {}", line);
    if (program.find('/') != std::string::npos) return "";
    return fmt::format("check the name; if {} belongs to an environment, activate that first",
                       program);
}

}  // namespace

Problem why_not_started(const std::vector<std::string>& command, int error) {
    return {
        .found = fmt::format("cannot start {}: {}", in_quotes(command[0]), std::strerror(error)),
        .expected = "a program that exists and can be run",
        .fix = error == ENOENT || error == EACCES ? what_to_type(command) : ""};
}

void check_can_start(const std::vector<std::string>& command) {
    if (int error = find_error(command[0]); error != 0) throw ChildNotStarted(command, error);
}

}  // namespace saturate
