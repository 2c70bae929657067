// SPDX-License-Identifier: Apache-2.0
#include "remedies/advise.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saturate {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Facts with_gpu(const std::string& name, int cores = 16) {
    CpuFacts cpu;
    cpu.cores_usable = cores;
    return machine_facts(cpu, {}, match_gpu(name)->facts, Level::training);
}

Facts cpu(int cores, bool has_bf16 = false) {
    CpuFacts cpu;
    cpu.cores_usable = cores;
    Facts facts = machine_facts(cpu, {}, std::nullopt, Level::training);
    facts.has_bf16 = has_bf16;
    return facts;
}

struct Result {
    Advice advice;
    std::string text;
    [[nodiscard]] std::string after(const std::string& key) const {
        for (const Change& change : advice.changes) {
            if (path_text(change.edit.path) == key)
                return change.edit.remove ? "(removed)" : change.after;
        }
        return "";
    }
    [[nodiscard]] std::string warnings() const {
        std::string out;
        for (const Warning& warning : advice.warnings) out += warning.what + "\n";
        return out;
    }
};

Result optimise(const std::string& text, Facts facts, Level level = Level::training,
                const std::string& file = "c.yaml", const KeyReader& reader = {}) {
    Document document = Document::parse(text, file);
    Result result;
    facts.level = level;
    result.advice = advise(document, Settings::read(document), facts, reader);
    result.text = apply_changes(document, result.advice);
    return result;
}

// A program that is seen to read every key.
std::string everybody(const KeyPath&) { return "train.py:1"; }

const char* kPlain = "batch_size: 16\nnum_workers: 0\nlr: 0.1\n";

TEST(AdviseTest, RaisesTooFewWorkersAndLowersTooMany) {
    EXPECT_EQ(optimise("num_workers: 0\n", with_gpu("RTX 4090", 16)).after("num_workers"), "8");
    EXPECT_EQ(optimise("num_workers: 28\n", with_gpu("RTX 4090", 16)).after("num_workers"), "8");
    EXPECT_EQ(optimise("num_workers: 12\n", with_gpu("RTX 4090", 16)).after("num_workers"), "");
    EXPECT_EQ(optimise("num_workers: 4\n", with_gpu("RTX 4090", 2)).after("num_workers"), "1");
    EXPECT_EQ(optimise("num_workers: 8\n", cpu(4)).after("num_workers"), "1");
    EXPECT_THAT(optimise("num_workers: 28\n", with_gpu("RTX 4090", 16)).warnings(),
                HasSubstr("28 workers share 16 cores"));
}

TEST(AdviseTest, DividesTheCoresAmongGpuProcesses) {
    Facts target = with_gpu("RTX 3090", 16);
    target.processes = 4;
    EXPECT_EQ(optimise("num_workers: 8\n", target).after("num_workers"), "2");
}

TEST(AdviseTest, TakesThePrecisionThatTheCardHas) {
    EXPECT_EQ(optimise("precision: none\n", with_gpu("RTX 4090")).after("precision"), "bf16");
    EXPECT_EQ(optimise("precision: none\n", with_gpu("T4")).after("precision"), "fp16");
    EXPECT_EQ(optimise("precision: bf16\n", with_gpu("T4")).after("precision"), "fp16");
    EXPECT_EQ(optimise("precision: bf16\n", with_gpu("GTX 1080")).after("precision"), "none");
    EXPECT_EQ(optimise("precision: fp16\n", with_gpu("A100")).after("precision"), "");
    EXPECT_EQ(optimise("amp: true\n", cpu(8)).after("amp"), "false");
    EXPECT_EQ(optimise("amp: off\n", cpu(8, true)).after("amp"), "on");
    EXPECT_THAT(optimise("precision: bf16\n", with_gpu("T4")).warnings(),
                HasSubstr("bf16 is emulated on T4"));
}

