// SPDX-License-Identifier: Apache-2.0
// What doctor says of machines that nobody here has.
#include "report/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saturate {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kGiB = 1024 * kMiB;

// A workstation that lacks nothing.
DoctorFacts whole() {
    DoctorFacts facts;
    facts.machine = {.cpu = {.model = "AMD EPYC 9654",
                             .cores_online = 16,
                             .cores_affinity = 16,
                             .cores_usable = 16,
                             .features = {"avx", "avx2", "avx512f", "avx512_bf16"},
                             .features_known = true},
                     .memory = {.total_bytes = 64 * kGiB, .available_bytes = 60 * kGiB},
                     .storage = {.folder = "data",
                                 .free_bytes = 900 * kGiB,
                                 .read_mb_per_second = 2100.4,
                                 .slowest_mb_per_second = 1800,
                                 .fastest_mb_per_second = 2300,
                                 .parts = 9,
                                 .read_bytes = 1536 * kMiB},
                     .shm_bytes = 32 * kGiB,
                     .open_files_limit = 65536,
                     .gpus = {.driver = GpuDriver{.driver_version = "580.65.06",
                                                  .cuda_version = "13.0",
                                                  .gpus = {{.index = 0,
                                                            .name = "NVIDIA GeForce RTX 4090",
                                                            .uuid = "GPU-1",
                                                            .pci_bus_id = "00000000:01:00.0",
                                                            .capability = Capability{8, 9},
                                                            .memory_total_bytes = 24564 * kMiB,
                                                            .memory_used_bytes = 512 * kMiB,
                                                            .mig = false}}}}};
    facts.torch = {.folder = "/opt/torch",
                   .found = true,
                   .version = "2.9.1+cu130",
                   .cuda_version = "13.0",
                   .gpu_ready = true};
    facts.toolkit = ToolkitFacts{.folder = "/usr/local/cuda", .version = "13.0.1"};
    facts.has_cuda_part = true;
    return facts;
}

std::vector<std::string> missing_lines(const DoctorFacts& facts) {
    std::vector<std::string> lines;
    for (const Missing& part : missing_parts(facts)) lines.push_back(part.what + ": " + part.costs);
    return lines;
}

TEST(DoctorTest, AWholeMachineIsATableWithNothingMissing) {
    EXPECT_EQ(doctor_text(whole(), false), R"(Machine
  CPU          AMD EPYC 9654
  cores        16 online, 16 usable
  features     avx avx2 avx512f avx512_bf16
  RAM          64.0 GiB, 60.0 GiB available
  /dev/shm     32.0 GiB
  open files   65536
  data folder  data, 900.0 GiB free
  reads        2100 MB/s (n=9, 1800..2300; one reader, 1.5 GiB)

Software
  driver       580.65.06
  CUDA         up to 13.0 by the driver
  CUDA toolkit 13.0.1 in /usr/local/cuda
  LibTorch     2.9.1+cu130, for CUDA 13.0, in /opt/torch
  CUDA part    built (libsaturate_cuda.so)

GPUs
  GPU 0        NVIDIA GeForce RTX 4090, 24.0 GiB (512.0 MiB used), capability 8.9
    use        bf16
    peak       fp8 330.3, bf16 165.2, fp16 165.2, tf32 82.6, fp32 82.6 TFLOPS dense; 1008 GB/s; 450 W
    matched    by name

Missing
  nothing
)");
}

TEST(DoctorTest, AnEmptyMachineSaysWhatEachPartCosts) {
    DoctorFacts facts;
    facts.machine.storage = {.folder = ".",
                             .unknown_because = "no file of at least 1.0 MiB was found"};
    facts.machine.gpus.absent_because = "libnvidia-ml.so.1 was not found: no NVIDIA driver";
    facts.machine.memory.total_bytes = 8 * kGiB;
    EXPECT_EQ(doctor_text(facts, false), R"(Machine
  CPU          -
  cores        1 online, 1 usable
  features     -
  RAM          8.0 GiB
  /dev/shm     -
  open files   -
  data folder  ., - free
  reads        - (no file of at least 1.0 MiB was found)

Software
  driver       - (libnvidia-ml.so.1 was not found: no NVIDIA driver)
  CUDA         -
  CUDA toolkit -
  LibTorch     built without
  CUDA part    -

GPUs
  none

Missing
  no NVML (libnvidia-ml.so.1 was not found: no NVIDIA driver): the GPU's utilisation cannot be read; only run and train can tell how busy it is
  no GPU: training runs on the CPU; optimize --gpu NAME can still plan for a GPU elsewhere
  no LibTorch in this build: train, selftest and tune --config do not run; in a checkout, ./saturate fetches it when you call one of them; with the wheel, also install saturate-gpu-engine
  no /dev/shm: PyTorch loader workers cannot hand over batches: num_workers 0 only
  read speed of . (no file of at least 1.0 MiB was found): the disk may be too slow for the GPU: doctor --data DIR measures it
)");
}

