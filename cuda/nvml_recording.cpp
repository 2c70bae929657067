// SPDX-License-Identifier: Apache-2.0
// Writes a recording: passes every question on and records the answer if it differs from the last.
#include "cuda/nvml_recording.h"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "base/clock.h"
#include "base/json.h"
#include "base/line_file.h"

namespace saturate {

struct NvmlRecorder::Impl {
    explicit Impl(std::filesystem::path path) : path(std::move(path)) {}
    std::filesystem::path path;
    // Opened with the first line, so that nothing is replaced without a driver.
    std::optional<LineFile> file;
    std::int64_t start_ns = 0;
    std::int64_t start_wall_us = 0;
    std::map<std::string, std::string> last;  // by question
    std::uint64_t dropped = 0;

    void line(const Json& json) {
        if (!file) file.emplace(path, true);
        if (!file->has_room()) {
            ++dropped;
            return;
        }
        file->text() += json.line();
        file->text() += '\n';
    }
    [[nodiscard]] double seconds() const {
        // A tenth of a millisecond is precise enough and keeps the lines short.
        return static_cast<double>((now_ns() - start_ns) / 100'000) / 1e4;
    }
    [[nodiscard]] double seconds_of(std::int64_t wall_us) const {
        return static_cast<double>(wall_us - start_wall_us) / 1e6;
    }
};

NvmlRecorder::NvmlRecorder(const std::filesystem::path& path)
    : impl_(std::make_unique<Impl>(path)) {}
NvmlRecorder::~NvmlRecorder() = default;
void NvmlRecorder::flush() {
    if (impl_->file) impl_->file->write();
}

std::string NvmlRecorder::finish() {
    if (impl_->start_ns != 0) {
        impl_->line(Json::object({{"t", impl_->seconds()}, {"call", "end"}}));
    }
    if (!impl_->file) return "";
    impl_->file->write();
    std::string failure = impl_->file->failure();
    if (failure.empty() && impl_->dropped > 0) {
        failure = fmt::format("{} answers were dropped while the disk was full", impl_->dropped);
    }
    return failure;
}

namespace {

struct Question {
    int gpu = 0;
    std::string_view call;
    std::optional<std::uint64_t> arg = {};
    std::optional<std::uint64_t> scope = {};
    std::optional<unsigned> type = {};
};

class RecordingCalls final : public NvmlCalls {
  public:
    RecordingCalls(std::unique_ptr<NvmlCalls> calls, NvmlRecorder::Impl& out)
        : calls_(std::move(calls)), out_(out) {
        out_.start_ns = now_ns();
        std::int64_t wall = wall_ns();
        out_.start_wall_us = wall / 1000;
        out_.line(header(wall));
    }

    const NvmlSystem& system() override { return calls_->system(); }
    const NvmlIdentity& identity(int gpu) override { return calls_->identity(gpu); }
    std::string error_text(int code) override { return calls_->error_text(code); }
    [[nodiscard]] std::uint64_t calls() const override { return calls_->calls(); }

