// SPDX-License-Identifier: Apache-2.0
#include "project/interpreter.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/file.h"
#include "base/text.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFirstBytes = 4096;

std::string on_path(const std::string& name) {
    if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0 ? name : "";
    const char* path = std::getenv("PATH");
    for (std::string_view folder : split(path ? path : "", ':')) {
        if (folder.empty()) continue;
        std::string file = (fs::path(folder) / name).string();
        std::error_code error;
        if (fs::is_regular_file(file, error) && ::access(file.c_str(), X_OK) == 0) return file;
    }
    return "";
}

bool is_python(std::string_view word) {
    std::string name = fs::path(word).filename();
    return name.starts_with("python") &&
           name.find_first_not_of("0123456789.", 6) == std::string::npos;
}

// The interpreter in a script's first line: "#!/venv/bin/python", "#!/usr/bin/env python3".
std::string of_first_line(const std::string& file) {
    std::string start = read_start_if_there(file, kFirstBytes);
    if (!start.starts_with("#!")) return "";
    std::string_view line = trim(std::string_view(start).substr(2, start.find('\n') - 2));
    for (std::string_view word : split(line, ' ')) {
        if (is_python(word)) return on_path(std::string(word));
    }
    return "";
}

std::string of_environment() {
    for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
        const char* folder = std::getenv(name);
        if (!folder || !*folder) continue;
        if (std::string found = on_path(std::string(folder) + "/bin/python"); !found.empty())
            return found;
    }
    return "";
}

std::string of_words(const std::vector<std::string>& words, int depth);

// The Python of the last line in a shell script that starts one.
std::string of_shell_script(const std::string& file, int depth) {
    std::error_code error;
    if (depth > 3 || !fs::is_regular_file(file, error)) return "";
    std::string text = read_start_if_there(file, 1 << 20), found;
    for (std::string_view line : split(text, '\n')) {
        std::vector<std::string> words;
        for (std::string_view word : split(trim(line), ' '))
            if (!word.empty()) words.emplace_back(word);
        if (words.empty() || words[0].starts_with('#')) continue;
        bool starts_one = std::ranges::any_of(words, [](const std::string& word) {
            std::string name = fs::path(word).filename();
            return is_python(word) || name == "torchrun" || name == "accelerate";
        });
        if (!starts_one) continue;
        if (std::string one = of_words(words, depth + 1); !one.empty()) found = one;
    }
    return found;
}

std::string of_words(const std::vector<std::string>& words, int depth) {
    // Skips words before the program itself (env, nice, uv run, A=b).
    for (std::size_t i = 0; i < words.size() && i < 8; ++i) {
        const std::string& word = words[i];
        if (word == "uv" || word == "poetry" || word == "pipenv") {
            if (std::string found = on_path(".venv/bin/python"); !found.empty()) return found;
        }
        if (is_python(word)) return on_path(word);
        std::string name = fs::path(word).filename();
        if (name == "torchrun" || name == "accelerate" || name == "deepspeed") {
            std::string program = on_path(word);
            return program.empty() ? "" : of_first_line(program);
        }
        if (word.ends_with(".py")) return of_first_line(word);
        if (word.ends_with(".sh") || word.ends_with(".bash")) return of_shell_script(word, depth);
    }
    if (words.empty()) return "";
    std::string program = on_path(words[0]);  // an entry point installed by pip
    if (program.empty()) return "";
    std::string found = of_first_line(program);
    return found.empty() ? of_shell_script(program, depth) : found;
}

}  // namespace

std::string find_interpreter(const std::vector<std::string>& command) {
    std::string found = of_words(command, 0);
    if (found.empty()) found = of_environment();
    if (found.empty()) found = on_path("python3");
    if (found.empty()) found = on_path("python");
    return found;
}

}  // namespace saturate
