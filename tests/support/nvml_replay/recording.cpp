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

}  // namespace

Recording Recording::read(const std::string& path) {
    std::string text = read_file(path, kLimitBytes, "a recording");
    Recording out;
    int number = 0;
    double last_t = 0;
    for (std::string_view line : split(text, '\n')) {
        ++number;
        if (trim(line).empty()) continue;
        Json json = Json::parse(line, path);
        if (number == 1) {
            if (json["kind"].string() != "nvml-recording" || json["schema"].integer() != 1)
                refuse(path, 1, "no recording of schema 1",
                       R"({"schema":1,"kind":"nvml-recording",...})");
            out.header_ = std::move(json);
            continue;
        }
        auto t = json["t"].number();
        auto call = json["call"].string();
        if (!t || !call)
            refuse(path, number, "a line without t or call", R"({"t":seconds,"call":name,...})");
        if (*t < last_t)
            refuse(path, number, fmt::format("t goes back to {}", *t),
                   fmt::format("{} or later", last_t));
        last_t = *t;
        Key key{static_cast<int>(json["gpu"].integer().value_or(-1)), *call,
                json["arg"].integer().value_or(-1), json["scope"].integer().value_or(0)};
        if (std::get<0>(key) >= out.gpu_count())
            refuse(path, number, fmt::format("gpu {}", std::get<0>(key)),
                   fmt::format("below {}", out.gpu_count()));
        out.answers_[key].push_back({.t = *t,
                                     .rc = static_cast<int>(json["rc"].integer().value_or(0)),
                                     .type = static_cast<int>(json["type"].integer().value_or(3)),
                                     .value = json["value"]});
    }
    if (number == 0 || out.header_.is_null()) refuse(path, 1, "an empty file", "a recording");
    return out;
}

const Json& Recording::gpu(int index) const {
    return header_["gpus"].items().at(static_cast<std::size_t>(index));
}

const std::vector<Answer>* Recording::all(const Question& question) const {
    auto found = answers_.find(question);
    return found == answers_.end() ? nullptr : &found->second;
}

const Answer* Recording::at(const Question& question, double t) const {
    const std::vector<Answer>* answers = all(question);
    if (!answers) return nullptr;
    auto after = std::ranges::upper_bound(*answers, t, {}, &Answer::t);
    return after == answers->begin() ? &answers->front() : &*std::prev(after);
}

}  // namespace saturate::nvml_replay
