// SPDX-License-Identifier: Apache-2.0
// Answers NVML's calls from a recording instead of a driver.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "base/line_reader.h"
#include "base/text.h"
#include "cuda/nvml_recording.h"

namespace saturate {

namespace {

constexpr std::int64_t kSchema = 1;

struct Recorded {
    double t = 0;
    int code = 0;
    unsigned type = 3;
    Json value;
};

struct Key {
    int gpu = -1;
    std::string call;
    std::int64_t arg = -1;
    std::int64_t scope = 0;
    auto operator<=>(const Key&) const = default;
};

std::optional<std::uint64_t> count_of(const Json& json) {
    auto whole = json.integer();
    if (whole) return static_cast<std::uint64_t>(*whole);
    auto real = json.number();
    if (real && *real >= 0 && *real < 1.8446744073709552e19)
        return static_cast<std::uint64_t>(*real);
    return std::nullopt;
}

class RecordedCalls final : public NvmlCalls {
  public:
    explicit RecordedCalls(std::function<std::int64_t()> now)
        : now_(std::move(now)), start_ns_(now_()) {}

    void set_header(const Json& header) {
        started_wall_us = header["started_ns"].integer().value_or(0) / 1000;
        system_ = {.driver = header["driver"].string(), .nvml = header["nvml"].string()};
        if (auto cuda = header["cuda"].integer()) system_.cuda = static_cast<int>(*cuda);
        for (const Json& gpu : header["gpus"].items()) {
            NvmlIdentity id;
            id.gpu.index = system_.gpus++;
            id.gpu.name = gpu["name"].string().value_or("");
            id.gpu.uuid = gpu["uuid"].string().value_or("");
            id.gpu.pci_bus_id = gpu["pci_bus_id"].string().value_or("");
            id.gpu.mig = gpu["mig_mode"].boolean();
            std::string capability = gpu["capability"].string().value_or("");
            std::size_t dot = capability.find('.');
            if (dot != std::string::npos) {
                auto major = parse_integer(capability.substr(0, dot));
                auto minor = parse_integer(capability.substr(dot + 1));
                if (major && minor) {
                    id.gpu.capability = {static_cast<int>(*major), static_cast<int>(*minor)};
                }
            }
            identities_.push_back(id);
        }
    }

    void add(Key key, Recorded answer) { answers_[std::move(key)].push_back(std::move(answer)); }

    void ready() {
        for (NvmlIdentity& id : identities_) {
            auto first = memory(id.gpu.index);
            if (first.ok()) id.gpu.memory_total_bytes = first.value.total;
            if (first.ok()) id.gpu.memory_used_bytes = first.value.used;
        }
        calls_ = 0;
    }

    const NvmlSystem& system() override { return system_; }
    const NvmlIdentity& identity(int gpu) override {
        return identities_.at(static_cast<std::size_t>(gpu));
    }
    std::string error_text(int code) override {
        if (code == kNvmlGpuIsLost) return "GPU is lost";
        return fmt::format("NVML error {}", code);
    }
    [[nodiscard]] std::uint64_t calls() const override { return calls_; }