    NvmlAnswer<NvmlRates> rates(int gpu) override {
        auto answer = calls_->rates(gpu);
        note({gpu, "UtilizationRates"}, answer.code,
             Json::object({{"gpu", answer.value.gpu}, {"memory", answer.value.memory}}));
        return answer;
    }
    NvmlAnswer<NvmlMemory> memory(int gpu) override {
        auto answer = calls_->memory(gpu);
        Json value = Json::object({{"total", answer.value.total}});
        if (answer.value.reserved) value.set("reserved", *answer.value.reserved);
        value.set("free", answer.value.free).set("used", answer.value.used);
        note({gpu, "MemoryInfo"}, answer.code, value);
        return answer;
    }
    NvmlAnswer<std::uint64_t> number(int gpu, NvmlNumber what, unsigned arg) override {
        auto answer = calls_->number(gpu, what, arg);
        Question question{gpu, nvml_number_name(what)};
        if (nvml_number_has_arg(what)) question.arg = arg;
        note(question, answer.code, answer.value);
        return answer;
    }
    NvmlAnswer<std::vector<NvmlTimed>> samples(int gpu, unsigned type,
                                               std::int64_t since_us) override {
        auto answer = calls_->samples(gpu, type, since_us);
        Json value = Json::array();
        for (const NvmlTimed& entry : answer.value) {
            value.add(Json::array({out_.seconds_of(entry.wall_us), entry.value}));
        }
        note({.gpu = gpu, .call = "Samples", .arg = type, .type = 0}, answer.code, value);
        return answer;
    }
    int fields(int gpu, std::span<NvmlField> fields) override {
        int code = calls_->fields(gpu, fields);
        for (const NvmlField& field : fields) {
            Question question{gpu, "FieldValue", field.id, {}, field.type};
            if (field.scope != 0) question.scope = field.scope;
            note(question, field.code, field.type == 0 ? Json(field.real) : Json(field.whole));
        }
        return code;
    }
    NvmlAnswer<std::vector<NvmlProcess>> processes(int gpu, GpuProcessKind kind) override {
        auto answer = calls_->processes(gpu, kind);
        Json value = Json::array();
        for (const NvmlProcess& process : answer.value) {
            Json entry = Json::object({{"pid", process.pid}});
            if (process.used_bytes) entry.set("used_bytes", *process.used_bytes);
            if (process.gpu_instance) entry.set("gpu_instance", *process.gpu_instance);
            if (process.compute_instance) entry.set("compute_instance", *process.compute_instance);
            value.add(entry);
        }
        note({gpu, nvml_process_call(kind)}, answer.code, value);
        return answer;
    }
    NvmlAnswer<std::vector<NvmlProcessShare>> process_shares(int gpu,
                                                             std::int64_t since_us) override {
        auto answer = calls_->process_shares(gpu, since_us);
        Json value = Json::array();
        for (const NvmlProcessShare& share : answer.value) {
            value.add(Json::object({{"time", out_.seconds_of(share.wall_us)},
                                    {"pid", share.pid},
                                    {"sm", share.sm},
                                    {"mem", share.memory},
                                    {"enc", share.encoder},
                                    {"dec", share.decoder}}));
        }
        note({gpu, "ProcessUtilization"}, answer.code, value);
        return answer;
    }
    NvmlAnswer<std::vector<NvmlMetric>> activity(int gpu, std::span<const unsigned> ids) override {
        auto answer = calls_->activity(gpu, ids);
        for (const NvmlMetric& metric : answer.value) {
            note({.gpu = gpu, .call = "GpmMetric", .arg = metric.id}, metric.code, metric.value);
        }
        return answer;
    }

  private:
    Json header(std::int64_t wall) {
        const NvmlSystem& system = calls_->system();
        Json gpus = Json::array();
        for (int i = 0; i < system.gpus; ++i) {
            const NvmlIdentity& id = calls_->identity(i);
            Json gpu = Json::object({{"name", id.gpu.name}, {"uuid", id.gpu.uuid}});
            if (!id.gpu.pci_bus_id.empty()) gpu.set("pci_bus_id", id.gpu.pci_bus_id);
            if (id.minor) gpu.set("minor", *id.minor);
            if (id.architecture) gpu.set("architecture", *id.architecture);
            if (auto c = id.gpu.capability) {
                gpu.set("capability", fmt::format("{}.{}", c->major, c->minor));
            }
            if (id.persistence_mode) gpu.set("persistence_mode", *id.persistence_mode);
            if (id.gpu.mig) gpu.set("mig_mode", *id.gpu.mig);
            gpus.add(gpu);
        }
        return Json::object({{"schema", 1},
                             {"kind", "nvml-recording"},
                             {"driver", system.driver},
                             {"nvml", system.nvml},
                             {"cuda", system.cuda},
                             {"started_ns", wall},
                             {"gpus", gpus}});
    }

    void note(const Question& q, int code, Json value) {
        Json asked = Json::object({{"gpu", q.gpu}, {"call", q.call}});
        if (q.arg) asked.set("arg", *q.arg);
        if (q.scope) asked.set("scope", *q.scope);
        Json answer;
        bool ok = code == kNvmlSuccess;
        if (ok && q.type) answer.set("type", *q.type);
        if (!ok) answer.set("rc", code);
        if (ok) answer.set("value", std::move(value));
        // Records an answer only if it differs from the last. New samples and
        // shares have other times.
        std::string& last = out_.last[asked.line()];
        std::string text = answer.line();
        if (text == last) return;
        last = text;
        Json line = Json::object({{"t", out_.seconds()}});
        for (const auto& [name, member] : asked.members()) line.set(name, member);
        for (const auto& [name, member] : answer.members()) line.set(name, member);
        out_.line(line);
    }

    std::unique_ptr<NvmlCalls> calls_;
    NvmlRecorder::Impl& out_;
};

}  // namespace

std::unique_ptr<NvmlCalls> record_nvml(std::unique_ptr<NvmlCalls> calls, NvmlRecorder& recorder) {
    return std::make_unique<RecordingCalls>(std::move(calls), recorder.impl());
}

}  // namespace saturate
