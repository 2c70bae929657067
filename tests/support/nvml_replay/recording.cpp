// SPDX-License-Identifier: Apache-2.0
#include "support/nvml_replay/recording.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace saturate::nvml_replay {

namespace {

constexpr std::uint64_t kLimitBytes = 256u << 20;

[[noreturn]] void refuse(const std::string& path, int line, std::string found,
                         std::string expected) {
    throw UserError(
        {.where = {path, line}, .found = std::move(found), .expected = std::move(expected)});
}

// Returns the end of the JSON value that starts at `at`: after its closing quote or bracket, or at
// the comma or brace after a number. Strings in recordings have no escaped quotes.
std::size_t value_end(std::string_view line, std::size_t at) {
    int depth = 0;
    bool is_text = false;
    for (; at < line.size(); ++at) {
        char c = line[at];
        if (c == '"') is_text = !is_text;
        if (is_text) continue;
        if (depth == 0 && (c == ',' || c == '}')) return at;
        if (c == '{' || c == '[') ++depth;
        if (c == '}' || c == ']') --depth;
    }
    return at;
}

// Calls `each` with name and value text of every member of a one-line object.
template <typename Each>
bool each_member(std::string_view line, const Each& each) {
    std::size_t at = line.find('{');
    if (at == std::string_view::npos) return false;
    for (++at; at < line.size() && line[at] != '}';) {
        std::size_t open = line.find('"', at);
        std::size_t close = open == std::string_view::npos ? open : line.find('"', open + 1);
        std::size_t colon = close == std::string_view::npos ? close : line.find(':', close);
        if (colon == std::string_view::npos) return false;
        std::size_t end = value_end(line, colon + 1);
        each(line.substr(open + 1, close - open - 1),
             trim(line.substr(colon + 1, end - colon - 1)));
        at = end < line.size() && line[end] == ',' ? end + 1 : end;
    }
    return at < line.size();
}

}  // namespace

Answer Recording::read_line(std::string_view line, const std::string& path, int number) const {
    Answer out;
    bool has_t = false;
    bool whole = each_member(line, [&](std::string_view name, std::string_view text) {
        if (name == "t") {
            auto t = parse_number(text);
            has_t = t.has_value();
            out.t = t.value_or(0);
        } else if (name == "call") {
            if (text.size() > 2) out.question.call = text.substr(1, text.size() - 2);
        } else if (name == "gpu") {
            out.question.gpu = static_cast<int>(parse_integer(text).value_or(-1));
        } else if (name == "arg") {
            out.question.arg = parse_integer(text).value_or(-1);
        } else if (name == "scope") {
            out.question.scope = parse_integer(text).value_or(0);
        } else if (name == "rc") {
            out.rc = static_cast<int>(parse_integer(text).value_or(0));
        } else if (name == "type") {
            out.type = static_cast<int>(parse_integer(text).value_or(3));
        } else if (name == "value") {
            out.text = text;
        }
    });
    if (!whole || !has_t || out.question.call.empty())
        refuse(path, number, "a line without t or call", R"({"t":seconds,"call":name,...})");
    if (out.question.gpu >= gpu_count())
        refuse(path, number, fmt::format("gpu {}", out.question.gpu),
               fmt::format("below {}", gpu_count()));
    return out;
}

Recording Recording::read(const std::string& path) {
    Recording out;
    out.text_ = std::make_unique<std::string>(read_file(path, kLimitBytes, "a recording"));
    int number = 0;
    double last_t = 0;
    for (std::string_view line : split(*out.text_, '\n')) {
        ++number;
        if (trim(line).empty()) continue;
        if (number == 1) {
            out.header_ = Json::parse(line, path);
            if (out.header_["kind"].string() != "nvml-recording" ||
                out.header_["schema"].integer() != 1)
                refuse(path, 1, "no recording of schema 1",
                       R"({"schema":1,"kind":"nvml-recording",...})");
            continue;
        }
        Answer answer = out.read_line(line, path, number);
        if (answer.t < last_t)
            refuse(path, number, fmt::format("t goes back to {}", answer.t),
                   fmt::format("{} or later", last_t));
        last_t = answer.t;
        out.answers_.push_back(answer);
    }
    if (out.header_.is_null()) refuse(path, 1, "an empty file", "a recording");
    std::ranges::stable_sort(out.answers_, {}, &Answer::question);
    return out;
}

const Json& Recording::gpu(int index) const {
    return header_["gpus"].items().at(static_cast<std::size_t>(index));
}

std::span<const Answer> Recording::all(const Question& question) const {
    auto found = std::ranges::equal_range(answers_, question, {}, &Answer::question);
    return {found.begin(), found.end()};
}

const Answer* Recording::at(const Question& question, double t) const {
    std::span<const Answer> answers = all(question);
    if (answers.empty()) return nullptr;
    auto after = std::ranges::upper_bound(answers, t, {}, &Answer::t);
    return after == answers.begin() ? &answers.front() : &*std::prev(after);
}

}  // namespace saturate::nvml_replay