// A program that reads a boolean crashes on a word, or takes it for true.
TEST(AdviseTest, AValueKeepsItsType) {
    Facts a100 = with_gpu("A100");
    EXPECT_EQ(optimise("amp: false\n", a100).text.substr(0, 9), "amp: true");
    EXPECT_EQ(optimise("amp: False\n", a100).after("amp"), "True");
    EXPECT_EQ(optimise("amp: NO\n", a100).after("amp"), "YES");
    EXPECT_EQ(optimise("amp: true\n", a100).after("amp"), "");
    EXPECT_EQ(optimise("amp: \"false\"\n", a100).after("amp"), "\"bf16\"");
    EXPECT_EQ(optimise("precision: 32\nlr: 0.1\n", a100).after("precision"), "");
    EXPECT_EQ(optimise("pin_memory: 0\n", a100).after("pin_memory"), "1");
    EXPECT_EQ(optimise("num_workers: \"0\"\n", a100).after("num_workers"), "\"8\"");
    EXPECT_EQ(optimise("{\"amp\": false}\n", a100, Level::training, "c.json").after("amp"), "true");
    EXPECT_EQ(optimise("amp = \"none\"\n", a100, Level::training, "c.toml").after("amp"),
              "\"bf16\"");
    // PyYAML reads 1e-3 as a word, 1.0e-3 as a number and 1 as a whole number.
    const std::string start = "job: sequence\nhidden_size: 64\nbatch_size: 128\n";
    EXPECT_EQ(optimise(start + "optimizer: sgd\nlr: 1e-3\n", a100).after("lr"), "4e-3");
    EXPECT_EQ(optimise(start + "lr: 1.5e-3\n", a100).after("lr"), "3.0e-3");
    EXPECT_EQ(optimise(start + "optimizer: sgd\nlr: 1.0\n", a100).after("lr"), "4.0");
    EXPECT_EQ(optimise(start + "optimizer: sgd\nlr: 1\n", a100).after("lr"), "4");
}

TEST(AdviseTest, ListsMapsAndTaggedValuesStay) {
    for (const char* text :
         {"lr: 0.1\nnum_workers: [0, 4]\n", "lr: 0.1\ncompile: {mode: default}\n",
          "lr: 0.1\namp: !!bool \"false\"\n", "lr: 0.1\nnum_workers: !ref <n>\n",
          "lr: 0.1\nnum_workers: ???\n", "lr: 0.1\npin_memory:\n"}) {
        Result result = optimise(text, with_gpu("A100"), Level::training, "c.yaml", everybody);
        std::string second_line = std::string(text).substr(8);
        second_line.pop_back();
        EXPECT_THAT(result.text, HasSubstr(second_line)) << text;
    }
}

TEST(AdviseTest, WeightsInHalfPrecisionAreNotMixedPrecision) {
    for (const char* word : {"bf16-true", "16-true", "64-true"}) {
        std::string text =
            fmt::format("trainer: {{accelerator: gpu, strategy: auto, precision: {}}}\n", word);
        EXPECT_EQ(optimise(text, with_gpu("A100")).text, text);
    }
}

TEST(AdviseTest, APrecisionThatIsNotThatOfTrainingStays) {
    const char* text =
        "max_seq_len: 8\nglobal_train_batch_size: 8\nprecision: amp_bf16\ntrain_loader: "
        "{num_workers: 8}\ncallbacks:\n  hf_checkpointer:\n    precision: float32\n";
    EXPECT_EQ(optimise(text, with_gpu("A100")).text, text);
}

