// SPDX-License-Identifier: Apache-2.0
#include "dispatch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <new>

#include "base/error.h"
#include "base/locale.h"
#include "base/system_error.h"
#include "base/text.h"
#include "base/version.h"
#include "exit_code.h"
#include "launch.h"
#include "process/thread_wait.h"
#include "show.h"

namespace saturate {

namespace {

// `words` is the command line without the program; its first word is not a verb.
[[noreturn]] void throw_unknown_verb(const std::vector<std::string>& words) {
    const std::string& word = words[0];
    std::vector<std::string> names;
    for (const Verb& verb : verbs()) names.emplace_back(verb.name);
    Problem problem{.found = fmt::format("unknown verb {}", in_quotes(word)),
                    .expected = join(names, ", ")};
    if (word.starts_with("python") || word == "torchrun")  // a command, as for other tools
        problem.fix = fmt::format("saturate fix -- {}", join(words, " "));
    else if (word.ends_with(".py"))
        problem.fix = fmt::format("saturate fix -- python {}", join(words, " "));
    else if (auto meant = closest(word, names))
        problem.fix = fmt::format("did you mean saturate {}?", *meant);
    throw UserError(problem);
}

// Executes the engine's program in this process with the same arguments, so that signals and exit
// codes need no forwarding.
[[noreturn]] void become_engine(char** argv) {
    // libgomp reads these variables when it is loaded, so set them before LibTorch is loaded.
    constexpr std::int64_t kLookNs = 100'000'000;
    for (const auto& [name, value] : thread_wait(own_environment(), resting_machine(kLookNs)))
        ::setenv(name.c_str(), value.c_str(), 1);
    for (const auto& folder : engine_folders()) ::execv((folder / "saturate-engine").c_str(), argv);
    throw MachineError(
        {.found = fmt::format("{} needs LibTorch, which this build does not include", argv[1]),
         .expected = "a build with LibTorch",
         .fix = "in a checkout, ./saturate builds one; with the wheel, also pip install the wheel "
                "saturate-gpu-engine (docs/install.md)"});
}

// Chosen before the arguments are read, because errors about them use it too. Output for programs
// stays English. Programs that we start (a page server, the engine) get the same language.
Language chosen_language(int argc, char** argv) {
    constexpr const char* kVariable = "SATURATE_LANG";
    const char* option = ::getenv(kVariable);
    bool is_json = false;
    for (int i = 1; i < argc; ++i) {
        std::string_view word = argv[i];
        if (word == "--") break;
        is_json |= word == "--json";
        if (word == "--lang" && i + 1 < argc) option = argv[i + 1];
        if (word.starts_with("--lang=")) option = argv[i] + 7;
    }
    if (option) ::setenv(kVariable, option, 1);
    return is_json ? Language::english : language_of(option ? option : "", message_locale());
}

// Allows --lang before the verb, like the options of many programs, by moving it behind the verb.
// If the next word is not a verb (help, a mistake), removes --lang. Returns the new argc.
int put_verb_first(int argc, char** argv) {
    if (argc < 2 || !std::string_view(argv[1]).starts_with("--lang")) return argc;
    int verb = std::min(argc, argv[1] == std::string_view("--lang") ? 3 : 2);
    if (verb < argc && find_verb(argv[verb])) {
        std::rotate(argv + 1, argv + verb, argv + verb + 1);
        return argc;
    }
    std::move(argv + verb, argv + argc + 1, argv + 1);  // including the final null
    return argc - (verb - 1);
}

int run_verb(int argc, char** argv, Program self, std::span<const Handler> handlers) {
    std::string_view word = argc > 1 ? argv[1] : "--help";
    if (word == "help" && argc > 2) {
        const Verb* verb = find_verb(argv[2]);
        if (!verb) throw_unknown_verb({argv[2]});
        show(stdout, "{}", help_text(*verb));
        return kDone;
    }
    if (word == "--help" || word == "-h" || word == "help") {
        show(stdout, "{}", help_text());
        return argc > 1 ? kDone : kUser;
    }
    if (word == "--version" || word == "-V" || word == "-v" || word == "version") {
        fmt::print("saturate {}\n", saturate_version());
        return kDone;
    }
    const Verb* verb = find_verb(word);
    if (!verb) throw_unknown_verb({argv + 1, argv + argc});
    Arguments arguments = Arguments::parse(*verb, {argv + 2, argv + argc});
    if (arguments.wants_help) {
        show(stdout, "{}", help_text(*verb));
        return kDone;
    }
    // Starting several processes needs no LibTorch; only each process does.
    if (verb->name == "train" && arguments.has("--nproc")) return launch_ranks(arguments);
    if (self == Program::saturate && verb->program == Program::engine) become_engine(argv);
    for (const Handler& handler : handlers) {
        if (handler.verb == verb->name) return handler.run(arguments);
    }
    throw Bug(__FILE__, __LINE__, fmt::format("verb {} has no handler", verb->name));
}

}  // namespace

std::vector<std::filesystem::path> engine_folders() {
    namespace fs = std::filesystem;
    fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
    std::vector<fs::path> out{here, here.parent_path() / "libexec/saturate"};
    // In a Python environment, the wheel saturate-gpu-engine is next to the torch that it uses.
    // Fedora uses lib64, and Debian's pip installs system-wide packages in dist-packages.
    for (const char* lib : {"lib", "lib64"}) {
        std::error_code error;
        for (fs::directory_iterator entry(here.parent_path() / lib, error);
             !error && entry != fs::directory_iterator(); entry.increment(error)) {
            if (!entry->path().filename().string().starts_with("python3")) continue;
            for (const char* site : {"site-packages", "dist-packages"})
                out.push_back(entry->path() / site / "saturate_gpu_engine");
        }
    }
    return out;
}

int dispatch(int argc, char** argv, Program self, std::span<const Handler> handlers) {
    set_language(chosen_language(argc, argv));
    argc = put_verb_first(argc, argv);
    try {
        int code = run_verb(argc, argv, self, handlers);
        if (std::fflush(stdout) != 0) {
            throw MachineError(
                {.found = "cannot write to standard output", .expected = "free space on the disk"});
        }
        return code;
    } catch (const UserError& error) {
        show(stderr, "{}\n", error.what());
        return kUser;
    } catch (const MachineError& error) {
        show(stderr, "{}\n", error.what());
        return kMachine;
    } catch (const std::system_error& error) {
        show(stderr, "{}\n", system_problem(error).text());
        return is_users(error) ? kUser : kMachine;
    } catch (const std::bad_alloc&) {
        show(stderr, "error: {}\n", "out of memory");
        return kMachine;
    } catch (const std::exception& error) {
        show(stderr, "error: {}\n", fmt::format("this is a bug in saturate: {}", error.what()));
        return kOurBug;
    }
}

}  // namespace saturate
