// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record_reader.h"

#include <fmt/format.h>

#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/line_reader.h"
#include "base/text.h"
#include "telemetry/record_json.h"

namespace saturate {

namespace {

// Counts the problems in one file and makes one note per kind.
class Oddities {
  public:
    explicit Oddities(std::string file) : file_(std::move(file)) {}

    void broken(std::int64_t line) { count(broken_, line); }
    // `stream` is a source with its own order of time: one GPU, the host, the steps.
    void time(std::int64_t stream, std::int64_t time_ns, std::int64_t line) {
        auto [last, is_new] = last_.try_emplace(stream, time_ns);
        if (!is_new && time_ns < last->second) count(backwards_, line);
        last->second = time_ns;
    }
    void cut(std::int64_t line) { cut_ = line; }

    void say(std::vector<std::string>& notes) const {
        if (broken_.count) {
            notes.push_back(fmt::format(
                "{}: {} skipped that {} not part of a record, first at line {}", file_,
                lines(broken_.count), broken_.count == 1 ? "is" : "are", broken_.first));
        }
        if (backwards_.count) {
            notes.push_back(fmt::format("{}: time goes backwards at {}, first at line {}", file_,
                                        lines(backwards_.count), backwards_.first));
        }
        if (cut_) {
            notes.push_back(
                fmt::format("{}: line {} is cut off, everything before it was read", file_, cut_));
        }
    }

  private:
    struct Seen {
        std::int64_t count = 0;
        std::int64_t first = 0;
    };
    static void count(Seen& seen, std::int64_t line) {
        if (seen.count++ == 0) seen.first = line;
    }
    static std::string lines(std::int64_t count) {
        return count == 1 ? "1 line" : fmt::format("{} lines", count);
    }
    std::string file_;
    Seen broken_, backwards_;
    std::int64_t cut_ = 0;
    std::map<std::int64_t, std::int64_t> last_;
};

// How far a file was read, and the problems found so far.
struct ReadProgress {
    explicit ReadProgress(const char* name) : name(name), odd(name) {}
    const char* name;
    std::uint64_t position = 0;
    std::int64_t lines = 0;
    Oddities odd;
};

// Throws UserError if the file is not regular: a pipe would block the reader for ever.
void check_is_file(const std::filesystem::path& path) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error))
        throw UserError({.where = {path.string()},
                         .found = "is not a regular file",
                         .expected = "a part of a run record"});
}

// `take` returns false for a line that is not a record.
template <typename Take>
void read_texts(const std::filesystem::path& folder, ReadProgress& progress, bool is_end,
                RunRecord& run, Take take) {
    std::filesystem::path path = folder / progress.name;
    if (!std::filesystem::exists(path)) {
        run.notes.push_back(fmt::format("{}: missing", progress.name));
        return;
    }
    check_is_file(path);
    LineReader reader(path, "a part of a run record");
    reader.start_at(progress.position, progress.lines);
    while (auto line = reader.next()) {
        if (!line->whole && !is_end) break;  // the line is not complete yet
        progress.position = reader.position();
        progress.lines = line->number;
        if (line->text.empty()) continue;
        bool taken = false;
        if (!line->too_long) {
            try {
                taken = take(line->text, line->number, progress.odd);
            } catch (const UserError&) {
                taken = false;
            }
        }
        if (taken) continue;
        if (line->whole) {
            progress.odd.broken(line->number);
        } else {
            progress.odd.cut(line->number);
        }
    }
    progress.odd.say(run.notes);
}

template <typename Take>
void read_lines(const std::filesystem::path& folder, ReadProgress& progress, bool is_end,
                RunRecord& run, Take take) {
    read_texts(folder, progress, is_end, run,
               [&](std::string_view text, std::int64_t line, Oddities& odd) {
                   return take(Json::parse(text, progress.name), line, odd);
               });
}

// Reads the schema from a file without its end; the schema comes first for this purpose.
std::optional<std::int64_t> schema_of_torn(std::string_view text) {
    std::size_t at = text.find("\"schema\"");
    if (at == std::string_view::npos) return std::nullopt;
    text = text.substr(at + 8);
    std::size_t digit = text.find_first_of("0123456789");
    std::size_t end = text.find_first_not_of("0123456789", digit);
    if (digit == std::string_view::npos || end == std::string_view::npos) return std::nullopt;
    return parse_integer(text.substr(digit, end - digit));
}

void check_schema(std::optional<std::int64_t> schema, const std::filesystem::path& file) {
    if (schema && *schema > kRecordSchema) {
        throw UserError(
            {.where = {file.string()},
             .found = fmt::format("run record of schema {}", *schema),
             .expected =
                 fmt::format("schema {} or older, all that this version knows", kRecordSchema),
             .fix = "read it with the version of saturate that wrote it, or a newer one"});
    }
}

constexpr std::uint64_t kLargestInfo = 64u << 20;

std::optional<Json> parse_if_whole(std::string_view text, const std::filesystem::path& path) {
    try {
        return Json::parse(text, path.string());
    } catch (const UserError&) {
        return std::nullopt;
    }
}

