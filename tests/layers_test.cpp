// SPDX-License-Identifier: Apache-2.0
// The rules of the tree: who includes whom (the table of CMakeLists.txt), the doors of third-party
// headers, src/ neither prints nor exits, no work before main, and a type's name stands for one
// thing. Each rule is first tried on lines that must pass and lines that must not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "base/file.h"
#include "base/text.h"

namespace saturate {
namespace {

using Table = std::map<std::string, std::set<std::string>>;

Table read_table() {
    Table table;
    std::string text = read_file(SATURATE_LAYERS, 1 << 16, "the table of layers");
    for (std::string_view line : split(text, '\n')) {
        if (line.empty()) continue;
        std::size_t colon = line.find(':');
        std::set<std::string>& allowed = table[std::string(line.substr(0, colon))];
        for (std::string_view other : split(trim(line.substr(colon + 1)), ' ')) {
            if (!other.empty()) allowed.emplace(other);
        }
    }
    return table;
}

// Header prefix to the files (by prefix of their path) that may include it. fmt may be anywhere.
const std::map<std::string, std::vector<std::string>>& doors() {
    static const std::map<std::string, std::vector<std::string>> kDoors = {
        {"yaml-cpp/", {"src/config/yaml.cpp", "tests/fuzz/config_edit.cpp"}},
        {"toml++/", {"src/config/toml.cpp"}},
        {"nlohmann/", {"src/base/json.cpp"}},
        {"simdjson", {"src/diagnosis/trace_json.cpp"}},
        {"sqlite3.h", {"src/diagnosis/sqlite.cpp", "tests/diagnosis/trace_nsys_test.cpp"}},
        {"zlib.h", {"src/base/compress.cpp"}},
        {"zstd.h", {"src/base/compress.cpp"}},
        {"jpeglib.h", {"src/pipeline/decode_jpeg.cpp", "src/pipeline/encode_jpeg.cpp"}},
        {"jerror.h", {"src/pipeline/decode_jpeg.cpp"}},
        {"libdeflate.h", {"src/pipeline/decode_png.cpp", "src/pipeline/encode_png.cpp"}},
        {"webp/", {"src/pipeline/decode_webp.cpp"}},
        {"microhttpd.h", {"src/report/http.cpp"}},
        {"curses.h", {"app/screen/screen.cpp"}},
        {"ncurses", {"app/screen/screen.cpp"}},
        {"torch/", {"src/engine/", "src/workloads/", "cuda/", "tests/engine/"}},
        {"ATen/", {"src/engine/", "src/workloads/", "cuda/", "tests/engine/"}},
        {"c10/", {"src/engine/", "src/workloads/", "cuda/", "tests/engine/"}},
        {"nvml.h", {"cuda/", "tests/support/nvml_replay/", "tests/nvml/"}},
        {"cuda", {"cuda/"}},
        {"nccl.h", {"cuda/"}},
        {"Python.h", {"python/extension/"}},
    };
    return kDoors;
}

std::string folder_of(const std::string& path) {
    std::vector<std::string_view> parts = split(path, '/');
    return std::string(parts[0] == "src" ? parts[1] : parts[0]);
}

// Why `line` may not stand in the file at `path`; empty when it may.
std::string violation(const Table& table, const std::string& path, const std::string& line) {
    static const std::regex kOurs(R"re(^\s*#\s*include\s+"([a-z_]+)/[^"]*")re");
    static const std::regex kTheirs(R"re(^\s*#\s*include\s+<([^>]+)>)re");
    static const std::regex kPrints(
        R"re(\b(std::cout|std::cerr|printf|fprintf|puts|fmt::print|exit|_exit|abort)\s*[(<])re");
    static const std::regex kBeforeMain(
        R"re(^(?:static |inline )*const (?:std|fs)::[^&()]* k[A-Z]\w* ?[={(;])re");
    std::string folder = folder_of(path);
    std::smatch match;
    if (folder != "app" && folder != "tests" && std::regex_search(line, match, kOurs)) {
        std::string other = match[1];
        // The shim's extension shares the layout of its ring with the reader.
        static const std::set<std::string> kPython = {"telemetry"};
        const std::set<std::string>& allowed = folder == "python" ? kPython : table.at(folder);
        bool is_layer = table.count(other) > 0;
        if (is_layer && other != folder && other != "base" && !allowed.count(other)) {
            return fmt::format("{} may not include {}", folder, other);
        }
    }
    if (std::regex_search(line, match, kTheirs)) {
        std::string header = match[1];
        for (const auto& [prefix, files] : doors()) {
            if (!header.starts_with(prefix)) continue;
            bool allowed = std::ranges::any_of(
                files, [&](const std::string& file) { return path.starts_with(file); });
            if (!allowed) return fmt::format("<{}> belongs in {}", header, join(files, ", "));
        }
    }
    // Between fork and exec it is not our process that ends.
    bool is_childs =
        path.starts_with("src/process/child") && line.find("::_exit(127)") != line.npos;
    if (path.starts_with("src/") && !is_childs && std::regex_search(line, kPrints))
        return "src/ neither prints nor exits";
    if (folder != "tests" && line.find("const ") != line.npos &&
        std::regex_search(line, kBeforeMain))
        return "no work before main: constexpr, or a function that returns it";
    return "";
}

TEST(LayersTest, EveryAllowedPairPassesAndEveryOtherFails) {
    Table table = read_table();
    int allowed_pairs = 0, forbidden_pairs = 0;
    for (const auto& [from, allowed] : table) {
        for (const auto& [to, unused] : table) {
            std::string path = from == "cuda" ? "cuda/x.cpp" : fmt::format("src/{}/x.cpp", from);
            std::string said = violation(table, path, fmt::format("#include \"{}/y.h\"", to));
            bool may = to == from || to == "base" || allowed.count(to);
            EXPECT_EQ(said.empty(), may) << from << " -> " << to << ": " << said;
            ++(may ? allowed_pairs : forbidden_pairs);
        }
        EXPECT_EQ(violation(table, "app/x.cpp", fmt::format("#include \"{}/y.h\"", from)), "");
    }
    // What must never be, whatever the table grows to: what runs a job and what explains it meet in
    // the record alone, and nobody looks up.
    for (auto [from, to] : {std::pair("engine", "diagnosis"),
                            {"diagnosis", "engine"},
                            {"config", "remedies"},
                            {"telemetry", "remedies"},
                            {"remedies", "diagnosis"},
                            {"diagnosis", "tuning"},
                            {"tuning", "process"},
                            {"tuning", "report"},
                            {"pipeline", "remedies"}})
        EXPECT_FALSE(table.at(from).count(to)) << from << " -> " << to;
    EXPECT_GT(allowed_pairs, 0);
    EXPECT_GT(forbidden_pairs, 0);
}

TEST(LayersTest, ThirdPartyHeadersStayBehindTheirDoor) {
    Table table = read_table();
    for (const auto& [prefix, files] : doors()) {
        std::string line = fmt::format("#include <{}>", prefix);
        EXPECT_NE(violation(table, "src/report/other.cpp", line), "") << prefix;
        for (const std::string& file : files)
            EXPECT_EQ(violation(table, file, line), "") << prefix << " in " << file;
    }
}

TEST(LayersTest, SrcNeitherPrintsNorExits) {
    Table table = read_table();
    EXPECT_NE(violation(table, "src/base/x.cpp", "    fmt::print(\"hello\");"), "");
    EXPECT_NE(violation(table, "src/base/x.cpp", "    std::cout << 1;"), "");
    EXPECT_NE(violation(table, "src/base/x.cpp", "    exit(2);"), "");
    EXPECT_NE(violation(table, "src/process/child.cpp", "    ::_exit(2);"), "");
    EXPECT_EQ(violation(table, "src/process/child.cpp", "    ::_exit(127);"), "");
    EXPECT_EQ(violation(table, "app/x.cpp", "    fmt::print(\"hello\");"), "");
    EXPECT_EQ(violation(table, "src/base/x.cpp", "    snprintf(buffer, 2, \"\");"), "");
}

TEST(LayersTest, NoWorkBeforeMain) {
    Table table = read_table();
    for (const char* line :
         {"const std::vector<std::string> kNames = {\"a\"};", "const std::string kName(\"a\");",
          "static const std::set<std::string_view> kNames = {\"a\",", "const fs::path kHome = x;"})
        EXPECT_NE(violation(table, "src/base/x.cpp", line), "") << line;
    for (const char* line :
         {"constexpr std::array<std::string_view, 1> kNames = {\"a\"};",
          "const std::vector<std::string>& names() {", "    static const std::string kName = x();"})
        EXPECT_EQ(violation(table, "src/base/x.cpp", line), "") << line;
}

// Calls `see` with the path and the text of every C++ file.
template <typename See>
void for_each_source(std::initializer_list<const char*> folders, const See& see) {
    std::filesystem::path root = SATURATE_SOURCE_DIR;
    int files = 0;
    for (const char* folder : folders) {
        for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
            std::string extension = entry.path().extension();
            if (extension != ".cpp" && extension != ".h" && extension != ".cu") continue;
            ++files;
            see(std::filesystem::relative(entry.path(), root).string(),
                read_file(entry.path(), 1 << 22, "a source file"));
        }
    }
    EXPECT_GT(files, 20);
}

TEST(LayersTest, TheTreeKeepsTheRules) {
    Table table = read_table();
    for_each_source({"app", "src", "cuda", "python", "tests"},
                    [&](const std::string& path, const std::string& text) {
                        int number = 0;
                        for (std::string_view line : split(text, '\n')) {
                            ++number;
                            std::string said = violation(table, path, std::string(line));
                            EXPECT_EQ(said, "") << path << ":" << number;
                        }
                    });
}

// The type that a line defines, unless it is a member of another; empty for every other line.
std::string defined_type(const std::string& line) {
    static const std::regex kDefines(
        R"re(^(?:class|struct|enum|enum class) ([A-Z]\w*)(?: final)?(?: :| \{|$).*)re");
    bool may_define =
        line.starts_with("class ") || line.starts_with("struct ") || line.starts_with("enum ");
    std::smatch match;
    return may_define && std::regex_match(line, match, kDefines) ? match[1] : std::string();
}

// Even where one source alone knows a type, a second type of its name makes the reader ask which
// one is meant. Where both are in headers, the linker may take one for the other.
TEST(LayersTest, ATypesNameStandsForOneThing) {
    for (const char* line : {"class Box {", "class Box : public Thing {", "struct Box final {",
                             "struct Box {};", "enum class Box { red };", "enum Box : int {"})
        EXPECT_EQ(defined_type(line), "Box") << line;
    for (const char* line : {"class Box;", "struct Thing::Box {", "    struct Box {",
                             "struct Box box;", "template <typename Box>"})
        EXPECT_EQ(defined_type(line), "") << line;
    std::map<std::string, std::string> homes;
    for_each_source(
        {"app", "src", "cuda", "python"}, [&](const std::string& path, const std::string& text) {
            for (std::string_view line : split(text, '\n')) {
                std::string type = defined_type(std::string(line));
                if (type.empty()) continue;
                auto [home, is_new] = homes.emplace(type, path);
                EXPECT_TRUE(is_new) << type << " of " << path << " is also in " << home->second;
            }
        });
    EXPECT_GT(homes.size(), 100u);
}

}  // namespace
}  // namespace saturate
