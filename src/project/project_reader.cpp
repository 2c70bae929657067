// SPDX-License-Identifier: Apache-2.0
#include "project/project_reader.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>

#include "base/cache_folder.h"
#include "base/embedded.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "project/captured.h"
#include "project/interpreter.h"

namespace saturate {

std::span<const EmbeddedFile> embedded_saturate_reader();

namespace {

namespace fs = std::filesystem;

constexpr CapturedLimits kLimits{.time = std::chrono::seconds(60)};

fs::path make_scratch() {
    std::error_code error;
    fs::path parent = fs::temp_directory_path(error);
    if (error) parent = "/tmp";
    return make_temporary_folder(parent, "saturate-fix-");
}

void lay_out(const fs::path& folder) {
    fs::create_directories(folder);
    for (const EmbeddedFile& file : embedded_saturate_reader())
        std::ofstream(folder / file.name, std::ios::binary) << file.text;
}

bool is_whole(const fs::path& folder) {
    for (const EmbeddedFile& file : embedded_saturate_reader())
        if (read_if_there(folder / file.name) != file.text) return false;
    return true;
}

// Puts the reader's files into the cache, so that Python keeps their compiled form. Falls back to
// the scratch folder.
fs::path place_programs(const fs::path& scratch) {
    std::uint64_t hash = fnv1a("");
    for (const EmbeddedFile& file : embedded_saturate_reader())
        hash = fnv1a(file.text, fnv1a(file.name, hash));
    fs::path kept = user_cache_folder() / fmt::format("reader-{:016x}", hash) / "_saturate_reader";
    if (is_whole(kept)) return kept;
    std::error_code error;
    fs::path fresh = kept.parent_path();
    fresh += fmt::format(".{}", scratch.filename().string());
    fs::create_directories(fresh, error);
    if (!error) {
        lay_out(fresh / "_saturate_reader");
        // If two processes do this at once, one rename wins and the other finds the folder there.
        fs::rename(fresh, kept.parent_path(), error);
        if (error) fs::remove_all(fresh, error);
        if (is_whole(kept)) return kept;
    }
    lay_out(scratch / "_saturate_reader");
    return scratch / "_saturate_reader";
}

std::string last_line(const std::string& text) {
    std::string_view all = trim(text);
    return in_quotes(
        all.substr(all.rfind('\n') == std::string_view::npos ? 0 : all.rfind('\n') + 1), 200);
}

}  // namespace

ProjectReader::ProjectReader(ProjectQuestion question) : question_(std::move(question)) {
    interpreter_ = find_interpreter(question_.command);
    if (interpreter_.empty()) {
        throw MachineError({.found = "no Python was found to read your sources with",
                            .expected = "the Python that runs your training, 3.9 or newer",
                            .fix = "name it in the command: saturate fix -- /path/to/python ..."});
    }
    scratch_ = make_scratch();
    programs_ = place_programs(scratch_);
}

ProjectReader::~ProjectReader() {
    std::error_code ignored;
    fs::remove_all(scratch_, ignored);
}

Json ProjectReader::ask(const std::vector<std::string>& words, const std::string& input,
                        const char* what) {
    // Isolated (-I) and without site (-S): none of the user's environment or packages runs.
    std::vector<std::string> command = {interpreter_, "-I", "-S"};
    command.insert(command.end(), words.begin(), words.end());
    Captured done = run_captured(command, input, kLimits);
    if (done.end == Captured::End::not_started) {
        throw MachineError(
            {.found = fmt::format("cannot start {}: {}", interpreter_, std::strerror(done.status)),
             .expected = "the Python that runs your training, 3.9 or newer"});
    }
    if (done.end == Captured::End::out_of_time) {
        throw MachineError(
            {.found = fmt::format("{} took more than {} s", what, kLimits.time.count()),
             .expected = "a project of a few thousand files",
             .fix = "run it in the folder of the project, or name the script's own folder"});
    }
    if (done.end != Captured::End::exited || done.status != 0) {
        throw MachineError({.found = fmt::format("{} failed with {} (status {}): {}", what,
                                                 interpreter_, done.status, last_line(done.err)),
                            .expected = "Python 3.9 or newer, and enough memory for your sources"});
    }
    return Json::parse(done.out, what);
}

ProjectFacts ProjectReader::read() {
    std::vector<std::string> words = {programs_.string(), "--folder",
                                      fs::absolute(question_.folder).string()};
    for (const std::string& config : question_.configs) {
        words.push_back("--config");
        words.push_back(config);
    }
    words.push_back("--");
    words.insert(words.end(), question_.command.begin(), question_.command.end());
    return parse_facts(ask(words, "", "reading your sources"));
}

std::vector<ConfigReaderFacts> ProjectReader::readers_of(const fs::path& config,
                                                         std::vector<std::string>& limits) {
    Json answer = ask({programs_.string(), "--folder", fs::absolute(question_.folder).string(),
                       "--readers", fs::absolute(config).string()},
                      "", "reading your sources");
    for (const Json& limit : answer["limits"].items())
        limits.push_back(limit["text"].string().value_or(""));
    return parse_readers(answer);
}

std::vector<std::string> ProjectReader::programs() {
    Json answer =
        ask({programs_.string(), "--folder", fs::absolute(question_.folder).string(), "--programs"},
            "", "reading your sources");
    std::vector<std::string> out;
    for (const Json& program : answer["programs"].items())
        out.push_back(program["script"].string().value_or(""));
    return out;
}

std::vector<std::string> ProjectReader::verify(std::span<const Check> checks) {
    Json wanted = Json::array();
    std::vector<std::string> keys, asked;
    std::map<std::string, std::string> written;  // text of a file -> path of its copy
    auto put = [&](const std::string& text) {
        auto [found, is_new] = written.try_emplace(
            text, (scratch_ / fmt::format("version-{}.py", written.size())).string());
        if (is_new) std::ofstream(found->second, std::ios::binary) << text;
        return found->second;
    };
    for (const Check& check : checks) {
        Json edits = Json::array();
        for (const SourceEdit& edit : check.edits) edits.add(to_json(edit));
        keys.push_back(fmt::format("{}\n{}\n{}", edits.line(), check.sha256, check.after));
        if (proven_.contains(keys.back())) continue;
        asked.push_back(keys.back());
        wanted.add(Json::object({{"before", put(check.before)},
                                 {"after", put(check.after)},
                                 {"edits", edits},
                                 {"sha256", check.sha256}}));
    }
    if (!asked.empty()) {
        Json answer = ask({(programs_ / "verify.py").string()},
                          Json::object({{"checks", wanted}}).line(), "checking the edits");
        const auto& answers = answer["checks"].items();
        SATURATE_CHECK(answers.size() == asked.size(), "each edited file is checked");
        for (std::size_t i = 0; i < asked.size(); ++i)
            proven_[asked[i]] = answers[i].string().value_or("");
    }
    std::vector<std::string> out;
    for (const std::string& key : keys) out.push_back(proven_[key]);
    return out;
}

}  // namespace saturate
