// SPDX-License-Identifier: Apache-2.0
// Writer and reader of the run record against each other, and the reader against damage.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "support/run.h"
#include "telemetry/record_json.h"
#include "telemetry/record_reader.h"
#include "telemetry/record_writer.h"
#include "telemetry/some_info.h"

namespace saturate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

StepRecord whole_step() {
    return {.step = 3,
            .start_ns = 6'000,
            .duration_ns = 900,
            .samples = 64,
            .input_wait_ns = 1,
            .copy_ns = 2,
            .forward_ns = 3,
            .backward_ns = 4,
            .optimizer_ns = 5,
            .communication_ns = 6,
            .communication_total_ns = 10,
            .communication_bytes = 11,
            .collectives = 12,
            .synchronisation_ns = 7,
            .log_ns = 8,
            .device_busy_ns = 9,
            .loss = 0.125,
            .loss_step = 1};
}

DeviceSample whole_device() {
    DeviceSample sample{.gpu = 2, .time_ns = 7'000, .took_ns = 11};
    int value = 1;
    for (const DeviceField& field : device_fields()) {
        if (field.real) {
            sample.*field.real = value++ + 0.5;
        } else {
            sample.*field.count = static_cast<std::uint64_t>(value++);
        }
    }
    sample.performance_state = 0;
    sample.throttle = {.power_cap_ns = 1,
                       .sync_boost_ns = 2,
                       .software_thermal_ns = 3,
                       .hardware_thermal_ns = 4,
                       .power_brake_ns = 5};
    sample.utilization_ring = {{1000, 50}, {1166, 97.5}};
    sample.processes = {
        {.pid = 9, .kind = GpuProcessKind::mps, .memory_bytes = 1, .sm_percent = 2}};
    return sample;
}

HostSample whole_host() {
    HostSample host{.time_ns = 8'000,
                    .cpu_percent = 50.5,
                    .io_wait_percent = 1,
                    .cores = 2,
                    .running = 3,
                    .memory_total_bytes = 4,
                    .memory_available_bytes = 5,
                    .own_cpu_percent = 0.1,
                    .own_memory_bytes = 6};
    host.tree = {
        .root_pid = 10,
        .ended = true,
        .processes = 2,
        .threads = 3,
        .loader_workers = 1,
        .cpu_percent = 150,
        .main_thread_percent = 99,
        .worker_cpu_percent = 51,
        .run_queue_percent = 2,
        .io_wait_percent = 3,
        .read_bytes = 4,
        .read_call_bytes = 5,
        .memory_bytes = 6,
        .busiest =
            {{.pid = 10, .tid = 11, .name = "pt_data_worker", .state = 'R', .cpu_percent = 7}},
        .slurm_job = "123",
        .container = "docker abc"};
    return host;
}

std::string step_text(const StepRecord& step) {
    std::string out;
    append_step(out, step, 0);
    return out;
}

std::string device_text(const DeviceSample& sample) {
    std::string out;
    append_device(out, sample, 0);
    return out;
}

std::string host_text(const HostSample& sample) {
    std::string out;
    append_host(out, sample, 0);
    return out;
}

void write_small_record(const std::filesystem::path& folder) {
    RecordWriter writer(folder, some_info());
    writer.step({.step = 0, .start_ns = 5'000, .duration_ns = 10});
    writer.step(whole_step());
    writer.event({.kind = EventKind::epoch, .time_ns = 5'500, .text = "epoch 1"});
    writer.event({.kind = EventKind::bad_sample,
                  .time_ns = 5'600,
                  .duration_ns = 1,
                  .step = 2,
                  .text = "broken \"x.jpg\"",
                  .values = Json::object({{"index", 12}})});
    writer.device(whole_device());
    writer.host(whole_host());
    writer.finish({.duration_ns = 99,
                   .ended = "interrupted",
                   .exit_status = 130,
                   .steps = 2,
                   .samples = 64,
                   .samples_per_second = RunRate{1, 2, 3, 4, 5},
                   .step_p50_ms = 1.5,
                   .step_p99_ms = 2.5,
                   .busy_percent = 20,
                   .busy_deviation = 3,
                   .stall_percent = {{"input_wait", 60.5}},
                   .memory_peak_bytes = 77,
                   .energy_joules = 8,
                   .mfu_percent = 9,
                   .loss_first = 2,
                   .loss_last = 1,
                   .verdict = "low",
                   .extra = Json::object({{"more", true}})});
}

TEST(RunRecordTest, TheQuickReaderOfStepsAgreesWithTheOther) {
    for (const char* text :
         {R"({"step":1,"t_ns":2,"duration_ns":3})",
          R"({"step":1,"t_ns":-2,"duration_ns":3,"loss":0.25,"loss_step":0,"unknown":7})"}) {
        auto quick = plain_step(text, 10), other = step_of(Json::parse(text, ""), 10);
        ASSERT_TRUE(quick && other) << text;
        std::string a, b;
        append_step(a, *quick, 0);
        append_step(b, *other, 0);
        EXPECT_EQ(a, b);
    }
    std::string whole;
    append_step(whole, whole_step(), 0);
    std::string again;
    append_step(again, plain_step(whole, 0).value(), 0);
    EXPECT_EQ(whole, again);
}

TEST(RunRecordTest, TheQuickReaderLeavesEverythingElseToTheOther) {
    for (const char* text :
         {"", "{", "{}", R"({"step":1,"t_ns":2})", R"({ "step":1,"t_ns":2,"duration_ns":3})",
          R"({"step":1,"t_ns":2,"duration_ns":3} )", R"({"step":1.5,"t_ns":2,"duration_ns":3})",
          R"({"step":1,"t_ns":2,"duration_ns":3,"loss":null})",
          R"({"step":1,"t_ns":2,"duration_ns":3,)", R"({"st\u0065p":1,"t_ns":2,"duration_ns":3})",
          R"({"step":1,"t_ns":2,"duration_ns":3,"loss":nan})",
          R"({"step":1,"t_ns":2,"duration_ns":3,"loss":-inf})",
          R"({"step":99999999999999999999,"t_ns":2,"duration_ns":3})"}) {
        EXPECT_FALSE(plain_step(text, 0)) << text;
    }
}

TEST(RunRecordTest, TheQuickReaderOfDevicesAgreesWithTheOther) {
    DeviceSample sample = whole_device();
    sample.processes.reset();
    std::string whole = device_text(sample);
    EXPECT_EQ(device_text(plain_device(whole, 0).value()), whole);
    for (const char* text :
         {R"({"type":"gpu","gpu":1,"t_ns":-2})",
          R"({"gpu":0,"t_ns":5,"power_watts":1e2,"took_ns":7,"utilization_percent":12.5,)"
          R"("memory_used_bytes":9223372036854775807,"type":"gpu"})"}) {
        auto quick = plain_device(text, 10), other = device_of(Json::parse(text, ""), 10);
        ASSERT_TRUE(quick && other) << text;
        EXPECT_EQ(quick->time_ns, other->time_ns);
        EXPECT_EQ(device_text(*quick), device_text(*other));
    }
}

TEST(RunRecordTest, TheQuickReaderOfDevicesLeavesEverythingElseToTheOther) {
    EXPECT_FALSE(plain_device(device_text(whole_device()), 0)) << "processes";
    EXPECT_FALSE(plain_device(host_text(whole_host()), 0));
    for (const char* text :
         {"", "{}", R"({"type":"gpu","gpu":1})", R"({"type":"host","gpu":1,"t_ns":2})",
          R"({"type":"gpu","gpu":1,"t_ns":2,"fault":"GPU is lost"})",
          R"({"type":"gpu","gpu":1,"t_ns":2,"power_watts":null})",
          R"({"type":"gpu","gpu":1,"t_ns":2,"power_watts":inf})",
          R"({"type":"gpu","gpu":1,"t_ns":2,"memory_used_bytes":1.5})",
          R"({"type":"gpu","gpu":1,"t_ns":2,"memory_used_bytes":-1})",
          R"({"type":"gpu","gpu":1,"t_ns":2,"throttle":{"other_ns":3}})",
          R"({"type":"gpu","gpu":1,"t_ns":2,"utilization_ring":[[1]]})",
          R"({"type":"gpu","gpu":1,"t_ns":2,"new":"x"})", R"({"type":"gpu","gpu":1,"t_ns":2} )",
          R"({"type":"gpu","gpu":1,"t_ns":2)"}) {
        EXPECT_FALSE(plain_device(text, 0)) << text;
    }
}

TEST(RunRecordTest, ComesBackAsItWasWritten) {
    TemporaryFolder folder;
    write_small_record(folder.path() / "run");
    RunRecord run = read_run(folder.path() / "run");
    EXPECT_THAT(run.notes, IsEmpty());
    EXPECT_EQ(info_json(run.info).pretty(), info_json(some_info()).pretty());
    ASSERT_EQ(run.steps.size(), 2u);
    EXPECT_EQ(run.steps[0].start_ns, 5'000);
    EXPECT_EQ(run.steps[0].loss, std::nullopt);
    EXPECT_EQ(run.steps[0].forward_ns, std::nullopt);
    EXPECT_EQ(step_text(run.steps[1]), step_text(whole_step()));
    ASSERT_EQ(run.devices.size(), 1u);
    EXPECT_EQ(device_text(run.devices[0]), device_text(whole_device()));
    ASSERT_EQ(run.hosts.size(), 1u);
    EXPECT_EQ(host_text(run.hosts[0]), host_text(whole_host()));
    ASSERT_EQ(run.events.size(), 2u);
    EXPECT_EQ(run.events[0].text, "epoch 1");
    EXPECT_EQ(run.events[1].text, "broken \"x.jpg\"");
    EXPECT_EQ(run.events[1].values["index"].integer(), 12);
    ASSERT_TRUE(run.summary);
    EXPECT_EQ(run.summary->ended, "interrupted");
    EXPECT_EQ(run.summary->exit_status, 130);
    EXPECT_EQ(run.summary->stall_percent[0].second, 60.5);
    EXPECT_EQ(summary_json(*run.summary).pretty(),
              read_file(folder.path() / "run/summary.json", 1 << 16, "x")
                  .substr(0, summary_json(*run.summary).pretty().size()));
}

TEST(RunRecordTest, TimesInTheFilesCountFromTheStart) {
    TemporaryFolder folder;
    write_small_record(folder.path() / "run");
    EXPECT_EQ(read_file(folder.path() / "run/steps.jsonl", 1 << 16, "x"),
              "{\"step\":0,\"t_ns\":0,\"duration_ns\":10}\n"
              "{\"step\":3,\"t_ns\":1000,\"duration_ns\":900,\"samples\":64,\"input_wait_ns\":1,"
              "\"copy_ns\":2,\"forward_ns\":3,\"backward_ns\":4,\"optimizer_ns\":5,"
              "\"communication_ns\":6,\"communication_total_ns\":10,\"communication_bytes\":11,"
              "\"collectives\":12,\"synchronisation_ns\":7,\"log_ns\":8,\"device_busy_ns\":9,"
              "\"loss_step\":1,\"loss\":0.125}\n");
}

TEST(RunRecordTest, ALossThatIsNoNumberIsReadAsNan) {
    StepRecord step{.loss = std::nan("")};
    auto back = step_of(Json::parse(step_text(step), "x"), 0);
    ASSERT_TRUE(back && back->loss);
    EXPECT_TRUE(std::isnan(*back->loss));
}

TEST(RunRecordTest, AnEventOfALaterVersionIsKeptAsANote) {
    auto event = event_of(Json::parse(R"({"event":"solar_flare","t_ns":1,"text":"hot"})", "x"), 0);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, EventKind::note);
    EXPECT_EQ(event->text, "solar_flare: hot");
}

// The record as the reader gives it, in one comparable text; cut short it must be a prefix.
struct Counts {
    std::size_t steps = 0, samples = 0, events = 0;
    bool operator<=(const Counts& other) const {
        return steps <= other.steps && samples <= other.samples && events <= other.events;
    }
};

TEST(RunRecordTest, CutOffAtAnyByteItIsReadableUpToTheCut) {
    TemporaryFolder folder;
    std::filesystem::path whole = folder.path() / "whole", cut = folder.path() / "cut";
    write_small_record(whole);
    for (const char* name :
         {"run.json", "steps.jsonl", "samples.jsonl", "events.jsonl", "summary.json"}) {
        std::string text = read_file(whole / name, 1 << 20, "x");
        std::filesystem::remove_all(cut);
        std::filesystem::copy(whole, cut);
        RunRecord complete = read_run(cut);
        Counts before{complete.steps.size(), complete.devices.size() + complete.hosts.size(),
                      complete.events.size()};
        for (std::size_t size = text.size(); size-- > 0;) {
            std::filesystem::resize_file(cut / name, size);
            RunRecord run = read_run(cut);
            Counts now{run.steps.size(), run.devices.size() + run.hosts.size(), run.events.size()};
            ASSERT_TRUE(now <= before) << name << " cut at " << size;
            before = now;
            std::string_view kept = std::string_view(text).substr(0, size);
            auto lines = static_cast<std::size_t>(std::count(kept.begin(), kept.end(), '\n'));
            // Every line that is whole is there; one that only lacks its newline may be.
            std::string_view file = name;
            if (file.ends_with(".jsonl")) {
                std::size_t read = file.starts_with("steps")     ? now.steps
                                   : file.starts_with("samples") ? now.samples
                                                                 : now.events;
                ASSERT_GE(read, lines) << name << " cut at " << size;
            }
            bool torn_line = !kept.empty() && kept.back() != '\n' && kept.back() != '}';
            EXPECT_TRUE(!torn_line || run.notes.size() == 1) << name << " cut at " << size;
        }
    }
}

TEST(RunRecordTest, SaysWhereALineIsCutAndWhichAreNoRecords) {
    TemporaryFolder folder;
    std::filesystem::path path = folder.path() / "run";
    write_small_record(path);
    std::ofstream(path / "steps.jsonl", std::ios::app) << "rubbish\n{\"step\":1}\n{\"step\":9,\"t_";
    std::filesystem::remove(path / "summary.json");
    std::filesystem::remove(path / "events.jsonl");
    EXPECT_THAT(
        read_run(path).notes,
        ElementsAre("steps.jsonl: 2 lines skipped that are not part of a record, first at line 3",
                    "steps.jsonl: line 5 is cut off, everything before it was read",
                    "events.jsonl: missing", "summary.json is missing: the run did not finish"));
}

TEST(RunRecordTest, SaysThatTimeGoesBackwards) {
    TemporaryFolder folder;
    std::filesystem::path path = folder.path() / "run";
    write_small_record(path);
    std::ofstream(path / "samples.jsonl", std::ios::app)
        << "{\"type\":\"gpu\",\"t_ns\":100,\"gpu\":2}\n{\"type\":\"gpu\",\"t_ns\":50,\"gpu\":3}\n";
    RunRecord run = read_run(path);
    EXPECT_THAT(run.notes,
                ElementsAre("samples.jsonl: time goes backwards at 1 line, first at line 3"));
    EXPECT_EQ(run.devices.size(), 3u);
}

TEST(RunRecordTest, RefusesANewerSchemaAlsoInATornFile) {
    TemporaryFolder folder;
    for (const char* text : {"{\"schema\": 2, \"kind\": \"train\"}", "{\"schema\": 2, \"ki"}) {
        std::string path = folder.file("run/run.json", text).string();
        try {
            (void)read_run(folder.path() / "run");
            FAIL() << "no error";
        } catch (const UserError& error) {
            EXPECT_EQ(error.what(),
                      "error: " + path +
                          ": run record of schema 2\n"
                          "  expected: schema 1 or older, all that this version knows\n"
                          "  fix:      read it with the version of saturate that wrote it, or a "
                          "newer one");
        }
    }
}

TEST(RunRecordTest, AFolderWithoutOneIsTheUsersError) {
    TemporaryFolder folder;
    try {
        (void)read_run(folder.path());
        FAIL() << "no error";
    } catch (const UserError& error) {
        EXPECT_EQ(error.what(), "error: " + folder.path().string() +
                                    ": not a run record: it has no run.json\n"
                                    "  expected: a folder that train, run or monitor -o wrote");
    }
}

}  // namespace
}  // namespace saturate
