// SPDX-License-Identifier: Apache-2.0
// LibTorch, the CUDA toolkit and the limits of the process, as found in made-up folders.
#include "probe/software.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/error.h"
#include "fake_roots.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVersionPy =
    "from typing import Optional\n\n__all__ = ['__version__', 'cuda']\n__version__ = "
    "'2.9.1+cu130'\n"
    "debug = False\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n";

TEST(SoftwareTest, BuiltWithoutTorchIsAnEmptyFolder) {
    TorchFacts torch = probe_torch("");
    EXPECT_FALSE(torch.found);
    EXPECT_TRUE(torch.folder.empty());
}

TEST(SoftwareTest, TorchThatWasRemovedIsNotFound) {
    TemporaryFolder site;
    TorchFacts torch = probe_torch(site.path());
    EXPECT_FALSE(torch.found);
    EXPECT_EQ(torch.folder, site.path());
    EXPECT_EQ(torch.version, std::nullopt);
}

TEST(SoftwareTest, TorchIsReadyForAGpuOnlyWithItsLibraries) {
    TemporaryFolder site;
    site.file("torch/lib/libtorch_cpu.so", "");
    site.file("torch/version.py", kVersionPy);
    TorchFacts torch = probe_torch(site.path());
    EXPECT_TRUE(torch.found);
    EXPECT_EQ(torch.version, "2.9.1+cu130");
    EXPECT_EQ(torch.cuda_version, "13.0");
    EXPECT_FALSE(torch.gpu_ready);
    site.file("torch/lib/libtorch_cuda.so", "");
    site.file("nvidia/cu13/lib/libcudart.so.13", "");
    EXPECT_FALSE(probe_torch(site.path()).gpu_ready);
    site.file("nvidia/cu13/lib/libcublas.so.13", "");
    EXPECT_TRUE(probe_torch(site.path()).gpu_ready);
}

TEST(SoftwareTest, CpuBuildOfTorchHasNoCudaVersion) {
    TemporaryFolder site;
    site.file("torch/lib/libtorch_cpu.so", "");
    site.file("torch/version.py", "__version__ = '2.9.1+cpu'\ncuda: Optional[str] = None\n");
    EXPECT_EQ(probe_torch(site.path()).version, "2.9.1+cpu");
    EXPECT_EQ(probe_torch(site.path()).cuda_version, std::nullopt);
    site.file("torch/version.py", "__version__ = 'broken\n");
    EXPECT_EQ(probe_torch(site.path()).version, std::nullopt);
}

TEST(SoftwareTest, AnotherMinorVersionOfTorchIsRefused) {
    TemporaryFolder torch;
    EXPECT_NO_THROW(refuse_other_torch(torch.path(), "2.15"));  // it does not say
    for (const char* same : {"2.15.0", "2.15.3+cu130", "2.15.0a0+git1234"}) {
        torch.file("version.py", fmt::format("__version__ = '{}'\n", same));
        EXPECT_NO_THROW(refuse_other_torch(torch.path(), "2.15")) << same;
    }
    for (const char* other : {"2.11.0+cu130", "2.1.5", "2.150.0", "3.15.0", "1.12.1", "unknown"}) {
        torch.file("version.py", fmt::format("__version__ = '{}'\n", other));
        EXPECT_THROW(refuse_other_torch(torch.path(), "2.15"), MachineError) << other;
    }
    torch.file("version.py", kVersionPy);
    try {
        refuse_other_torch(torch.path(), "2.15");
        FAIL() << "2.9 was taken for 2.15";
    } catch (const MachineError& error) {
        EXPECT_EQ(error.what(),
                  fmt::format(
                      "error: {}: PyTorch 2.9.1+cu130, and this engine was built with 2.15\n"
                      "  expected: PyTorch 2.15: tensors of another version would be read wrongly\n"
                      "  fix:      pip install \"torch==2.15.*\", or the saturate-gpu-engine for "
                      "PyTorch 2.9",
                      torch.path().string()));
    }
}

TEST(SoftwareTest, FirstToolkitWithACompilerIsTaken) {
    TemporaryFolder folder;
    fs::path places[] = {"", folder.path() / "none", folder.path() / "new", folder.path() / "old"};
    EXPECT_FALSE(probe_toolkit(places));
    folder.file("old/bin/nvcc", "");
    folder.file("old/version.txt", "CUDA Version 10.2.89\n");
    EXPECT_EQ(probe_toolkit(places)->version, "10.2.89");
    folder.file("new/bin/nvcc", "");
    EXPECT_EQ(probe_toolkit(places)->folder, folder.path() / "new");
    EXPECT_EQ(probe_toolkit(places)->version, std::nullopt);
    folder.file("new/include/cuda.h", "/* x */\n#define CUDA_VERSION 13010\n");
    EXPECT_EQ(probe_toolkit(places)->version, "13.1");
    folder.file("new/version.json", R"({"cuda": {"name": "CUDA SDK", "version": "12.4.1"}})");
    EXPECT_EQ(probe_toolkit(places)->version, "12.4.1");
    folder.file("new/version.json", R"({"cuda": )");
    EXPECT_EQ(probe_toolkit(places)->version, std::nullopt);
}

TEST(LimitsTest, OpenFilesAreTheLimitOfThisProcessAndOfTheKernel) {
    struct rlimit limit {};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    FakeRoots fake;
    fake.with("proc/sys/fs/nr_open", "17\n");
    EXPECT_EQ(probe_open_files(fake.roots()), 17u);
    fake.with("proc/sys/fs/nr_open", "garbage");
    if (limit.rlim_cur == RLIM_INFINITY) {
        EXPECT_EQ(probe_open_files(fake.roots()), std::nullopt);
    } else {
        EXPECT_EQ(probe_open_files(fake.roots()), limit.rlim_cur);
    }
}

TEST(LimitsTest, WithoutShmItsSizeIsAbsent) {
    FakeRoots fake;
    EXPECT_EQ(probe_shm(fake.roots()), std::nullopt);
    fs::create_directory(fake.roots().dev / "shm");
    EXPECT_GT(probe_shm(fake.roots()).value_or(0), 0u);
}

}  // namespace
}  // namespace saturate