TEST(DoctorTest, HeadingsAreBoldOnATerminalOnly) {
    EXPECT_THAT(doctor_text(whole(), true), testing::StartsWith("\033[1mMachine\033[0m\n"));
    EXPECT_THAT(doctor_text(whole(), false), testing::Not(testing::HasSubstr("\033")));
}

TEST(DoctorTest, NamesCannotMoveTheCursor) {
    DoctorFacts facts = whole();
    facts.machine.gpus.driver->gpus[0].name = "RTX\033[2J";
    facts.machine.cpu.model = "CPU\r\a";
    EXPECT_THAT(doctor_text(facts, false), testing::Not(testing::ContainsRegex("[\033\r\a]")));
}

TEST(DoctorTest, AContainerWithLimitsSaysWhatTheyCost) {
    DoctorFacts facts = whole();
    facts.machine.cpu.cores_online = 12;
    facts.machine.cpu.cores_affinity = 12;
    facts.machine.cpu.cores_quota = 2.5;
    facts.machine.cpu.cores_usable = 2;
    facts.machine.cpu.features = {"avx", "avx2"};
    facts.machine.memory.limit_bytes = 4 * kGiB;
    facts.machine.shm_bytes = 64 * kMiB;
    facts.machine.open_files_limit = 1024;
    facts.machine.storage.read_mb_per_second = 45;
    facts.machine.storage.free_bytes = kGiB;
    EXPECT_THAT(missing_lines(facts),
                testing::ElementsAre(
                    "10 of 12 cores (cgroup quota of 2.5): of 12 cores, 2 may be used: more "
                    "workers than 2 only wait for each other",
                    "no avx512_bf16, no amx_bf16: bf16 on this CPU is emulated, 4-10 times slower: "
                    "use fp32 there",
                    "60.0 GiB of memory (cgroup limit): the machine has 64.0 GiB, but the job is "
                    "killed at 4.0 GiB: caches and workers must fit into that",
                    "/dev/shm is only 64.0 MiB: PyTorch loader workers run out (bus error) at 1 "
                    "batch of 64 float "
                    "images of 224x224; 2 workers of 2 need 147.0 MiB: docker run --shm-size=1g",
                    "only 1024 open files: many workers or shards end in \"Too many open files\": "
                    "ulimit -n 65536",
                    "space: 1.0 GiB free: checkpoints and records may fill the disk",
                    "storage reads only 45 MB/s: one reader gets 409 images/s of 110 kB at most: "
                    "copy the data to "
                    "a local disk, or cache it"));
    EXPECT_THAT(
        doctor_text(facts, false),
        testing::HasSubstr("  cores        12 online, 2 usable, cgroup quota 2.5\n"
                           "  features     avx avx2\n"
                           "  RAM          64.0 GiB, cgroup limit 4.0 GiB, 60.0 GiB available\n"));
}

TEST(DoctorTest, AShortLookAtTheDiskSaysNothingOfIt) {
    DoctorFacts facts = whole();
    facts.machine.storage.read_mb_per_second = 45;
    EXPECT_THAT(missing_lines(facts), testing::Contains(testing::StartsWith("storage reads only")));
    facts.machine.storage.read_bytes = 512 * 1024;
    EXPECT_THAT(missing_lines(facts),
                testing::Not(testing::Contains(testing::StartsWith("storage reads only"))));
}

TEST(DoctorTest, AffinityIsNamedWhenItIsTheLeast) {
    DoctorFacts facts = whole();
    facts.machine.cpu.cores_affinity = 4;
    facts.machine.cpu.cores_usable = 4;
    EXPECT_THAT(missing_lines(facts),
                testing::ElementsAre("12 of 16 cores (affinity): of 16 cores, 4 may be used: more "
                                     "workers than 4 only wait for each other"));
}

TEST(DoctorTest, ReadingFromMemoryIsSaidAndNotJudged) {
    DoctorFacts facts = whole();
    facts.machine.storage.from_page_cache = true;
    facts.machine.storage.read_mb_per_second = 45;
    EXPECT_THAT(missing_lines(facts), testing::ElementsAre());
    EXPECT_THAT(doctor_text(facts, false),
                testing::HasSubstr(", from memory (page cache or tmpfs), not a disk\n"));
}

TEST(DoctorTest, ArmIsJudgedByItsOwnFeatures) {
    DoctorFacts facts = whole();
    facts.machine.cpu.features = {"asimd", "sve", "bf16"};
    EXPECT_THAT(missing_lines(facts), testing::ElementsAre());
    facts.machine.cpu.features = {"asimd"};
    EXPECT_THAT(missing_lines(facts),
                testing::ElementsAre("no bf16 in the CPU: bf16 on this CPU is emulated, 4-10 times "
                                     "slower: use fp32 there"));
}

