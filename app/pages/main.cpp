// SPDX-License-Identifier: Apache-2.0
// Writes the manual pages and completion scripts that are installed with the programs, from the
// table of verbs. Run by the build: saturate_pages FOLDER.
#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/version.h"
#include "exit_code.h"
#include "verbs.h"

int main(int argc, char** argv) {
    using namespace saturate;
    if (argc != 2) {
        fmt::print(stderr, "usage: saturate_pages FOLDER\n");
        return kUser;
    }
    try {
        std::filesystem::path folder = argv[1];
        std::filesystem::create_directories(folder / "man1");
        std::string_view version = saturate_version();
        write_file_whole(folder / "man1/saturate.1", manual_page(version));
        for (const Verb& verb : verbs()) {
            write_file_whole(folder / fmt::format("man1/saturate-{}.1", verb.name),
                             manual_page(verb, version));
        }
        write_file_whole(folder / "saturate.bash", completion_script("bash"));
        write_file_whole(folder / "_saturate", completion_script("zsh"));
    } catch (const Failure& error) {
        fmt::print(stderr, "{}\n", error.what());
        return kMachine;
    }
    return kDone;
}