TEST(AdviseTest, WritesPrecisionAsEachFrameworkDoes) {
    Facts target = with_gpu("A100");
    EXPECT_THAT(optimise("output_dir: o\nper_device_train_batch_size: 8\nfp16: false\nbf16: true\n",
                         with_gpu("T4"))
                    .text,
                testing::AllOf(HasSubstr("fp16: true"), HasSubstr("bf16: false")));
    EXPECT_THAT(
        optimise("output_dir: o\nper_device_train_batch_size: 8\nbf16: true\n", with_gpu("T4"))
            .text,
        HasSubstr("\nbf16: true\n"));
    EXPECT_THAT(optimise("output_dir: o\nper_device_train_batch_size: 8\nlogging_steps: 10\n",
                         target, Level::training, "c.yaml", everybody)
                    .text,
                HasSubstr("\nbf16: true  #"));
    EXPECT_THAT(
        optimise("trainer:\n  accelerator: gpu\n  strategy: auto\n  precision: 32-true\n", target)
            .text,
        HasSubstr("  precision: bf16-mixed  #"));
    EXPECT_THAT(optimise("optim_wrapper:\n  type: OptimWrapper\n  accumulative_counts: "
                         "1\ntrain_cfg: {max_epochs: 2}\n",
                         target)
                    .text,
                HasSubstr("  type: AmpOptimWrapper  #"));
    EXPECT_THAT(
        optimise(
            "SOLVER:\n  IMS_PER_BATCH: 16\n  AMP: {ENABLED: False}\nDATALOADER: {NUM_WORKERS: 4}\n",
            target)
            .text,
        HasSubstr("AMP: {ENABLED: True}"));
    EXPECT_THAT(
        optimise(
            "compute_environment: LOCAL_MACHINE\ndistributed_type: 'NO'\nmixed_precision: 'no'\n",
            target)
            .text,
        HasSubstr("mixed_precision: \"bf16\""));
    EXPECT_THAT(optimise("{\n  \"train_micro_batch_size_per_gpu\": 4,\n  \"zero_optimization\": "
                         "{\"stage\": 2},\n  \"bf16\": {\"enabled\": false}\n}\n",
                         target, Level::training, "ds.json")
                    .text,
                HasSubstr("\"bf16\": {\"enabled\": true}"));
    EXPECT_THAT(optimise("[training]\nbatch_size = 8\nmax_norm = 1.0\nmixed_precision_param = "
                         "\"float32\"\n[metrics]\nlog_freq = 1\n[parallelism]\nx = 1\n",
                         target, Level::training, "t.toml")
                    .text,
                HasSubstr("mixed_precision_param = \"bfloat16\""));
}

TEST(AdviseTest, LeavesTheBatchOfAnUnknownModelAlone) {
    Result result = optimise(kPlain, with_gpu("A100"));
    EXPECT_EQ(result.after("batch_size"), "");
    EXPECT_THAT(testing::PrintToString(result.advice.notes), HasSubstr("only a measurement tells"));
}

const char* kSequence = "job: sequence\nhidden_size: 64\nsequence_length: 60\nbatch_size: 128\n";

TEST(AdviseTest, ScalesTheRateByTheOptimizersRule) {
    std::string text = kSequence;
    EXPECT_EQ(optimise(text + "optimizer: sgd\nlr: 0.1\n", with_gpu("A100")).after("lr"), "0.4");
    EXPECT_EQ(optimise(text + "optimizer: adamw\nlr: 3.0e-4\n", with_gpu("A100")).after("lr"),
              "6.0e-4");
    EXPECT_EQ(optimise(text + "lr: 0.1\n", with_gpu("A100")).after("grad_clip"), "1.0");
    EXPECT_EQ(optimise(text + "lr: 1e-3\n", with_gpu("A100")).after("lr"), "2e-3");
    EXPECT_EQ(optimise(text + "lr: 0.1\n", with_gpu("A100"), Level::numerics).after("lr"), "");
}

TEST(AdviseTest, FoldsAccumulationIntoALargerBatchWithoutTouchingTheRate) {
    Result result = optimise(std::string(kSequence) + "gradient_accumulation_steps: 4\nlr: 0.1\n",
                             with_gpu("A100"));
    EXPECT_EQ(result.after("batch_size"), "512");
    EXPECT_EQ(result.after("gradient_accumulation_steps"), "1");
    EXPECT_EQ(result.after("lr"), "");
    EXPECT_EQ(result.after("grad_clip"), "");
}

TEST(AdviseTest, ShrinksABatchThatCannotFitAndKeepsTheEffectiveOne) {
    Result result = optimise(
        "job: restoration\nbase_channels: 256\nnum_blocks: 16\npatch_size: 256\nbatch_size: "
        "64\nlr: 0.1\n",
        with_gpu("GTX 1080"));
    double batch = std::stod(result.after("batch_size")),
           accumulation = std::stod(result.after("gradient_accumulation_steps"));
    EXPECT_LT(batch, 64);
    EXPECT_EQ(batch * accumulation, 64);
    EXPECT_EQ(result.after("lr"), "");
}

