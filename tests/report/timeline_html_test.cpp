// SPDX-License-Identifier: Apache-2.0
// The page of `diagnose --html`: what it holds, that names cannot break out of it, its size, and
// (where a browser is there) that the script draws every event.
#include "report/timeline_html.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "base/json.h"
#include "base/text.h"
#include "report/timeline_data.h"
#include "support/run.h"

namespace saturate {
namespace {

constexpr std::string_view kHostile = "</script><script>alert(1)</script>\"'&\x01 <!-- \xff";

// One step on one stream and one thread: pairs of an operator and the kernel it launches.
Trace make_trace(int pairs, std::string_view name = "gemm") {
    Trace trace;
    trace.file = "t<1>.json";
    trace.kind = TraceKind::pytorch;
    Lane thread{.process = "1", .thread = "2", .name = "main </script>"};
    Lane stream{.gpu = true, .device = 0, .stream = 7};
    trace.lanes = {thread, stream};
    std::int64_t length = std::int64_t{pairs} * 10'000;
    trace.events.push_back({.duration_ns = length,
                            .name = trace.names.add("ProfilerStep#3"),
                            .category = Category::annotation});
    for (int i = 0; i < pairs; ++i) {
        std::int64_t start = std::int64_t{i} * 10'000;
        auto correlation = static_cast<std::uint32_t>(i + 1);
        trace.events.push_back({.start_ns = start,
                                .duration_ns = 3000,
                                .name = trace.names.add("aten::mm"),
                                .category = Category::op});
        trace.events.push_back({.start_ns = start + 1000,
                                .duration_ns = 1000,
                                .name = trace.names.add("cudaLaunchKernel"),
                                .correlation = correlation,
                                .category = Category::runtime});
        trace.events.push_back({.start_ns = start + 4000,
                                .duration_ns = 5000,
                                .name = trace.names.add(name),
                                .correlation = correlation,
                                .lane = 1,
                                .category = Category::kernel});
    }
    finish(trace);
    return trace;
}

Diagnosis make_diagnosis() {
    Diagnosis diagnosis;
    diagnosis.inputs = {"t<1>.json"};
    diagnosis.verdict = "The GPU is 50 % busy & waits";
    diagnosis.busy_percent = 50;
    diagnosis.split.compute = 50;
    diagnosis.idle = {{Cause::input, 30.0}, {Cause::sync, 20.0}};
    for (std::string_view id : {"F01", "F06", "F18"}) {
        Finding finding;
        finding.id = id;
        finding.share_percent = 20;
        finding.evidence = fmt::format("evidence of {} {}", id, kHostile);
        finding.gain = {1.1, 1.2, 1.3};
        finding.examples = {{1'000'000, std::string(kHostile), "train.py(62): <module>"}};
        diagnosis.findings.push_back(finding);
    }
    diagnosis.total = {1.2, 1.5, 1.8};
    return diagnosis;
}

std::size_t count(std::string_view text, std::string_view part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
    return found;
}

std::string data_of(const std::string& page) {
    std::string_view start = "id=\"data\">";
    std::size_t from = page.find(start) + start.size();
    return page.substr(from, page.find("</script>", from) - from);
}

TEST(TimelineHtmlTest, HoldsVerdictBarEveryFindingAndTheStep) {
    Trace trace = make_trace(4);
    std::string page = diagnosis_page(make_diagnosis(), &trace, {});
    EXPECT_TRUE(page.starts_with("<!DOCTYPE html>\n<html lang=\"en\">"));
    EXPECT_TRUE(page.ends_with("</main>\n</body>\n</html>\n"));
    EXPECT_NE(page.find("<h1>The GPU is 50 % busy &amp; waits</h1>"), page.npos);
    for (std::string_view id : {"F01", "F06", "F18"}) {
        EXPECT_NE(page.find(fmt::format("evidence of {}", id)), page.npos);
        EXPECT_EQ(count(page, fmt::format("id=\"{}\"", id)), 1u);
    }
    EXPECT_NE(page.find("1.20 times as fast</strong> (1.10 to 1.30)"), page.npos);
    EXPECT_NE(page.find("All of them together: <strong>1.50 times as fast"), page.npos);
    EXPECT_NE(page.find("One typical step: ProfilerStep#3"), page.npos);
    EXPECT_NE(page.find("t&lt;1&gt;.json"), page.npos);
    for (std::string_view element : {"section", "div", "span", "ul", "li", "dl", "dd", "h2", "h3",
                                     "p", "button", "style", "canvas", "code"}) {
        std::regex open(fmt::format("<{}[ >]", element));
        auto opened = std::distance(std::sregex_iterator(page.begin(), page.end(), open), {});
        EXPECT_EQ(static_cast<std::size_t>(opened), count(page, fmt::format("</{}>", element)))
            << element;
    }
}

// As the terminal does: "per step" only where steps are known, what a gain assumes, what was left
// out, and one finding where a part of it says the same.
TEST(TimelineHtmlTest, SaysWhatTheTerminalSays) {
    Diagnosis diagnosis = make_diagnosis();
    diagnosis.findings[0].assumes = "half of it goes";
    diagnosis.findings[0].ms_per_step = 7;
    Finding part = diagnosis.findings[0];
    part.id = "F02";
    part.part_of = "F01";
    part.fix = diagnosis.findings[0].fix_text();
    diagnosis.findings.push_back(part);
    diagnosis.window = RecordedTime{.whole_ms = 100, .left_out = {{"start-up", 60.0}}};
    diagnosis.total = {1.5, 2.5, 3.0};
    std::string page = diagnosis_page(diagnosis, nullptr, {});
    EXPECT_NE(page.find("20.0 %, 7.0 ms</span>"), page.npos);
    EXPECT_NE(page.find("<dt>Assumes</dt><dd>half of it goes</dd>"), page.npos);
    EXPECT_NE(page.find("left out of 100.0 ms recorded: start-up 60.0 ms"), page.npos);
    EXPECT_NE(page.find("(1.50 to 3.00), more than one by one (1.73x)"), page.npos);
    EXPECT_EQ(page.find("id=\"F02\""), page.npos);
    EXPECT_NE(page.find("<dt>Also</dt><dd>F02 "), page.npos);
    diagnosis.steps = 4;
    EXPECT_NE(diagnosis_page(diagnosis, nullptr, {}).find("20.0 %, 7.0 ms per step</span>"),
              page.npos);
}

TEST(TimelineHtmlTest, SpeaksChinese) {
    Trace trace = make_trace(4);
    Diagnosis diagnosis = make_diagnosis();
    diagnosis.dropped_events = 3;
    diagnosis.steps = 4;
    diagnosis.idle = {{Cause::input, 40.0}};
    std::string page = diagnosis_page(diagnosis, &trace, {.language = Language::chinese});
    EXPECT_TRUE(page.starts_with("<!DOCTYPE html>\n<html lang=\"zh-CN\">"));
    for (std::string_view english :
         {"Where the time went", "Findings", "Evidence", "Gain", "times as fast", "confidence",
          "per step", "All of them", "trust", "could not be read", "typical", "Drag", "Zoom",
          "Next gap", "arrow keys", "waiting for data", "thread 1", "stream"})
        EXPECT_EQ(page.substr(0, page.rfind("<script>")).find(english), page.npos) << english;
    Json data = Json::parse(data_of(page), "data");
    EXPECT_EQ(data["words"]["GPU idle"].string(), "GPU 空闲");
    EXPECT_EQ(data["lanes"].items()[0]["label"].string(), "GPU 0 流 7");
    // Every word that the script asks for is there.
    std::string script = page.substr(page.rfind("<script>"));
    std::regex asked("say\\(\"([^\"]+)\"\\)");
    for (std::sregex_iterator at(script.begin(), script.end(), asked), end; at != end; ++at)
        EXPECT_TRUE(data["words"][(*at)[1].str()].string()) << (*at)[1];
}

TEST(TimelineHtmlTest, LoadsNothingFromElsewhere) {
    Trace trace = make_trace(4);
    std::string page = diagnosis_page(make_diagnosis(), &trace, {});
    EXPECT_NE(page.find("default-src 'none'"), page.npos);
    for (std::string_view word : {"http://", "https://", "src=\"", "href=", "url(", "@import"})
        EXPECT_EQ(page.find(word), page.npos) << word;
}

TEST(TimelineHtmlTest, NoNameBreaksOutOfTextOrScript) {
    Trace trace = make_trace(4, kHostile);
    std::string page = diagnosis_page(make_diagnosis(), &trace, {});
    EXPECT_EQ(count(page, "<script"), 2u);  // the data and the program
    EXPECT_EQ(count(page, "</script"), 2u);
    EXPECT_EQ(page.find("alert(1)</"), page.npos);
    EXPECT_EQ(page.find('\x01'), page.npos);
    Json data = Json::parse(data_of(page), "data");
    std::vector<std::string> names;
    for (const Json& name : data["names"].items()) names.push_back(name.string().value_or(""));
    EXPECT_EQ(
        std::ranges::count(names, "</script><script>alert(1)</script>\"'&? <!-- \xef\xbf\xbd"), 1);
    EXPECT_EQ(html_text("<a href='x' title=\"y\">&\x02\x7f\n"),
              "&lt;a href=&#39;x&#39; title=&quot;y&quot;&gt;&amp;\xef\xbf\xbd\xef\xbf\xbd\n");
}

TEST(TimelineHtmlTest, KeepsEveryEventOfTheStepOnItsRow) {
    Trace trace = make_trace(3);
    StepData step = typical_step(make_timeline(trace));
    EXPECT_EQ(step.events, trace.events.size());
    EXPECT_EQ(step.left_out, 0u);
    Json data = Json::parse(step.json, "data");
    EXPECT_EQ(data["length"].integer(), 30'000);
    const Json::Array& lanes = data["lanes"].items();
    ASSERT_EQ(lanes.size(), 2u);
    EXPECT_EQ(lanes[0]["label"].string(), "GPU 0 stream 7");
    EXPECT_EQ(lanes[0]["start"].items()[1].integer(), 10'000);  // a difference
    EXPECT_EQ(lanes[0]["kind"].string(), "000");
    EXPECT_EQ(lanes[1]["depth"].string(), "0121212");  // step, operator, call
    EXPECT_EQ(lanes[1]["kind"].string(), "6454545");
    EXPECT_FALSE(data["gaps"]["start"].items().empty());
}

TEST(TimelineHtmlTest, StaysSmallWithTwoHundredThousandEvents) {
    Trace trace = make_trace(66'667);
    std::string page = diagnosis_page(make_diagnosis(), &trace, {});
    EXPECT_EQ(typical_step(make_timeline(trace)).events, 200'002u);
    EXPECT_LT(page.size(), 8u << 20);  // about 20 bytes an event and 30 a gap
}

TEST(TimelineHtmlTest, SaysWhatItLeavesOut) {
    Trace trace = make_trace(1);
    for (int i = 0; i < 10; ++i)
        trace.events.push_back({.start_ns = 100 + i,
                                .duration_ns = 2000 - 2 * i,
                                .name = trace.names.add("aten::nested"),
                                .category = Category::op});
    finish(trace);
    StepData step = typical_step(make_timeline(trace));
    EXPECT_GT(step.left_out, 0u);
    EXPECT_EQ(step.events + step.left_out, trace.events.size());
    std::string page = diagnosis_page(make_diagnosis(), &trace, {});
    EXPECT_NE(page.find(fmt::format("({} more nested deeper", step.left_out)), page.npos);
}

TEST(TimelineHtmlTest, HasAPageWithoutATrace) {
    std::string page = diagnosis_page(make_diagnosis(), nullptr, {});
    EXPECT_EQ(page.find("<canvas"), page.npos);
    EXPECT_NE(page.find("evidence of F01"), page.npos);
    EXPECT_EQ(trace_to_draw(make_diagnosis(), {}), nullptr);
}

TEST(TimelineHtmlTest, DrawsTheRankThatTheFindingsAreAbout) {
    std::vector<Trace> traces;
    traces.push_back(make_trace(1));
    traces.push_back(make_trace(2));
    Diagnosis diagnosis = make_diagnosis();
    diagnosis.rank_shown = 1;
    EXPECT_EQ(trace_to_draw(diagnosis, traces), &traces[1]);
}

TEST(TimelineHtmlTest, TheBrowserDrawsEveryEvent) {
    if (run({"sh", "-c", "command -v chromium"}).status != 0)
        GTEST_SKIP() << "chromium is not installed";
    TemporaryFolder folder;
    Trace trace = make_trace(500, kHostile);
    std::string page = diagnosis_page(make_diagnosis(), &trace, {});
    std::string file = folder.file("page.html", page).string();
    Ran ran = run({"chromium", "--headless=new", "--no-sandbox", "--disable-gpu",
                   "--enable-logging=stderr", "--user-data-dir=" + folder.path().string() + "/user",
                   "--window-size=1400,900", "--dump-dom", "file://" + file});
    ASSERT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.err.find("CONSOLE"), std::string::npos) << ran.err;
    EXPECT_NE(ran.out.find("data-events=\"1501\""), std::string::npos);
    EXPECT_NE(ran.out.find("data-visible=\"1501\""), std::string::npos);
    std::smatch match;
    ASSERT_TRUE(std::regex_search(ran.out, match, std::regex("data-drawn=\"([0-9]+)\"")));
    EXPECT_GT(parse_integer(match[1].str()).value_or(0), 900);
}

// Drag, wheel, keys, buttons and tooltip, at 1200 and 400 pixels.
TEST(TimelineHtmlTest, CanBeUsedWithMouseAndKeysAlsoInANarrowWindow) {
    if (run({"sh", "-c", "command -v chromium"}).status != 0)
        GTEST_SKIP() << "chromium is not installed";
    TemporaryFolder folder;
    Trace trace = make_trace(20, kHostile);
    std::string file =
        folder.file("page.html", diagnosis_page(make_diagnosis(), &trace, {})).string();
    Ran ran = run({"python3", "-B", SATURATE_SOURCE_DIR "/tests/report/page_test.py", file});
    EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
}

}  // namespace
}  // namespace saturate