RunInfo read_info(const std::filesystem::path& folder, std::vector<std::string>& notes) {
    std::filesystem::path path = folder / "run.json";
    std::string text = read_file(path, kLargestInfo, "run.json of a run record");
    auto json = parse_if_whole(text, path);
    check_schema(json ? (*json)["schema"].integer() : schema_of_torn(text), path);
    if (json) return info_of(*json);
    notes.emplace_back("run.json: cut off, so command, host and settings are unknown");
    return {};
}

Json read_python(const std::filesystem::path& folder, std::vector<std::string>& notes) {
    std::filesystem::path path = folder / "python.json";
    if (!std::filesystem::exists(path)) return {};
    check_is_file(path);
    auto json =
        parse_if_whole(read_file(path, kLargestInfo, "what Python reported about a run"), path);
    if (json) return *json;
    notes.emplace_back("python.json: cut off");
    return {};
}

std::optional<RunSummary> read_summary(const std::filesystem::path& folder,
                                       std::vector<std::string>& notes) {
    std::filesystem::path path = folder / "summary.json";
    if (!std::filesystem::exists(path)) {
        notes.push_back("summary.json is missing: the run did not finish");
        return std::nullopt;
    }
    check_is_file(path);
    auto json = parse_if_whole(read_file(path, kLargestInfo, "the summary of a run"), path);
    if (json) return summary_of(*json);
    notes.emplace_back("summary.json: cut off");
    return std::nullopt;
}

}  // namespace

Account account_of(const RunRecord& record) {
    return record.account ? *record.account : account_of(record.steps, record.events);
}

bool is_run_record(const std::filesystem::path& folder) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(folder / "run.json", ignored);
}

struct RunFollower::Impl {
    std::filesystem::path folder;
    RunVisitor visitor;
    ReadProgress steps{"steps.jsonl"}, samples{"samples.jsonl"}, events{"events.jsonl"};
};

RunFollower::RunFollower(std::filesystem::path folder, RunVisitor visitor)
    : impl_(std::make_unique<Impl>()) {
    impl_->folder = std::move(folder);
    impl_->visitor = std::move(visitor);
}

RunFollower::~RunFollower() = default;
RunFollower::RunFollower(RunFollower&&) noexcept = default;

bool RunFollower::has_shrunk() const {
    for (const ReadProgress* file : {&impl_->steps, &impl_->samples, &impl_->events}) {
        std::error_code error;
        auto size = std::filesystem::file_size(impl_->folder / file->name, error);
        if (file->position > (error ? 0 : size)) return true;
    }
    return false;
}

RunRecord RunFollower::catch_up(bool is_end) {
    const std::filesystem::path& folder = impl_->folder;
    const RunVisitor& visitor = impl_->visitor;
    if (!is_run_record(folder)) {
        throw UserError({.where = {folder.string()},
                         .found = "not a run record: it has no run.json",
                         .expected = "a folder that train, run or monitor -o wrote"});
    }
    RunRecord run;
    run.info = read_info(folder, run.notes);
    std::int64_t origin = run.info.started_ns;
    read_texts(folder, impl_->steps, is_end, run,
               [&](std::string_view text, std::int64_t line, Oddities& odd) {
                   auto step = plain_step(text, origin);
                   if (!step) step = step_of(Json::parse(text, "steps.jsonl"), origin);
                   if (!step) return false;
                   odd.time(0, step->start_ns, line);
                   if (visitor.step) visitor.step(*step);
                   return true;
               });
    read_texts(folder, impl_->samples, is_end, run,
               [&](std::string_view text, std::int64_t line, Oddities& odd) {
                   auto device = plain_device(text, origin);
                   Json json = device ? Json() : Json::parse(text, "samples.jsonl");
                   if (!device) device = device_of(json, origin);
                   if (device) {
                       odd.time(device->gpu, device->time_ns, line);
                       if (visitor.device) visitor.device(*device);
                       return true;
                   }
                   auto host = host_of(json, origin);
                   if (!host) return false;
                   odd.time(-1, host->time_ns, line);
                   if (visitor.host) visitor.host(*host);
                   return true;
               });
    // Events come from many threads, so a slightly wrong order is not a problem.
    read_lines(folder, impl_->events, is_end, run, [&](const Json& json, std::int64_t, Oddities&) {
        auto event = event_of(json, origin);
        if (event && visitor.event) visitor.event(*event);
        return event.has_value();
    });
    run.python = read_python(folder, run.notes);
    run.summary = read_summary(folder, run.notes);
    return run;
}

RunRecord visit_run(const std::filesystem::path& folder, const RunVisitor& visitor) {
    return RunFollower(folder, visitor).catch_up(true);
}

RunRecord read_run(const std::filesystem::path& folder) {
    RunRecord lists;
    RunRecord run = visit_run(
        folder, {.step = [&](const StepRecord& step) { lists.steps.push_back(step); },
                 .device = [&](const DeviceSample& sample) { lists.devices.push_back(sample); },
                 .host = [&](const HostSample& sample) { lists.hosts.push_back(sample); },
                 .event = [&](const EventRecord& event) { lists.events.push_back(event); }});
    run.steps = std::move(lists.steps);
    run.devices = std::move(lists.devices);
    run.hosts = std::move(lists.hosts);
    run.events = std::move(lists.events);
    return run;
}

}  // namespace saturate