// Accumulation is no key that any program reads: without it the batch stays too.
TEST(AdviseTest, NoSmallerBatchWithoutAccumulation) {
    const char* text = "base_channels: 256\nnum_blocks: 16\npatch_size: 256\nbatch_size: 64\n";
    Result result = optimise(text, with_gpu("GTX 1080"));
    EXPECT_EQ(result.after("batch_size"), "");
    EXPECT_EQ(result.after("gradient_accumulation_steps"), "");
    EXPECT_THAT(testing::PrintToString(result.advice.notes),
                HasSubstr("no key for gradient accumulation"));
    EXPECT_EQ(optimise(text, with_gpu("GTX 1080"), Level::training, "c.yaml", everybody)
                  .after("gradient_accumulation_steps"),
              "64");
}

TEST(AdviseTest, GrowsTheModelOnlyWhenAsked) {
    const char* text =
        "job: restoration\nbase_channels: 32\nnum_blocks: 4\npatch_size: 128\nuse_perceptual: "
        "false\nbatch_size: 16\n";
    EXPECT_EQ(optimise(text, with_gpu("RTX 4090")).after("base_channels"), "");
    Result large = optimise(text, with_gpu("RTX 4090"), Level::model);
    EXPECT_EQ(large.after("base_channels"), "128");
    EXPECT_EQ(large.after("num_blocks"), "12");
    EXPECT_EQ(large.after("patch_size"), "256");
    EXPECT_EQ(large.after("use_perceptual"), "true");
    EXPECT_EQ(optimise(text, with_gpu("RTX 4070"), Level::model).after("base_channels"), "96");
    EXPECT_EQ(optimise(text, with_gpu("GTX 1080"), Level::model).after("use_perceptual"), "");
}

TEST(AdviseTest, KeepsWithinTheLevel) {
    for (const Change& change : optimise(kPlain, with_gpu("A100"), Level::safe).advice.changes)
        EXPECT_EQ(change.level, Level::safe);
    for (const Change& change :
         optimise(kSequence, with_gpu("A100"), Level::numerics).advice.changes)
        EXPECT_LE(change.level, Level::numerics);
}

TEST(AdviseTest, ReportsContradictions) {
    EXPECT_THAT(optimise("pin_memory: true\n", cpu(4)).warnings(),
                HasSubstr("there is no GPU to pin memory for"));
    EXPECT_THAT(optimise("num_workers: 0\nprefetch_factor: 2\n", cpu(1)).warnings(),
                HasSubstr("PyTorch refuses it while num_workers is 0"));
    EXPECT_THAT(optimise("tf32: true\n", with_gpu("V100")).warnings(), HasSubstr("has no effect"));
    EXPECT_THAT(optimise("batch_size: 64\ndataset_size: 50\n", with_gpu("A100")).warnings(),
                HasSubstr("less than one step an epoch"));
    EXPECT_THAT(
        optimise("cudnn_benchmark: true\ndeterministic: true\n", with_gpu("A100")).warnings(),
        HasSubstr("cannot be combined"));
    EXPECT_THAT(optimise("lr: 1e-4\n", with_gpu("A100")).warnings(),
                HasSubstr("PyYAML reads 1e-4 as a word"));
    EXPECT_THAT(optimise("compile: true\n", with_gpu("GTX 1080")).warnings(),
                HasSubstr("needs capability 7.0"));
}

TEST(AdviseTest, AddsKeysThatAreReadWhereTheirLikeStand) {
    const char* text = "data:\n  num_workers: 8  # eight\n  root: x\n\nother: 1\n";
    auto reader = [](const KeyPath& path) {
        return path.back() == "prefetch_factor" || path.back() == "log_interval" ? "train.py:7"
                                                                                 : "";
    };
    Result result = optimise(text, with_gpu("A100"), Level::safe, "c.yaml", reader);
    EXPECT_EQ(
        result.text,
        "data:\n"
        "  num_workers: 8  # eight\n"
        "  prefetch_factor: 4  # saturate: a slow sample does not empty the queue; train.py:7 "
        "reads it\n"
        "  root: x\n\nother: 1\nlog_interval: 50  # saturate: reading the loss makes the "
        "host wait for the device; train.py:7 reads it\n");
    std::vector<std::string> shown;
    for (const Addition& addition : result.advice.additions) shown.push_back(addition.key);
    EXPECT_THAT(shown, testing::Contains("data.pin_memory"));
}