    NvmlAnswer<NvmlRates> rates(int gpu) override {
        const Recorded& found = look_up({gpu, "UtilizationRates"});
        return {found.code,
                {count_of(found.value["gpu"]).value_or(0),
                 count_of(found.value["memory"]).value_or(0)}};
    }
    NvmlAnswer<NvmlMemory> memory(int gpu) override {
        const Recorded& found = look_up({gpu, "MemoryInfo"});
        auto part = [&](const char* name) { return count_of(found.value[name]).value_or(0); };
        return {found.code,
                {part("total"), part("used"), part("free"), count_of(found.value["reserved"])}};
    }
    NvmlAnswer<std::uint64_t> number(int gpu, NvmlNumber what, unsigned arg) override {
        Key key{gpu, std::string(nvml_number_name(what))};
        if (nvml_number_has_arg(what)) key.arg = arg;
        const Recorded& found = look_up(key);
        return {found.code, count_of(found.value).value_or(0)};
    }
    NvmlAnswer<std::vector<NvmlTimed>> samples(int gpu, unsigned type,
                                               std::int64_t since_us) override {
        NvmlAnswer<std::vector<NvmlTimed>> answer;
        each({gpu, "Samples", type}, answer.code, [&](const Json& item) {
            if (item.items().size() != 2) return;
            NvmlTimed entry{wall_us(item.items()[0]), item.items()[1].number().value_or(-1)};
            if (entry.wall_us > since_us && entry.wall_us <= wall_now_us())
                answer.value.push_back(entry);
        });
        if (answer.ok() && answer.value.empty()) answer.code = kNvmlNotFound;
        return answer;
    }
    int fields(int gpu, std::span<NvmlField> fields) override {
        ++calls_;
        for (NvmlField& field : fields) {
            const Recorded& found = look_up({gpu, "FieldValue", field.id, field.scope}, false);
            field.code = found.code;
            field.type = found.type;
            field.real = found.value.number().value_or(0);
            field.whole = static_cast<std::int64_t>(count_of(found.value).value_or(0));
        }
        return kNvmlSuccess;
    }
    NvmlAnswer<std::vector<NvmlProcess>> processes(int gpu, GpuProcessKind kind) override {
        const Recorded& found = look_up({gpu, std::string(nvml_process_call(kind))});
        NvmlAnswer<std::vector<NvmlProcess>> answer{.code = found.code};
        for (const Json& entry : found.value.items()) {
            answer.value.push_back({entry["pid"].integer().value_or(0),
                                    count_of(entry["used_bytes"]), count_of(entry["gpu_instance"]),
                                    count_of(entry["compute_instance"])});
        }
        return answer;
    }
    NvmlAnswer<std::vector<NvmlProcessShare>> process_shares(int gpu,
                                                             std::int64_t since_us) override {
        NvmlAnswer<std::vector<NvmlProcessShare>> answer;
        each({gpu, "ProcessUtilization"}, answer.code, [&](const Json& item) {
            NvmlProcessShare share{.wall_us = wall_us(item["time"]),
                                   .pid = item["pid"].integer().value_or(0)};
            share.sm = static_cast<unsigned>(count_of(item["sm"]).value_or(0));
            if (share.wall_us > since_us && share.wall_us <= wall_now_us())
                answer.value.push_back(share);
        });
        return answer;
    }
    NvmlAnswer<std::vector<NvmlMetric>> activity(int gpu, std::span<const unsigned> ids) override {
        NvmlAnswer<std::vector<NvmlMetric>> answer;
        ++calls_;
        for (unsigned id : ids) {
            const Recorded& found = look_up({gpu, "GpmMetric", id}, false);
            if (found.code == kNvmlSuccess) answer.code = kNvmlSuccess;
            answer.value.push_back({id, found.code, found.value.number().value_or(-1)});
        }
        return answer;
    }

    std::int64_t started_wall_us = 0;

  private:
    [[nodiscard]] double seconds() const { return static_cast<double>(now_() - start_ns_) / 1e9; }
    [[nodiscard]] std::int64_t wall_us(const Json& t) const {
        return started_wall_us + static_cast<std::int64_t>(t.number().value_or(-1) * 1e6);
    }
    [[nodiscard]] std::int64_t wall_now_us() const {
        return started_wall_us + static_cast<std::int64_t>(seconds() * 1e6);
    }

    // The answer valid now: the last one up to now, or else the first one.
    const Recorded& holding(const std::vector<Recorded>& list) const {
        constexpr double kRounding = 1e-6;
        double t = seconds() + kRounding;
        auto after = std::upper_bound(list.begin(), list.end(), t,
                                      [](double at, const Recorded& one) { return at < one.t; });
        return after == list.begin() ? *after : *std::prev(after);
    }
    const Recorded& look_up(const Key& key, bool counts = true) {
        static const Recorded kUnknown{.code = kNvmlNotSupported};
        if (counts) ++calls_;
        // A lost GPU gives the same answer to every question from its line in the recording on.
        auto all = answers_.find({key.gpu, "*"});
        if (all != answers_.end() && all->second.front().t <= seconds()) {
            const Recorded& fate = holding(all->second);
            if (fate.code != 0) return fate;
        }
        auto found = answers_.find(key);
        return found == answers_.end() ? kUnknown : holding(found->second);
    }
    // Passes on the entries of all lines; the caller drops those that are still to come.
    template <typename Take>
    void each(const Key& key, int& code, Take take) {
        code = look_up(key).code;
        auto found = answers_.find(key);
        if (found == answers_.end() || code != kNvmlSuccess) return;
        for (const Recorded& line : found->second) {
            for (const Json& item : line.value.items()) take(item);
        }
    }

