// SPDX-License-Identifier: Apache-2.0
#include "config/settings.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace saturate {
namespace {

Settings read(const std::string& text) { return Settings::read(Document::parse(text, "c.yaml")); }

std::string error_of(const std::string& text) {
    try {
        read(text);
    } catch (const UserError& error) {
        return error.what();
    }
    return "";
}

std::string precision_of(const std::string& text) {
    auto wish = read(text).precision();
    if (!wish) return "unset";
    if (!wish->on) return "off";
    return wish->type ? std::string(precision_name(*wish->type)) : "on";
}

TEST(SettingsTest, ReadsPrecisionAsItIsMeant) {
    EXPECT_EQ(precision_of("amp: true\n"), "on");
    EXPECT_EQ(precision_of("amp: \"true\"\n"), "on");
    EXPECT_EQ(precision_of("precision: bf16\n"), "bf16");
    EXPECT_EQ(precision_of("precision: fp16\n"), "fp16");
    EXPECT_EQ(precision_of("precision: none\n"), "off");
    EXPECT_EQ(precision_of("use_mixed_precision: off\n"), "off");
    EXPECT_EQ(precision_of("batch_size: 2\n"), "unset");
    EXPECT_EQ(
        precision_of("output_dir: o\nper_device_train_batch_size: 1\nfp16: true\nbf16: false\n"),
        "fp16");
    EXPECT_EQ(precision_of("trainer: {accelerator: gpu, strategy: auto, precision: bf16-mixed}\n"),
              "bf16");
    EXPECT_EQ(precision_of("trainer: {accelerator: gpu, strategy: auto, precision: 32-true}\n"),
              "off");
    EXPECT_EQ(precision_of("workers: 4\nopt: sgd\namp: false\namp_dtype: bfloat16\nreprob: 0.2\n"),
              "off");
    EXPECT_EQ(precision_of("workers: 4\nopt: sgd\namp: true\namp_dtype: bfloat16\nreprob: 0.2\n"),
              "bf16");
    EXPECT_EQ(precision_of("max_seq_len: 8\nglobal_train_batch_size: 8\nprecision: amp_bf16\n"),
              "bf16");
    EXPECT_EQ(
        precision_of(
            "optim_wrapper: {type: AmpOptimWrapper, dtype: float16}\ntrain_cfg: {max_epochs: 2}\n"),
        "fp16");
}

TEST(SettingsTest, TellsEveryMistakeWithItsPlace) {
    EXPECT_EQ(error_of("job: tiny_mlp\ntrain:\n  batch_size: -4\n  num_workers: many\n  lr: .nan\n "
                       " pin_memory: "
                       "perhaps\n  amp: fp8x\n"),
              "error: c.yaml:3:15: train.batch_size is \"-4\"\n"
              "  expected: a whole number from 1 to 10000000\n"
              "  fix:      batch_size: 32\n"
              "error: c.yaml:4:16: train.num_workers is \"many\"\n"
              "  expected: a whole number from 0 to 1024\n"
              "  fix:      num_workers: auto\n"
              "error: c.yaml:5:7: train.lr is \".nan\"\n"
              "  expected: a number from 1e-12 to 1000\n"
              "error: c.yaml:6:15: train.pin_memory is \"perhaps\"\n"
              "  expected: true or false\n"
              "  fix:      pin_memory: true\n"
              "error: c.yaml:7:8: train.amp is \"fp8x\"\n"
              "  expected: true, bf16, fp16, none or off\n"
              "  fix:      amp: bf16");
    EXPECT_EQ(error_of("job: x\nbatch_size: 1e300\n"),
              "error: c.yaml:2:13: batch_size is \"1e300\"\n"
              "  expected: a whole number from 1 to 10000000\n"
              "  fix:      batch_size: 32");
    EXPECT_EQ(error_of("job: x\nbatch_size: 3.5\n").substr(0, 45),
              "error: c.yaml:2:13: batch_size is \"3.5\"\n  exp");
    EXPECT_EQ(error_of("job: x\nbatch_size: inf\n").substr(0, 40),
              "error: c.yaml:2:13: batch_size is \"inf\"\n");
}

// In another program's file such a value may mean something.
TEST(SettingsTest, OneOddValueRefusesNoFileOfOthers) {
    for (const char* odd :
         {"save_steps: 0.1\nper_device_train_batch_size: 1\noutput_dir: o", "precision: fp8",
          "num_workers: ???", "batch_size: !ref <x>", "grad_clip: -1", "train_size: 0.8",
          "batch_size: -4", "pin_memory: perhaps", "lr: .nan", "image_size: [a, b]"}) {
        Settings settings = read(std::string(odd) + "\nepochs: 3\n");
        bool has_note = !settings.notes().empty();
        bool all_alone = std::ranges::all_of(settings.values(), [](const Value& value) {
            return value.left_alone || !value.numbers.empty();
        });
        EXPECT_TRUE(has_note || all_alone) << odd;
    }
    EXPECT_EQ(read("train_size: 0.8\n").notes()[0],
              "train_size is \"0.8\": not a whole number from 1 to 10000000000000");
}

TEST(SettingsTest, PutsTheKeysOfSeveralDocumentsTogether) {
    Settings settings = read("batch_size: 8\n---\nbatch_size: 9\nnum_workers: 32\n");
    EXPECT_EQ(settings.number(Setting::batch_size), 8);
    EXPECT_EQ(settings.number(Setting::num_workers), 32);
    EXPECT_EQ(settings.notes()[0],
              "line 2 begins a second document: the keys of all are merged, and the first of each "
              "name counts");
    EXPECT_EQ(error_of("job: sequence\n---\nbatch_size: 9\n").substr(0, 50),
              "error: c.yaml:2:1: a second document begins here\n ");
}

TEST(SettingsTest, ReadsNumbersAsTheUsualReadersDo) {
    auto yaml = [](const std::string& text) {
        return read("batch_size: " + text + "\n").number(Setting::batch_size);
    };
    auto toml = [](const std::string& text) {
        return Settings::read(Document::parse("batch_size = " + text + "\n", "c.toml"))
            .number(Setting::batch_size);
    };
    EXPECT_EQ(yaml("010"), 8);
    EXPECT_EQ(yaml("0x10"), 16);
    EXPECT_EQ(yaml("1_000"), 1000);
    EXPECT_EQ(yaml("1:30"), std::nullopt);
    EXPECT_EQ(yaml("08"), std::nullopt);
    EXPECT_EQ(toml("0x8"), 8);
    EXPECT_EQ(toml("0o10"), 8);
    EXPECT_EQ(toml("1_000"), 1000);
}

TEST(SettingsTest, AManifestIsNoTraining) {
    EXPECT_FALSE(read("apiVersion: v1\nkind: Pod\nspec: {replicas: 2}\n").is_training());
    EXPECT_FALSE(
        read("on: push\njobs: {build: {cache: npm, strategy: {matrix: 1}}}\n").is_training());
    EXPECT_FALSE(read("repos: []\nworkers: 4\n").is_training());
    EXPECT_TRUE(read("num_workers: 4\n").is_training());
    EXPECT_TRUE(read("workers: 4\nbatch: 3\ncompile: true\n").is_training());
    EXPECT_TRUE(read("job: anything\nseed: 1\n").is_training());
}

TEST(SettingsTest, SuggestsForUnknownKeysInOurFilesOnly) {
    EXPECT_EQ(error_of("job: sequence\ntrain:\n  batch_sise: 8\n"),
              "error: c.yaml:3:3: no setting \"batch_sise\"\n"
              "  expected: a name of docs/settings.md\n"
              "  fix:      did you mean batch_size?");
    EXPECT_EQ(error_of("batch_sise: 8\nsome: {thing: 1}\n"), "");
}

// A job of the user's own, or their model out of Python: as much ours as the reference jobs.
TEST(SettingsTest, AnyJobHasEverySettingAndItsTypingErrorsAreTold) {
    for (std::string job : {"torchscript", "spirals", "tiny_mlp"}) {
        std::string start = "job: " + job + "\nbatch_size: 8\n";
        Settings settings = read(start +
                                 "weight_decay: 0.1\nschedule: cosine\nema: 0.9\nthreads: 2\n"
                                 "warmup_steps: 5\nearly_stopping: 3\ncheckpoint_keep: 7\n");
        EXPECT_TRUE(settings.dialect().is_ours()) << job;
        EXPECT_EQ(settings.number(Setting::weight_decay), 0.1) << job;
        EXPECT_EQ(settings.word(Setting::schedule), "cosine") << job;
        EXPECT_EQ(settings.number(Setting::ema), 0.9) << job;
        EXPECT_EQ(settings.number(Setting::threads), 2) << job;
        EXPECT_EQ(settings.number(Setting::warmup_steps), 5) << job;
        EXPECT_EQ(settings.number(Setting::early_stopping), 3) << job;
        EXPECT_EQ(settings.number(Setting::checkpoint_keep), 7) << job;
        EXPECT_NE(error_of(start + "wieght_decay: 0.1\n").find("weight_decay"), std::string::npos);
    }
    // The word in files that are not ours.
    EXPECT_FALSE(read("job: extension\nconfig: {name: x}\nmeta: {a: 1}\n").dialect().is_ours());
    EXPECT_FALSE(read("job: {name: x}\nbatch_size: 8\n").dialect().is_ours());
}

TEST(SettingsTest, LeavesOpenValuesAlone) {
    Settings settings = read(
        "batch_size: auto\nnum_workers: ${oc.env:WORKERS}\nlr: null\nhidden_size: [64, 128]\n");
    EXPECT_TRUE(settings.get(Setting::batch_size)->left_alone);
    EXPECT_TRUE(settings.get(Setting::num_workers)->left_alone);
    EXPECT_TRUE(settings.get(Setting::learning_rate)->left_alone);
    EXPECT_EQ(settings.get(Setting::hidden_size), nullptr);
}

TEST(SettingsTest, LeavesCountsOfTokensAndUnitsAlone) {
    Settings titan =
        read("training:\n  num_tokens_per_microbatch_per_dp_rank: 8192\n  gc_freq: 50\n");
    EXPECT_TRUE(titan.get(Setting::batch_size)->left_alone);
    Settings foundry = read("max_seq_len: 8\nglobal_train_batch_size: 8\neval_interval: 2000ba\n");
    EXPECT_TRUE(foundry.get(Setting::eval_interval)->left_alone);
    Settings yolo = read("batch: -1\nimgsz: 640\nnbs: 64\nlr0: 0.01\n");
    EXPECT_TRUE(yolo.get(Setting::batch_size)->left_alone);
}

TEST(SettingsTest, NoticesCapitals) {
    Settings settings = read("BATCH_SIZE: 128\nNUM_WORKERS: 4\n");
    EXPECT_TRUE(settings.upper_case());
    EXPECT_EQ(settings.number(Setting::batch_size), 128);
}

TEST(SettingsTest, WarnsOfATruthValueThatIsAWord) {
    Settings settings = read("pin_memory: \"false\"\n");
    ASSERT_EQ(settings.warnings().size(), 1u);
    EXPECT_EQ(settings.warnings()[0].what,
              "pin_memory is \"false\", a word and not a boolean: a program that tests it sees "
              "true, whatever it says");
}

}  // namespace
}  // namespace saturate
