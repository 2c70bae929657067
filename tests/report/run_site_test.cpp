// SPDX-License-Identifier: Apache-2.0
// What serve answers, without a socket: pages, files, and names that are no run.
#include "report/run_site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/host.h"
#include "report/http_guard.h"
#include "support/run.h"
#include "support/serving.h"
#include "telemetry/trial_note.h"

namespace saturate {
namespace {

using testing::HasSubstr;
using testing::Not;

class RunSiteTest : public testing::Test {
  protected:
    RunSiteTest() {
        write_run_record(root() / "before", 200, 1'000);
        write_run_record(root() / "search/trial-1", 300, 2'000);
        write_run_record(folder_.path() / "secret", 10, 9'000);
        std::ofstream(folder_.path() / "secret.txt") << "the secret";
        site_ = std::make_unique<RunSite>(RunShelf(root()), SiteSettings{});
    }
    std::filesystem::path root() const { return folder_.path() / "runs"; }
    HttpReply ask(const std::string& path,
                  std::vector<std::pair<std::string, std::string>> query = {}) {
        return site_->answer({.path = path, .query = std::move(query)});
    }
    std::string text(const std::string& path,
                     std::vector<std::pair<std::string, std::string>> query = {}) {
        return *ask(path, std::move(query)).content;
    }
    TemporaryFolder folder_;
    std::unique_ptr<RunSite> site_;
};

TEST_F(RunSiteTest, ListsTheRunsBelowTheFolderTheNewestFirst) {
    std::string page = text("/");
    std::size_t newer = page.find("href=\"run?id=search/trial-1\"");
    std::size_t older = page.find("href=\"run?id=before\"");
    ASSERT_NE(newer, std::string::npos);
    ASSERT_NE(older, std::string::npos);
    EXPECT_LT(newer, older);
    EXPECT_EQ(text("/runs"), page);
    EXPECT_THAT(page, Not(HasSubstr("secret")));
}

TEST_F(RunSiteTest, TheRunsOfASearchAreOneLineThatOpensThem) {
    write_run_record(root() / "search/trial-2", 300, 3'000);
    site_->tick();
    std::string all = text("/runs");
    EXPECT_THAT(all, HasSubstr("<a href=\"runs?in=search\">search</a>"));
    EXPECT_THAT(all, HasSubstr("2 runs"));
    EXPECT_THAT(all, Not(HasSubstr("search/trial-1")));
    std::string inside = text("/runs", {{"in", "search"}});
    EXPECT_THAT(inside, HasSubstr("href=\"run?id=search/trial-1\""));
    EXPECT_THAT(inside, HasSubstr("href=\"run?id=search/trial-2\""));
    EXPECT_THAT(inside, Not(HasSubstr("run?id=before")));
}

TEST_F(RunSiteTest, ATrialHasTheNameAndTheEndThatItsSearchGaveIt) {
    write_trial_note(root() / "search/trial-1", {.name = "num_workers=4", .outcome = ""});
    site_->tick();
    EXPECT_THAT(text("/runs"), HasSubstr(">num_workers=4</a>"));
    std::ofstream(root() / "search/trial-1/summary.json")
        << R"({"schema":1,"ended":"interrupted","duration_ns":100})";
    write_trial_note(root() / "search/trial-1", {.name = "num_workers=4", .outcome = "measured"});
    site_->tick();
    EXPECT_THAT(text("/runs"), HasSubstr("<td>measured</td>"));
    EXPECT_THAT(text("/runs"), Not(HasSubstr("interrupted")));
    EXPECT_THAT(text("/run", {{"id", "search/trial-1"}}),
                HasSubstr("<th scope=\"col\">num_workers=4, search/trial-1</th>"));
}

TEST_F(RunSiteTest, TheListIsSearchedByWords) {
    EXPECT_THAT(text("/runs", {{"find", "BEF"}}), HasSubstr("run?id=before"));
    EXPECT_THAT(text("/runs", {{"find", "BEF"}}), Not(HasSubstr("trial-1")));
    EXPECT_THAT(text("/runs", {{"find", "trial search"}}), HasSubstr("run?id=search/trial-1"));
    EXPECT_THAT(text("/runs", {{"find", "\"><b>"}}), HasSubstr("No run fits."));
    EXPECT_THAT(text("/runs", {{"find", "\"><b>"}}), Not(HasSubstr("<b>")));
}

TEST_F(RunSiteTest, TheListIsSortedByAColumnAndTurnedAround) {
    auto is_first = [](const std::string& page, const std::string& id) {
        std::size_t at = page.find("run?id=");
        return at != std::string::npos && page.substr(at).starts_with("run?id=" + id);
    };
    EXPECT_TRUE(is_first(text("/runs", {{"by", "name"}}), "before"));
    EXPECT_TRUE(is_first(text("/runs", {{"by", "-name"}}), "search/trial-1"));
    EXPECT_TRUE(is_first(text("/runs", {{"by", "-began"}}), "before"));
    EXPECT_TRUE(is_first(text("/runs", {{"by", "no such column"}}), "search/trial-1"));
    EXPECT_THAT(text("/runs", {{"by", "name"}}),
                HasSubstr("aria-sort=\"descending\"><a href=\"runs?by=-name\">"));
}

TEST_F(RunSiteTest, APageSaysWhereAndHowItsRunsWereMadeAndHasNoEmptyParts) {
    std::string page = text("/run", {{"id", "before"}});
    EXPECT_THAT(page, HasSubstr("<h2>The run</h2>"));
    EXPECT_THAT(page, HasSubstr(">began</th>"));
    EXPECT_THAT(page, HasSubstr("<div id=\"charts\">"));
    write_run_record(root() / "empty", 0, 4'000);
    site_->tick();
    std::string empty = text("/run", {{"id", "empty"}});
    for (const char* part : {"id=\"charts\"", "id=\"loss\"", "id=\"split\""})
        EXPECT_THAT(empty, Not(HasSubstr(part)));
}

TEST_F(RunSiteTest, ShowsOneRunAndComparesTwo) {
    EXPECT_THAT(text("/run", {{"id", "before"}}), HasSubstr("data-events=\"events?id=before\""));
    std::string both = text("/run", {{"id", "before"}, {"id", "search/trial-1"}});
    EXPECT_THAT(both, HasSubstr("<th scope=\"col\">before</th><th scope=\"col\">search/trial-1"));
    EXPECT_THAT(both, HasSubstr("no difference seen"));
}

TEST_F(RunSiteTest, TheFormOfTheListComparesInTheOrderOfTime) {
    std::string page =
        text("/run", {{"order", "time"}, {"id", "search/trial-1"}, {"id", "before"}});
    EXPECT_THAT(page, HasSubstr("<th scope=\"col\">before</th><th scope=\"col\">search/trial-1"));
}

TEST_F(RunSiteTest, TheFileIsTheReportWithoutWhatFollowsARun) {
    HttpReply file = ask("/report.html", {{"id", "before"}});
    EXPECT_THAT(file.headers, testing::Contains(std::pair<std::string, std::string>(
                                  "Content-Disposition", "attachment; filename=\"report.html\"")));
    EXPECT_THAT(*file.content, Not(HasSubstr("EventSource")));
    EXPECT_THAT(*file.content, Not(HasSubstr("<nav")));
    EXPECT_THAT(text("/report.json", {{"id", "before"}}), HasSubstr("{\"schema\": 1,"));
}

TEST_F(RunSiteTest, ANameThatIsNoRunOfTheListIsNotLookedUpOnDisk) {
    for (const char* id :
         {"../secret", "..", "/", "", "before/../../secret", "./before", "before/", "before\n",
          "search", "search/trial-1/..", "/etc", "..%2fsecret", "secret", "before/steps.jsonl"}) {
        for (const char* path : {"/run", "/report.html", "/report.json", "/events"}) {
            HttpReply reply = ask(path, {{"id", id}});
            EXPECT_EQ(reply.status, 404u) << path << " " << id;
            EXPECT_EQ(*reply.content, "there is no such run; see /runs\n");
            EXPECT_EQ(reply.channel, "");
        }
    }
    for (const char* path : {"/../secret.txt", "/before/run.json", "//etc/passwd", "", "runs"})
        EXPECT_EQ(ask(path).status, 404u) << path;
    EXPECT_EQ(ask("/run").status, 400u);
    std::vector<std::pair<std::string, std::string>> many(9, {"id", "before"});
    EXPECT_EQ(ask("/run", many).status, 400u);
}

TEST_F(RunSiteTest, LinksThatLeadOutAreNotFollowed) {
    std::filesystem::create_directory_symlink(folder_.path() / "secret", root() / "linked");
    write_run_record(root() / "half", 5, 3'000);
    std::filesystem::remove(root() / "half/steps.jsonl");
    std::filesystem::create_symlink(folder_.path() / "secret.txt", root() / "half/steps.jsonl");
    site_->tick();
    EXPECT_THAT(text("/"), Not(HasSubstr("linked")));
    EXPECT_THAT(text("/"), Not(HasSubstr("half")));
    EXPECT_EQ(ask("/run", {{"id", "linked"}}).status, 404u);
    EXPECT_EQ(ask("/run", {{"id", "half"}}).status, 404u);
}

TEST_F(RunSiteTest, APageIsMadeOncePerTickAndAnewWhenTheRunHasGrown) {
    auto first = ask("/run", {{"id", "before"}}).content;
    append_steps(root() / "before", 200, 100);
    EXPECT_EQ(ask("/run", {{"id", "before"}}).content, first) << "until the next tick";
    std::string version = site_->version("runs\nbefore");
    site_->tick();
    EXPECT_NE(site_->version("runs\nbefore"), version);
    EXPECT_NE(ask("/run", {{"id", "before"}}).content, first);
    EXPECT_THAT(text("/run", {{"id", "before"}}),
                HasSubstr("data-version=\"" + site_->version("runs\nbefore") + "\""));
}

TEST_F(RunSiteTest, AStreamBeginsWithTheVersionOfItsPage) {
    HttpReply stream = ask("/events", {{"id", "before"}});
    EXPECT_EQ(stream.channel, "runs\nbefore");
    EXPECT_EQ(*stream.content, site_->version("runs\nbefore"));
    EXPECT_EQ(ask("/events", {{"of", "newest"}}).channel, "newest");
    EXPECT_EQ(ask("/events", {{"of", "list"}}).channel, "list");
}

TEST_F(RunSiteTest, TheLivePageWaitsForTheFirstRunAndGoesOnToTheNext) {
    std::filesystem::path later = folder_.path() / "later";
    RunSite live(RunShelf(later), {.follows_newest = true});
    EXPECT_THAT(*live.answer({.path = "/"}).content, HasSubstr("Waiting for a run"));
    EXPECT_EQ(live.version("newest"), "none");
    write_run_record(later, 10);
    live.tick();
    EXPECT_THAT(*live.answer({.path = "/"}).content, HasSubstr(">running<"));
    std::ofstream(later / "summary.json") << R"({"schema":1,"ended":"done","duration_ns":100})";
    live.tick();
    EXPECT_THAT(*live.answer({.path = "/"}).content, HasSubstr(">done<"));
}

TEST_F(RunSiteTest, NamesOfRunsAreTextAndNotMarkup) {
    write_run_record(root() / "<b>\"&'", 5, 5'000);
    site_->tick();
    std::string page = text("/");
    EXPECT_THAT(page, HasSubstr("value=\"&lt;b&gt;&quot;&amp;&#39;\""));
    EXPECT_THAT(page, HasSubstr("href=\"run?id=%3Cb%3E%22%26%27\""));
    EXPECT_THAT(text("/run", {{"id", "<b>\"&'"}}), Not(HasSubstr("<b>")));
}

TEST(HttpGuardTest, OnlyOurOwnNamesAndPagesAreAnswered) {
    HttpGuard guard = HttpGuard::for_address({.host = "127.0.0.1", .port = 8765}, "");
    auto status = [&](HttpRequest request) {
        auto refusal = guard.refusal(request);
        return refusal ? refusal->status : 200;
    };
    for (const char* host : {"127.0.0.1:8765", "localhost", "LOCALHOST:9000", "[::1]:8765"})
        EXPECT_EQ(status({.path = "/", .host = host}), 200u) << host;
    for (const char* host : {"", "evil.example", "127.0.0.1.evil.example:8765", "[::1", "10.0.0.1",
                             "localhost.", ":8765", "localhost@evil.example"})
        EXPECT_EQ(status({.path = "/", .host = host}), 421u) << host;
    EXPECT_EQ(status({.path = "/", .host = "localhost:1", .origin = "http://localhost:1"}), 200u);
    for (const char* origin : {"http://evil.example", "null", "https://localhost:1",
                               "http://localhost:2", "http://localhost:1.evil.example"})
        EXPECT_EQ(status({.path = "/", .host = "localhost:1", .origin = origin}), 403u) << origin;
}

TEST(HttpGuardTest, ATokenIsAskedForOnceAndThenACookie) {
    HttpGuard guard = HttpGuard::for_address({.host = "0.0.0.0", .port = 8765}, "abc123");
    HttpRequest request{.path = "//evil.example/run",
                        .query = {{"id", "a b"}, {"token", "abc123"}, {"id", "c&d"}},
                        .host = "10.1.2.3:8765"};
    auto answer = guard.refusal(request);
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->status, 303u);
    EXPECT_THAT(answer->headers, testing::Contains(std::pair<std::string, std::string>(
                                     "Location", "/evil.example/run?id=a%20b&id=c%26d")));
    EXPECT_THAT(
        answer->headers,
        testing::Contains(std::pair<std::string, std::string>(
            "Set-Cookie", "saturate_token_8765=abc123; HttpOnly; SameSite=Strict; Path=/")));
    HttpRequest plain{.path = "/", .host = "10.1.2.3:8765"};
    EXPECT_EQ(guard.refusal(plain)->status, 401u);
    for (const char* cookie : {"saturate_token_8765=abc12", "saturate_token_8765=abc1234",
                               "saturate_token_8765=", "x=abc123", "xsaturate_token_8765=abc123",
                               "saturate_token_8766=abc123"}) {
        plain.cookie = cookie;
        EXPECT_EQ(guard.refusal(plain)->status, 401u) << cookie;
    }
    plain.cookie = "saturate_token_8766=other; saturate_token_8765=abc123";
    EXPECT_FALSE(guard.refusal(plain).has_value());
    plain.cookie = "";
    plain.authorization = "Bearer abc123";
    EXPECT_FALSE(guard.refusal(plain).has_value());
    plain.host = "rebound.example";
    EXPECT_EQ(guard.refusal(plain)->status, 421u);
}

TEST(HttpGuardTest, MetricsAreForThisMachineOrForScrapersByItsNames) {
    auto status = [](const char* address, const std::string& host) {
        HttpGuard guard = HttpGuard::for_metrics({.host = address, .port = 9838});
        auto refusal = guard.refusal({.path = "/metrics", .host = host});
        return refusal ? refusal->status : 200;
    };
    EXPECT_EQ(status("127.0.0.1", "localhost:9838"), 200u);
    for (const std::string host : {"evil.example", "", "10.0.0.1:9838"})
        EXPECT_EQ(status("127.0.0.1", host), 421u) << host;
    for (const std::string& host :
         {std::string("10.0.0.1:9838"), host_name(), host_name() + ".cluster.example:9838"})
        EXPECT_EQ(status("0.0.0.0", host), 200u) << host;
    EXPECT_EQ(status("0.0.0.0", "evil.example"), 421u);
}

TEST(HttpGuardTest, TokensAreLongAndNeverTheSame) {
    EXPECT_EQ(fresh_token().size(), 32u);
    EXPECT_NE(fresh_token(), fresh_token());
}

}  // namespace
}  // namespace saturate