    std::function<std::int64_t()> now_;
    std::int64_t start_ns_;
    NvmlSystem system_;
    std::vector<NvmlIdentity> identities_;
    std::map<Key, std::vector<Recorded>> answers_;
    std::uint64_t calls_ = 0;
};

void check_header(const Json& header, const std::string& file) {
    if (header["kind"].string() != "nvml-recording" || !header["schema"].integer()) {
        throw UserError(
            {.where = {file, 1},
             .found = "no recording of NVML",
             .expected = "a file that monitor --record wrote (docs/nvml-recording.md)"});
    }
    std::int64_t schema = *header["schema"].integer();
    if (schema > kSchema) {
        throw UserError(
            {.where = {file, 1},
             .found = fmt::format("recording of schema {}", schema),
             .expected = fmt::format("schema {} or older, all that this version knows", kSchema),
             .fix = "read it with the version of saturate that wrote it, or a newer one"});
    }
}

std::optional<Json> parse_line(const Line& line, const std::string& file) {
    if (line.too_long) return std::nullopt;
    try {
        return Json::parse(line.text, file);
    } catch (const UserError&) {
        return std::nullopt;
    }
}

}  // namespace

RecordedNvml read_nvml_recording(const std::filesystem::path& path,
                                 std::function<std::int64_t()> now) {
    std::string file = path.string();
    LineReader reader(path, "a recording of NVML");
    auto first = reader.next();
    auto header = first ? parse_line(*first, file) : std::nullopt;
    check_header(header.value_or(Json()), file);
    auto calls = std::make_unique<RecordedCalls>(std::move(now));
    calls->set_header(*header);
    RecordedNvml out{.started_wall_us = calls->started_wall_us};
    bool ended = false;
    std::int64_t broken = 0, backwards = 0, first_broken = 0, first_backwards = 0;
    while (auto line = reader.next()) {
        if (line->text.empty()) continue;
        auto json = parse_line(*line, file);
        auto t = json ? (*json)["t"].number() : std::nullopt;
        auto call = json ? (*json)["call"].string() : std::nullopt;
        if (!t || !call) {
            if (!line->whole) break;
            if (broken++ == 0) first_broken = line->number;
            continue;
        }
        if (*t < out.seconds) {
            if (backwards++ == 0) first_backwards = line->number;
            t = out.seconds;  // keep the order, as if it had come immediately
        }
        out.seconds = *t;
        if (*call == "end") {
            ended = true;
            continue;
        }
        Key key{static_cast<int>((*json)["gpu"].integer().value_or(-1)), *call,
                (*json)["arg"].integer().value_or(-1), (*json)["scope"].integer().value_or(0)};
        calls->add(
            key, {*t, static_cast<int>((*json)["rc"].integer().value_or(0)),
                  static_cast<unsigned>((*json)["type"].integer().value_or(3)), (*json)["value"]});
    }
    if (broken)
        out.notes.push_back(fmt::format("{}: skipped what is no answer, {} times, first at line {}",
                                        file, broken, first_broken));
    if (backwards)
        out.notes.push_back(fmt::format("{}: time goes backwards {} times, first at line {}", file,
                                        backwards, first_backwards));
    if (!ended)
        out.notes.push_back(fmt::format(
            "{}: has no end, so it may have been cut off; it is read up to the cut", file));
    calls->ready();
    out.calls = std::move(calls);
    return out;
}

}  // namespace saturate