TEST(DoctorTest, GpusThatAreSplitLostOrNewAreSaid) {
    DoctorFacts facts = whole();
    std::vector<GpuIdentity>& gpus = facts.machine.gpus.driver->gpus;
    gpus = {{.index = 0,
             .name = "NVIDIA A100-SXM4-40GB",
             .capability = Capability{8, 0},
             .memory_total_bytes = 40 * kGiB,
             .mig = true},
            {.index = 1, .fault = "GPU is lost"},
            {.index = 2,
             .name = "NVIDIA GeForce RTX 4085",
             .capability = Capability{8, 9},
             .memory_total_bytes = 16 * kGiB},
            {.index = 3, .name = "NVIDIA GeForce GTX 980", .capability = Capability{5, 2}},
            {.index = 4, .name = "Tesla T4", .memory_total_bytes = 15 * kGiB}};
    EXPECT_THAT(
        missing_lines(facts),
        testing::ElementsAre(
            "GPU 0 is split into instances (MIG): it reports no utilisation; only run and train "
            "can tell how busy it is",
            "GPU 1: GPU is lost: no job can use it until it is reset; the others are not affected",
            "GPU 2 (\"NVIDIA GeForce RTX 4085\") is not in the GPU table: its peak rates are "
            "guessed from RTX 4060 Ti; its precision is certain",
            "GPU 3 (\"NVIDIA GeForce GTX 980\") is not in the GPU table: its peak rates, MFU and "
            "best precision are unknown",
            testing::StartsWith("GPU 3 has capability 5.2, and CUDA 13 needs 7.5: ")));
    EXPECT_THAT(doctor_text(facts, false), testing::HasSubstr(R"(
GPUs
  GPU 0        NVIDIA A100-SXM4-40GB, 40.0 GiB, capability 8.0, split into instances (MIG)
    use        bf16
    peak       bf16 312, fp16 312, tf32 156, fp32 19.5 TFLOPS dense; 1555 GB/s; 400 W (the whole card, not an instance)
    matched    by name
  GPU 1        -: GPU is lost
  GPU 2        NVIDIA GeForce RTX 4085, 16.0 GiB, capability 8.9
    use        bf16
    peak       fp8 88.2, bf16 44.1, fp16 44.1, tf32 22.1, fp32 22.1 TFLOPS dense; 288 GB/s; 160 W
    matched    new name: treated as RTX 4060 Ti, going by capability 8.9 and 16 GB
  GPU 3        NVIDIA GeForce GTX 980, memory -, capability 5.2
               not in the GPU table: peak rates -
  GPU 4        Tesla T4, 15.0 GiB, capability -
    use        fp16 with a gradient scaler
    peak       fp16 65, fp32 8.1 TFLOPS dense; 320 GB/s; 70 W
    matched    by name
)"));
}

TEST(DoctorTest, SoftwareThatCannotUseTheGpuIsSaid) {
    DoctorFacts facts = whole();
    facts.torch.gpu_ready = false;
    facts.toolkit = std::nullopt;
    EXPECT_THAT(
        missing_lines(facts),
        testing::ElementsAre(
            "LibTorch without its CUDA libraries: there is a GPU, but train would run on the CPU; "
            "tools/bootstrap torch fetches them",
            "no CUDA toolkit (nvcc): you cannot compile your own kernels; nothing else needs it"));
    facts.is_wheel = true;
    EXPECT_THAT(missing_lines(facts).at(0),
                testing::EndsWith("; pip install --force-reinstall torch fetches them"));
    facts = whole();
    facts.machine.gpus.driver->cuda_version = "12.8";
    EXPECT_THAT(
        missing_lines(facts),
        testing::ElementsAre("a driver for CUDA 13 (this one supports 12.8): until it is updated "
                             "train runs on the CPU; run, fix, monitor, diagnose and optimize work "
                             "as usual, also with a PyTorch for an older CUDA"));
    facts.torch = {};  // what would be fetched is for CUDA 13 too
    facts.has_cuda_part = false;
    EXPECT_THAT(missing_lines(facts),
                testing::ElementsAre(testing::StartsWith("no LibTorch in this build: "),
                                     testing::StartsWith("a driver for CUDA 13 ")));
    facts = whole();
    facts.has_cuda_part = false;
    EXPECT_THAT(
        missing_lines(facts),
        testing::ElementsAre("no CUDA part (libsaturate_cuda.so): there is a GPU, but train would "
                             "run on the CPU; tools/build release saturate_cuda builds it"));
    facts = whole();
    facts.torch = {.folder = "/opt/torch"};
    EXPECT_THAT(missing_lines(facts),
                testing::ElementsAre("LibTorch is gone from /opt/torch: train, tune and selftest "
                                     "do not start until tools/bootstrap torch has run"));
    facts = whole();
    facts.machine.gpus.driver->gpus.clear();
    EXPECT_THAT(missing_lines(facts),
                testing::ElementsAre("no GPU: training runs on the CPU; optimize --gpu NAME can "
                                     "still plan for a GPU elsewhere"));
}

// CUDA 13 serves Turing and later.
TEST(DoctorTest, ACardThatCudaNoLongerServesIsOneLine) {
    DoctorFacts facts = whole();
    GpuIdentity& gpu = facts.machine.gpus.driver->gpus[0];
    gpu = {.index = 0,
           .name = "Tesla V100-SXM2-32GB",
           .capability = Capability{7, 0},
           .memory_total_bytes = 32 * kGiB};
    EXPECT_THAT(
        missing_lines(facts),
        testing::ElementsAre(
            "GPU 0 has capability 7.0, and CUDA 13 needs 7.5: train runs on the CPU; run, fix, "
            "monitor, diagnose and optimize work as usual, also with a PyTorch for an older CUDA"));
    facts.torch.cuda_version = "12.8";
    EXPECT_THAT(missing_lines(facts), testing::ElementsAre());
    facts = whole();
    facts.machine.gpus.driver->gpus[0].capability = Capability{7, 5};
    EXPECT_THAT(missing_lines(facts), testing::ElementsAre());
}

TEST(DoctorTest, JsonHoldsTheSameFacts) {
    Json json = doctor_json(whole());
    EXPECT_EQ(json.members()[0].first, "schema");
    EXPECT_EQ(json["schema"].integer(), 1);
    const Json& gpu = json["gpus"].items().at(0);
    EXPECT_EQ(gpu["capability"].string(), "8.9");
    EXPECT_EQ(gpu["memory_total_bytes"].integer(), 24564 * kMiB);
    EXPECT_EQ(gpu["mig"].boolean(), false);
    EXPECT_TRUE(gpu["fault"].is_null());
    EXPECT_EQ(gpu["facts"]["name"].string(), "RTX 4090");
    EXPECT_EQ(gpu["facts"]["matched_by"].string(), "name");
    EXPECT_EQ(gpu["facts"]["precision"].string(), "bf16");
    EXPECT_EQ(gpu["facts"]["bf16_tflops"].number(), 165.2);
    EXPECT_EQ(json["cpu"]["cores_usable"].integer(), 16);
    EXPECT_TRUE(json["cpu"]["cores_quota"].is_null());
    EXPECT_EQ(json["memory"]["limit_bytes"].integer(), 64 * kGiB);
    EXPECT_TRUE(json["memory"]["cgroup_limit_bytes"].is_null());
    EXPECT_EQ(json["nvml"]["present"].boolean(), true);
    EXPECT_EQ(json["nvml"]["driver_version"].string(), "580.65.06");
    EXPECT_EQ(json["cuda"]["driver_serves"].string(), "13.0");
    EXPECT_EQ(json["cuda"]["toolkit_version"].string(), "13.0.1");
    EXPECT_EQ(json["cuda"]["part_built"].boolean(), true);
    EXPECT_EQ(json["torch"]["version"].string(), "2.9.1+cu130");
    EXPECT_TRUE(json["missing"].is_array());
    EXPECT_TRUE(json["missing"].items().empty());
}

TEST(DoctorTest, JsonOfWhatIsUnknownIsNullAndMissingSaysTheCost) {
    DoctorFacts facts = whole();
    facts.machine.gpus = {.absent_because = "no driver"};
    facts.machine.memory.limit_bytes = 4 * kGiB;
    facts.machine.storage = {.folder = ".", .unknown_because = "only empty files were found"};
    facts.torch = {};
    Json json = doctor_json(facts);
    EXPECT_TRUE(json["gpus"].items().empty());
    EXPECT_EQ(json["memory"]["limit_bytes"].integer(), 4 * kGiB);
    EXPECT_EQ(json["nvml"]["present"].boolean(), false);
    EXPECT_EQ(json["nvml"]["absent_because"].string(), "no driver");
    EXPECT_TRUE(json["cuda"]["driver_serves"].is_null());
    EXPECT_EQ(json["torch"]["present"].boolean(), false);
    EXPECT_TRUE(json["storage"]["read_mb_per_second"].is_null());
    EXPECT_TRUE(json["storage"]["read_mb_per_second_low"].is_null());
    EXPECT_EQ(json["missing"].items().at(0)["what"].string(), "no NVML (no driver)");
    EXPECT_EQ(json["missing"].items().at(0)["costs"].string(),
              "the GPU's utilisation cannot be read; only run and train can tell how busy it is");
}

}  // namespace
}  // namespace saturate
