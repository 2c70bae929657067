// SPDX-License-Identifier: Apache-2.0
#include "remedies/advise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saturate {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Target with_gpu(const std::string& name, int cores = 16) {
    Target target;
    target.gpu = match_gpu(name, std::nullopt, std::nullopt)->facts;
    target.cores = cores;
    return target;
}

Target cpu(int cores, bool has_bf16 = false) {
    Target target;
    target.cores = cores;
    target.cpu_has_bf16 = has_bf16;
    return target;
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

Result optimise(const std::string& text, const Target& target, Level level = Level::training,
                const std::string& file = "c.yaml") {
    Document document = Document::parse(text, file);
    Result result;
    result.advice = advise(document, Settings::read(document), target, level);
    std::vector<Edit> edits;
    for (const Change& change : result.advice.changes) edits.push_back(change.edit);
    result.text = apply_edits(document, edits);
    return result;
}

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
    Target target = with_gpu("RTX 3090", 16);
    target.gpus = 4;
    EXPECT_EQ(optimise("num_workers: 8\n", target).after("num_workers"), "2");
}

TEST(AdviseTest, TakesThePrecisionThatTheCardHas) {
    EXPECT_EQ(optimise("precision: none\n", with_gpu("RTX 4090")).after("precision"), "bf16");
    EXPECT_EQ(optimise("precision: none\n", with_gpu("T4")).after("precision"), "fp16");
    EXPECT_EQ(optimise("precision: bf16\n", with_gpu("T4")).after("precision"), "fp16");
    EXPECT_EQ(optimise("precision: bf16\n", with_gpu("GTX 1080")).after("precision"), "none");
    EXPECT_EQ(optimise("precision: fp16\n", with_gpu("A100")).after("precision"), "");
    EXPECT_EQ(optimise("amp: true\n", cpu(8)).after("amp"), "none");
    EXPECT_EQ(optimise("amp: off\n", cpu(8, true)).after("amp"), "bf16");
    EXPECT_THAT(optimise("precision: bf16\n", with_gpu("T4")).warnings(),
                HasSubstr("bf16 is emulated on T4"));
}

TEST(AdviseTest, NamesATruthValueThatIsReadAsAWord) {
    Result result = optimise("amp: true\n", with_gpu("RTX 4090"));
    EXPECT_EQ(result.after("amp"), "bf16");
    EXPECT_THAT(result.warnings(), HasSubstr("never turns mixed precision on"));
}

TEST(AdviseTest, WritesPrecisionAsEachFrameworkDoes) {
    Target target = with_gpu("A100");
    EXPECT_THAT(optimise("output_dir: o\nper_device_train_batch_size: 8\nfp16: true\nbf16: true\n",
                         with_gpu("T4"))
                    .text,
                HasSubstr("bf16: false"));
    EXPECT_THAT(
        optimise("output_dir: o\nper_device_train_batch_size: 8\nlogging_steps: 10\n", target).text,
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
                         "{\"stage\": 2},\n  \"fp16\": {\"enabled\": false}\n}\n",
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
    EXPECT_EQ(optimise(text + "lr: 1e-3\n", with_gpu("A100")).after("lr"), "2.0e-3");
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
                HasSubstr("torch refuses it while num_workers is 0"));
    EXPECT_THAT(optimise("tf32: true\n", with_gpu("V100")).warnings(), HasSubstr("has no effect"));
    EXPECT_THAT(optimise("batch_size: 64\ndataset_size: 50\n", with_gpu("A100")).warnings(),
                HasSubstr("less than one step an epoch"));
    EXPECT_THAT(
        optimise("cudnn_benchmark: true\ndeterministic: true\n", with_gpu("A100")).warnings(),
        HasSubstr("exclude each other"));
    EXPECT_THAT(optimise("lr: 1e-4\n", with_gpu("A100")).warnings(),
                HasSubstr("PyYAML reads 1e-4 as a word"));
    EXPECT_THAT(optimise("compile: true\n", with_gpu("GTX 1080")).warnings(),
                HasSubstr("needs capability 7.0"));
}

TEST(AdviseTest, AddsMissingKeysWhereTheirLikeStand) {
    EXPECT_EQ(optimise("data:\n  num_workers: 8  # eight\n  root: x\n\nother: 1\n",
                       with_gpu("A100"), Level::safe)
                  .text,
              "data:\n"
              "  num_workers: 8  # eight\n"
              "  prefetch_factor: 4  # saturate: a slow sample does not empty the queue\n"
              "  persistent_workers: true  # saturate: workers are not started anew every epoch\n"
              "  pin_memory: true  # saturate: page-locked batches are copied by the GPU itself\n"
              "  non_blocking: true  # saturate: the host goes on while a pinned batch is copied\n"
              "  set_to_none: true  # saturate: no kernels that only write zeros\n"
              "  root: x\n\nother: 1\nlog_interval: 50  # saturate: reading the loss makes the "
              "host wait for the GPU\n");
}

TEST(AdviseTest, HasNothingToSayTheSecondTime) {
    for (const char* text :
         {kPlain, kSequence, "amp: true\nnum_workers: 99\npin_memory: false\n"}) {
        Result first = optimise(text, with_gpu("RTX 4090"));
        Document again = Document::parse(first.text, "c.yaml");
        for (const Change& change :
             advise(again, Settings::read(again), with_gpu("RTX 4090"), Level::training).changes) {
            // The batch may go on growing, four times at most each time, and the rate with it.
            EXPECT_TRUE(change.setting == Setting::batch_size ||
                        change.setting == Setting::learning_rate)
                << path_text(change.edit.path);
        }
    }
}

}  // namespace
}  // namespace saturate
