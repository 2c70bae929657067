// SPDX-License-Identifier: Apache-2.0
// The GPU table: that its rows are plausible, and that names find their card and no other.
#include "probe/gpu_table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/csv.h"
#include "base/file.h"

namespace saturate {
namespace {

constexpr std::uint64_t kGiB = 1024ull * 1024 * 1024;
constexpr std::uint64_t kMiB = 1024ull * 1024;

std::string matched(std::string_view name) {
    auto match = match_gpu(name);
    return match ? match->facts.name : "-";
}

std::string how(std::string_view name) {
    auto match = match_gpu(name);
    return match ? match->how : "-";
}

TEST(GpuTableTest, HoldsEveryRowOfTheFile) {
    std::string text = read_file(SATURATE_SOURCE_DIR "/src/probe/gpus.csv", 1 << 20, "the table");
    std::vector<CsvRow> rows = parse_csv(text, "gpus.csv");
    ASSERT_EQ(gpu_table().size(), rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(gpu_table()[i].name, rows[i]["name"]);
        EXPECT_FALSE(rows[i]["spec_source"].empty()) << rows[i]["name"];
        EXPECT_FALSE(rows[i]["rate_source"].empty()) << rows[i]["name"];
        EXPECT_EQ(gpu_table()[i].note, rows[i]["note"]);
    }
}

TEST(GpuTableTest, RatesArePlausible) {
    for (const GpuFacts& gpu : gpu_table()) {
        SCOPED_TRACE(gpu.name);
        EXPECT_GE(gpu.memory_bytes, 4 * kGiB);
        EXPECT_LE(gpu.memory_bytes, 288 * kGiB);
        EXPECT_GE(gpu.bandwidth_gbs, 150);
        EXPECT_LE(gpu.bandwidth_gbs, 8000);
        EXPECT_GE(gpu.tdp_watts, 45);
        EXPECT_LE(gpu.tdp_watts, 1400);
        EXPECT_GE(gpu.sm_count, 16);
        EXPECT_GT(gpu.fp32_tflops, 5);
        // Tensor cores are there to be faster, and each narrower type is at least as fast.
        double tf32 = gpu.tf32_tflops.value_or(gpu.fp32_tflops);
        double fp16 = gpu.fp16_tflops.value_or(2 * tf32);
        EXPECT_GE(tf32, gpu.fp32_tflops);
        EXPECT_GT(fp16, tf32);
        EXPECT_EQ(gpu.bf16_tflops.value_or(fp16), fp16);
        EXPECT_GT(gpu.fp8_tflops.value_or(2 * fp16), fp16);
    }
}

// Databases list the rate of fp64 for these, half of it.
TEST(GpuTableTest, Fp32OfInstinctCardsIsThatOfTheirVectors) {
    int seen = 0;
    for (const GpuFacts& gpu : gpu_table()) {
        double matrix_over_vector = gpu.arch == "CDNA 3.0" ? 8 : gpu.arch == "CDNA 4.0" ? 16 : 0;
        if (matrix_over_vector == 0) continue;
        SCOPED_TRACE(gpu.name);
        EXPECT_NEAR(*gpu.fp16_tflops / gpu.fp32_tflops, matrix_over_vector, 0.01);
        ++seen;
    }
    EXPECT_EQ(seen, 5);
}

TEST(GpuTableTest, PrecisionFollowsFromWhatTheCardHas) {
    for (const GpuFacts& gpu : gpu_table()) {
        SCOPED_TRACE(gpu.name);
        EXPECT_EQ(gpu.has_bf16, gpu.bf16_tflops.has_value());
        EXPECT_EQ(gpu.has_tf32, gpu.tf32_tflops.has_value());
        EXPECT_EQ(gpu.has_bf16, gpu.best_precision == Precision::bf16);
        EXPECT_EQ(gpu.needs_grad_scaler, gpu.best_precision == Precision::fp16);
        EXPECT_EQ(gpu.fp16_tflops.has_value(), gpu.best_precision != Precision::fp32);
        if (!gpu.capability) continue;
        EXPECT_EQ(gpu.has_bf16, gpu.capability->major >= 8);
        EXPECT_EQ(gpu.fp8_tflops.has_value(), *gpu.capability >= (Capability{8, 9}));
    }
}

TEST(GpuTableTest, EveryNameOfTheTableFindsItsOwnRow) {
    for (const GpuFacts& gpu : gpu_table()) {
        auto match = match_gpu(gpu.name, std::nullopt, gpu.memory_bytes);
        ASSERT_TRUE(match) << gpu.name;
        EXPECT_EQ(match->facts.name, gpu.name);
        EXPECT_EQ(match->how, "by name");
    }
}

struct Named {
    std::string_view name;
    std::string_view card;
};

TEST(GpuTableTest, NamesOfTheDriverAreMatchedExactly) {
    constexpr Named kNames[] = {
        {"NVIDIA GeForce RTX 4090", "RTX 4090"},
        {"GeForce RTX 3090", "RTX 3090"},
        {"NVIDIA A100-SXM4-80GB", "A100 80GB SXM4"},
        {"NVIDIA A100-SXM4-40GB", "A100 40GB SXM4"},
        {"A100-SXM4-40GB", "A100 40GB SXM4"},
        {"NVIDIA A100 80GB PCIe", "A100 80GB PCIe"},
        {"Tesla V100-SXM2-16GB", "V100 SXM2"},
        {"Tesla V100-SXM2-32GB", "V100 SXM2"},
        {"Tesla V100-SXM3-32GB", "V100 SXM2"},
        {"Tesla V100-PCIE-16GB", "V100 PCIe"},
        {"Tesla V100-PCIE-32GB", "V100 PCIe"},
        {"NVIDIA H100 80GB HBM3", "H100 SXM5"},
        {"NVIDIA H100 PCIe", "H100 PCIe"},
        {"NVIDIA H100 NVL", "H100 NVL"},
        {"NVIDIA B200", "B200"},
        {"NVIDIA L40S", "L40S"},
        {"NVIDIA L4", "L4"},
        {"NVIDIA RTX A6000", "RTX A6000"},
        {"NVIDIA A40", "A40"},
        {"NVIDIA A10", "A10"},
        {"Tesla T4", "T4"},
        {"NVIDIA GeForce GTX 1080", "GTX 1080"},
        {"NVIDIA GeForce GTX 1080 Ti", "GTX 1080 Ti"},
        {"NVIDIA GeForce RTX 2080", "RTX 2080"},
        {"NVIDIA GeForce RTX 2080 Ti", "RTX 2080 Ti"},
        {"AMD Instinct MI300X", "MI300X"},
        {"AMD Instinct MI250X", "MI250X"},
        {"AMD Instinct MI355X", "MI355X"},
        {"NVIDIA GeForce RTX 3060 Laptop GPU", "RTX 3060 Laptop"},
        {"NVIDIA GeForce RTX 3090 Ti", "RTX 3090 Ti"},
        {"NVIDIA GeForce RTX 4070 Ti SUPER", "RTX 4070 Ti SUPER"},
        {"NVIDIA GeForce RTX 4090 D", "RTX 4090 D"},
        {"NVIDIA GeForce RTX 4090 Laptop GPU", "RTX 4090 Laptop"},
        {"NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"},
        {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000 Blackwell"},
        {"Quadro RTX 6000", "Quadro RTX 6000"},
        {"NVIDIA A100-PCIE-40GB", "A100 40GB PCIe"},
        {"NVIDIA A800-SXM4-80GB", "A800 80GB"},
        {"NVIDIA A30", "A30"},
        {"NVIDIA L40", "L40"},
        {"NVIDIA H200 NVL", "H200 NVL"},
        {"NVIDIA GB200", "GB200"},
    };
    for (const Named& named : kNames) {
        EXPECT_EQ(matched(named.name), named.card) << named.name;
        EXPECT_EQ(how(named.name), "by name") << named.name;
    }
}

TEST(GpuTableTest, WhatUsersTypeIsUnderstood) {
    constexpr Named kNames[] = {
        {"rtx4090", "RTX 4090"},
        {"4090", "RTX 4090"},
        {"RTX 4090", "RTX 4090"},
        {"rtx-4090", "RTX 4090"},
        {"RTX_4090", "RTX 4090"},
        {"geforce rtx 4090", "RTX 4090"},
        {" 4090 ", "RTX 4090"},
        {"nvidia 4090 24gb", "RTX 4090"},
        {"2080ti", "RTX 2080 Ti"},
        {"gtx1080ti", "GTX 1080 Ti"},
        {"a6000", "RTX A6000"},
        {"rtxa6000", "RTX A6000"},
        {"h100sxm5", "H100 SXM5"},
        {"H100-SXM", "H100 SXM5"},
        {"h100-pcie", "H100 PCIe"},
        {"h100nvl", "H100 NVL"},
        {"RTX 3070 Mobile", "RTX 3070 Laptop"},
        {"rtx4060laptop", "RTX 4060 Laptop"},
        {"a100 80 gb pcie", "A100 80GB PCIe"},
        {"A100-40G-PCIe", "A100 40GB PCIe"},
        {"mi300x", "MI300X"},
        {"l40s", "L40S"},
        {"t4", "T4"},
    };
    for (const Named& named : kNames) {
        EXPECT_EQ(matched(named.name), named.card) << named.name;
        EXPECT_EQ(how(named.name), "by name") << named.name;
    }
}

TEST(GpuTableTest, AmbiguousNamesTakeTheLeastMemoryAndSayWhich) {
    EXPECT_EQ(matched("a100"), "A100 40GB SXM4");
    EXPECT_EQ(how("a100"),
              "by name: \"a100\" may be A100 40GB SXM4, A100 40GB PCIe, A100 80GB SXM4, A100 80GB "
              "PCIe; treated as A100 40GB SXM4");
    EXPECT_EQ(
        how("a100-80gb"),
        "by name: \"a100-80gb\" may be A100 80GB SXM4, A100 80GB PCIe; treated as A100 80GB SXM4");
    EXPECT_EQ(how("h100"),
              "by name: \"h100\" may be H100 SXM5, H100 PCIe, H100 NVL; treated as H100 SXM5");
    EXPECT_EQ(how("V100"),
              "by name: \"V100\" may be V100 SXM2 16 GB, V100 PCIe 16 GB, V100 SXM2 32 GB, V100 "
              "PCIe 32 GB; treated as V100 SXM2 16 GB");
    EXPECT_EQ(match_gpu("V100")->facts.memory_bytes, 16 * kGiB);
}

TEST(GpuTableTest, AVariantTheTableLacksIsSaid) {
    auto match = match_gpu("NVIDIA H100 PCIe", Capability{9, 0}, 94 * kGiB);
    EXPECT_EQ(match->facts.name, "H100 NVL");
    EXPECT_EQ(match->how, "by name, as H100 NVL: the table has no other of that size");
    match = match_gpu("NVIDIA GeForce RTX 3090", Capability{8, 6}, 20480 * kMiB);
    EXPECT_EQ(match->facts.name, "RTX 3090");
    EXPECT_EQ(match->facts.memory_bytes, 20480 * kMiB);
    EXPECT_EQ(match->how, "by name, with 20 GB where the table has 24 GB");
    match = match_gpu("NVIDIA A10G", Capability{8, 6}, 23028 * kMiB);
    EXPECT_EQ(match->facts.name, "A10");
    EXPECT_EQ(match->how, "by name, using the rates of A10");
}

TEST(GpuTableTest, MemoryOfTheMachineReplacesTheTables) {
    EXPECT_EQ(match_gpu("Tesla T4", Capability{7, 5}, 15360 * kMiB)->facts.memory_bytes,
              15360 * kMiB);
    EXPECT_EQ(match_gpu("Tesla T4", Capability{7, 5}, 15360 * kMiB)->how, "by name");
    EXPECT_EQ(match_gpu("a100", std::nullopt, 80 * kGiB)->facts.name, "A100 80GB SXM4");
    EXPECT_EQ(match_gpu("Tesla V100-SXM2-16GB")->facts.memory_bytes, 16 * kGiB);
    EXPECT_EQ(match_gpu("4090", std::nullopt, 0)->facts.memory_bytes, 24 * kGiB);
    // Cards of one name that differ in more than their memory are told apart by it.
    EXPECT_EQ(match_gpu("NVIDIA GeForce RTX 3080", Capability{8, 6}, 12288 * kMiB)->facts.name,
              "RTX 3080 12GB");
    EXPECT_EQ(match_gpu("NVIDIA GeForce RTX 3060", Capability{8, 6}, 12288 * kMiB)->how, "by name");
    EXPECT_EQ(match_gpu("NVIDIA GeForce RTX 5060 Ti", Capability{12, 0}, 16311 * kMiB)->how,
              "by name");
}

struct New {
    std::string_view name;
    Capability capability;
    std::uint64_t mib;
    std::string_view how;
};

TEST(GpuTableTest, NewNamesFallToCapabilityAndMemory) {
    constexpr New kCards[] = {
        {"NVIDIA GeForce RTX 4090 Ti",
         {8, 9},
         24564,
         "new name: treated as RTX 4090, going by capability 8.9 and 24 GB"},
        {"NVIDIA GeForce RTX 5080 SUPER",
         {12, 0},
         24564,
         "new name: treated as RTX 5090, going by capability 12.0 and 24 GB"},
        {"NVIDIA RTX 2000 Ada Generation",
         {8, 9},
         16380,
         "new name: treated as RTX 4060 Ti, going by capability 8.9 and 16 GB"},
        {"NVIDIA A40-48Q",
         {8, 6},
         49152,
         "new name: treated as A40, going by capability 8.6 and 48 GB"},
        {"NVIDIA GB300",
         {10, 3},
         284208,
         "new name: treated as GB200, going by capability 10.3 (nearest in the table: 10.0) and "
         "278 GB"},
        {"NVIDIA Graphics Device",
         {9, 0},
         81559,
         "new name: treated as H100 SXM5, going by capability 9.0 and 80 GB"},
        {"", {9, 0}, 81559, "no name: treated as H100 SXM5, going by capability 9.0 and 80 GB"},
    };
    for (const New& card : kCards) {
        auto match = match_gpu(card.name, card.capability, card.mib * kMiB);
        ASSERT_TRUE(match) << card.name;
        EXPECT_EQ(match->kind, GpuMatchKind::capability) << card.name;
        EXPECT_EQ(match->how, card.how);
        EXPECT_EQ(match->facts.memory_bytes, card.mib * kMiB);
    }
    EXPECT_EQ(match_gpu("NVIDIA RTX 6000 Ada Generation", Capability{8, 9}, std::nullopt)->how,
              "by name");
}

TEST(GpuTableTest, WhatFitsNothingIsNothing) {
    for (std::string_view name :
         {"", " ", "cpu", "rtx", "nvidia", "80gb", "4090 Ti", "a1000", "h10", "V100S",
          "4090 99999999999999999999gb", "\xff\xfe", "显卡"}) {
        EXPECT_EQ(matched(name), "-") << name;
    }
    EXPECT_FALSE(match_gpu("GeForce GTX 980", Capability{5, 2}, 4 * kGiB));
    EXPECT_FALSE(match_gpu("NVIDIA Z1", Capability{99, 0}, 512 * kGiB));
}

TEST(GpuTableTest, NearNamesAreOffered) {
    using testing::ElementsAre;
    EXPECT_THAT(near_gpu_names("RTX 4090 Ti"),
                ElementsAre("RTX 4090", "RTX 4090 D", "RTX 4090 Laptop"));
    EXPECT_THAT(near_gpu_names("RTX 4091"), ElementsAre("RTX 4090"));
    EXPECT_THAT(near_gpu_names("a100x"), ElementsAre("A100 40GB PCIe", "A100 40GB SXM4",
                                                     "A100 80GB PCIe", "A100 80GB SXM4"));
    EXPECT_THAT(near_gpu_names("2080 max"),
                ElementsAre("RTX 2080", "RTX 2080 SUPER", "RTX 2080 Ti"));
    EXPECT_THAT(near_gpu_names("toaster"), ElementsAre());
    EXPECT_THAT(near_gpu_names(""), ElementsAre());
}

}  // namespace
}  // namespace saturate