TEST(AdviseTest, AddsNothingThatNobodyIsSeenToRead) {
    for (const char* text : {kPlain, "output_dir: o\nper_device_train_batch_size: 8\nlr: 1\n",
                             "trainer: {accelerator: gpu, strategy: auto, max_epochs: 3}\n"}) {
        for (const Change& change : optimise(text, with_gpu("A100")).advice.changes)
            EXPECT_NE(change.before, "") << path_text(change.edit.path);
    }
    EXPECT_FALSE(optimise(kPlain, with_gpu("A100")).advice.additions.empty());
}

TEST(AdviseTest, HasNothingToChangeTheSecondTime) {
    const std::string texts[] = {
        kPlain,
        kSequence,
        std::string(kSequence) + "lr: 0.1\noptimizer: sgd\n",
        "amp: true\nnum_workers: 99\npin_memory: false\n",
        "job: restoration\nbatch_size: 4\nlr: 0.001\n",
        "job: restoration\nbase_channels: 256\nnum_blocks: 16\npatch_size: 256\nbatch_size: 64\n",
        "job: window_cnn\nbatch_size: 8\nlr: 1e-3\nprefetch_factor: 2\nnum_workers: 0\n",
        "job: classifier\nbatch_size: 16\ngradient_accumulation_steps: 4\nlearning_rate: 0.1\n"
        "eval_interval: 1\nlog_interval: 1\nepochs: 50\n"};
    for (const std::string& text : texts) {
        for (Facts facts : {with_gpu("RTX 4090"), with_gpu("GTX 1080"), with_gpu("A100"), cpu(4),
                            cpu(1), cpu(8, true)}) {
            for (Level level : {Level::safe, Level::numerics, Level::training, Level::model}) {
                Result first = optimise(text, facts, level);
                Result second = optimise(first.text, facts, level);
                EXPECT_EQ(second.text, first.text) << text;
            }
        }
    }
}

// persistent_workers: false was measured and estimated, and ended in "there are two changes for".
TEST(AdviseTest, WhatWasMeasuredAndEstimatedIsWrittenOnce) {
    Document document = Document::parse(
        "job: classifier\nnum_workers: 4\npersistent_workers: false\nnon_blocking: false\n"
        "set_to_none: false\n",
        "c.yaml");
    Settings settings = Settings::read(document);
    Advice advice = advise_values(document, settings,
                                  {{Setting::persistent_workers, "true", "measured", ""},
                                   {Setting::non_blocking, "true", "measured", ""},
                                   {Setting::set_to_none, "true", "measured", ""}});
    for (const Change& change : advise(document, settings, with_gpu("A100")).changes)
        advice.changes.push_back(change);
    std::string text = apply_changes(document, advice);
    for (const char* key : {"persistent_workers", "non_blocking", "set_to_none"})
        EXPECT_THAT(text,
                    HasSubstr(fmt::format("\n{}: true  # saturate: was false; measured\n", key)));
}

TEST(AdviseTest, WritesFoundValuesInTheWordsOfTheFile) {
    Document document = Document::parse(
        "output_dir: o\nper_device_train_batch_size: 8\nbf16: false\noptim: adamw_torch\n"
        "logging_steps: 1\n",
        "c.yaml");
    Advice advice = advise_values(document, Settings::read(document),
                                  {{Setting::precision, "bf16", "F18", ""},
                                   {Setting::fused_optimizer, "true", "F13", ""},
                                   {Setting::channels_last, "true", "F19", ""},
                                   {Setting::log_interval, "50", "F06", ""}});
    std::string text = apply_changes(document, advice);
    EXPECT_THAT(text, HasSubstr("\nbf16: true"));
    EXPECT_THAT(text, HasSubstr("\noptim: adamw_torch_fused"));
    EXPECT_THAT(text, HasSubstr("\nlogging_steps: 50"));
    EXPECT_THAT(text, Not(HasSubstr("channels_last")));
    EXPECT_THAT(testing::PrintToString(advice.notes), HasSubstr("channels_last"));
}

}  // namespace
}  // namespace saturate
