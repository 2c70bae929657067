// SPDX-License-Identifier: Apache-2.0
// `cmake --install` gives programs that run from elsewhere, without the checkout's build folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "support/run.h"

namespace saturate {
namespace {

TEST(InstallTest, TheInstalledProgramsRunFromElsewhere) {
    TemporaryFolder folder;
    std::string prefix = folder.path() / "prefix";
    std::string build = std::filesystem::path(SATURATE_BINARY).parent_path();
    Ran installed = run({"cmake", "--install", build, "--prefix", prefix});
    ASSERT_EQ(installed.status, 0) << installed.err;
    folder.file("job.yaml", "num_workers: 0\n");
    RunWhere there{.folder = folder.path()};
    Ran ran = run(
        {prefix + "/bin/saturate", "optimize", "--config", "job.yaml", "--gpu", "A100 80GB SXM4"},
        there);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.out, testing::HasSubstr("1 change written to job_gpu_optimized.yaml"));
    Ran selftest = run({prefix + "/bin/saturate", "selftest"}, there);
#ifdef SATURATE_HAS_ENGINE
    EXPECT_EQ(selftest.status, 0) << selftest.err;
    EXPECT_THAT(selftest.out, testing::HasSubstr("ok      gradient of x^3"));
#else
    EXPECT_EQ(selftest.status, 3);
    EXPECT_EQ(selftest.err,
              "error: selftest needs LibTorch, which this build does not include\n"
              "  expected: a build with LibTorch\n"
              "  fix:      in a checkout, ./saturate builds one; with the wheel, also pip install "
              "the wheel saturate-gpu-engine (docs/install.md)\n");
#endif
}

// The wheels of program and engine, in the places where pip puts them.
TEST(InstallTest, TheEngineOfAWheelIsFound) {
    for (const char* site : {"lib/python3.11/site-packages", "lib/python3.9/dist-packages",
                             "lib64/python3.12/site-packages"}) {
        TemporaryFolder folder;
        std::string engine = std::string(site) + "/saturate_gpu_engine/saturate-engine";
        std::filesystem::permissions(folder.file(engine, "#!/bin/sh\necho \"the engine: $*\"\n"),
                                     std::filesystem::perms::owner_all);
        std::filesystem::create_directory(folder.path() / "bin");
        std::filesystem::copy_file(SATURATE_BINARY, folder.path() / "bin/saturate");
        Ran ran = run({folder.path() / "bin/saturate", "selftest", "--json"});
        EXPECT_EQ(ran.status, 0) << site << ran.err;
        EXPECT_EQ(ran.out, "the engine: selftest --json\n") << site;
    }
}

TEST(InstallTest, ThePackageRunsWhereItIsUnpacked) {
    if (run({"sh", "-c", "command -v cpack && command -v dpkg-shlibdeps"}).status != 0)
        GTEST_SKIP() << "cpack or dpkg-dev is not installed";
    TemporaryFolder folder;
    std::string build = std::filesystem::path(SATURATE_BINARY).parent_path();
    Ran packed = run({"cpack", "--config", build + "/CPackConfig.cmake", "-B", folder.path()},
                     {.folder = folder.path()});
    ASSERT_EQ(packed.status, 0) << packed.out << packed.err;
    std::string root = folder.path() / "root";
    Ran unpacked = run({"bash", "-c", "dpkg-deb -f *.deb && dpkg-deb -x *.deb \"$0\"", root},
                       {.folder = folder.path()});
    ASSERT_EQ(unpacked.status, 0) << unpacked.err;
    EXPECT_THAT(unpacked.out, testing::HasSubstr("Package: saturate\n"));
    // What reads traces and what serves pages is inside: only the C library is asked for.
    EXPECT_THAT(unpacked.out, testing::Not(testing::ContainsRegex("simdjson|microhttpd")));
    std::string doc = root + "/usr/share/doc/saturate";
    Ran ran = run({root + "/usr/bin/saturate", "optimize", "--config",
                   doc + "/configs/locator_before.yaml", "--gpu", "RTX 4090", "--dry-run"},
                  {.folder = folder.path()});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_TRUE(std::filesystem::exists(doc + "/docs/serve.md"));
}

// tools/release makes files from a tag; what does not fit it is refused before anything is built.
TEST(ReleaseTest, ATagThatIsNoneIsRefused) {
    std::string script = std::string(SATURATE_SOURCE_DIR) + "/tools/release";
    Ran ran = run({script, "1.0"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              "error: no tag \"1.0\"\n"
              "  expected: tools/release vMAJOR.MINOR.PATCH [FOLDER]\n"
              "  fix:      git tag lists the tags\n");
    Ran without = run({script});
    EXPECT_EQ(without.status, 2);
    EXPECT_THAT(without.err,
                testing::StartsWith("error: no tag \"\"\n  expected: tools/release v"));
}

TEST(ReleaseTest, TheChangelogBeginsWithThisVersion) {
    std::string text =
        read_file(std::string(SATURATE_SOURCE_DIR) + "/CHANGELOG.md", 1 << 20, "the changes");
    std::string version = run({SATURATE_BINARY, "--version"}).out;
    ASSERT_TRUE(version.starts_with("saturate ")) << version;
    version = std::string(trim(version.substr(9)));
    std::string heading = text.substr(text.find("\n## ") + 1);
    EXPECT_THAT(heading, testing::StartsWith("## " + version + " ("));
}

// Every verb has a manual page that man(1) takes without a warning, and bash takes the completion.
TEST(InstallTest, ManualPagesAndCompletionsAreWhole) {
    TemporaryFolder folder;
    std::string prefix = folder.path() / "prefix";
    std::string build = std::filesystem::path(SATURATE_BINARY).parent_path();
    Ran installed = run({"cmake", "--install", build, "--prefix", prefix});
    ASSERT_EQ(installed.status, 0) << installed.err;
    std::string share = prefix + "/share";
    for (const char* page : {"saturate", "saturate-serve", "saturate-monitor", "saturate-train"})
        EXPECT_TRUE(std::filesystem::exists(share + "/man/man1/" + page + ".1")) << page;
    Ran completed = run({"bash", "-c",
                         "source \"$0\"; COMP_WORDS=(saturate serve --l); COMP_CWORD=2; _saturate; "
                         "echo ${COMPREPLY[*]}",
                         share + "/bash-completion/completions/saturate"});
    EXPECT_EQ(completed.out, "--live --listen --lang\n") << completed.err;
    if (run({"sh", "-c", "command -v groff"}).status != 0) GTEST_SKIP() << "groff is not installed";
    for (const auto& page : std::filesystem::directory_iterator(share + "/man/man1")) {
        Ran shown = run({"groff", "-man", "-ww", "-Tutf8", "-P-cbu", page.path()});
        EXPECT_EQ(shown.status, 0) << page.path();
        EXPECT_EQ(shown.err, "") << page.path();
        EXPECT_THAT(shown.out, testing::HasSubstr("EXIT STATUS")) << page.path();
    }
}

}  // namespace
}  // namespace saturate
