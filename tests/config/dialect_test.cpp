// SPDX-License-Identifier: Apache-2.0
#include "config/dialect.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/file.h"
#include "config/framework.h"
#include "config/reference.h"
#include "config/settings.h"

namespace saturate {
namespace {

std::string dialect_of(const std::string& text, const std::string& file = "c.yaml") {
    return recognise_dialect(Document::parse(text, file)).name;
}

TEST(DialectTest, EveryDialectIsWholeAndNamedOnce) {
    std::set<std::string> names;
    for (const Dialect& dialect : dialects()) {
        EXPECT_TRUE(names.insert(dialect.name).second) << dialect.name;
        EXPECT_FALSE(dialect.aliases.empty()) << dialect.name;
        // Whoever reads a free one imports nothing that would tell.
        EXPECT_EQ(frameworks_of(dialect).empty(), dialect.is_free()) << dialect.name;
    }
    EXPECT_EQ(frameworks_of(*find_dialect("llm_foundry")), std::vector<std::string>{"composer"});
}

TEST(DialectTest, RecognisesEachFramework) {
    EXPECT_EQ(dialect_of("job: sequence\nbatch_size: 4\n"), "saturate");
    EXPECT_EQ(dialect_of("batch_size: 4\nlr: 0.1\nnum_workers: 2\n"), "plain");
    EXPECT_EQ(
        dialect_of(
            "output_dir: out\nper_device_train_batch_size: 8\nbf16: true\nlogging_steps: 1\n"),
        "hf_trainer");
    EXPECT_EQ(dialect_of("trainer:\n  accelerator: gpu\n  precision: 32-true\n  max_epochs: 3\n  "
                         "accumulate_grad_batches: 2\n"),
              "lightning");
    EXPECT_EQ(dialect_of("batch_size: 128\nworkers: 4\nopt: sgd\namp: true\namp_dtype: "
                         "float16\nclip_grad: 1.0\nreprob: 0.2\n"),
              "timm");
    EXPECT_EQ(dialect_of("batch: 16\nimgsz: 640\nworkers: 8\nlr0: 0.01\nnbs: 64\namp: True\n"),
              "ultralytics");
    EXPECT_EQ(
        dialect_of(
            "train_dataloader:\n  batch_size: 2\n  num_workers: 2\noptim_wrapper:\n  type: "
            "OptimWrapper\n  optimizer: {type: SGD, lr: 0.01}\ntrain_cfg: {max_epochs: 12}\n"),
        "mmengine");
    EXPECT_EQ(dialect_of("data:\n  samples_per_gpu: 2\n  workers_per_gpu: 2\noptimizer: {type: "
                         "SGD, lr: 0.02}\nlog_config: {interval: 50}\n"),
              "mmcv");
    EXPECT_EQ(dialect_of("[training]\nbatch_size = 8\nmax_norm = 1.0\n[metrics]\nlog_freq = "
                         "10\n[parallelism]\nx = 1\n",
                         "t.toml"),
              "torchtitan_toml");
    EXPECT_EQ(dialect_of("training:\n  num_tokens_per_microbatch_per_dp_rank: 8192\n  gc_freq: "
                         "50\ncompile: {enable: false}\noptimizer: {implementation: for-loop}\n"),
              "torchtitan");
    EXPECT_EQ(dialect_of("{\"train_micro_batch_size_per_gpu\": 4, \"zero_optimization\": "
                         "{\"stage\": 2}, \"fp16\": {\"enabled\": false}}",
                         "ds.json"),
              "deepspeed");
    EXPECT_EQ(
        dialect_of("max_seq_len: 2048\nglobal_train_batch_size: 256\ndevice_train_microbatch_size: "
                   "4\nprecision: amp_bf16\ntrain_loader:\n  num_workers: 8\n"),
        "llm_foundry");
    EXPECT_EQ(dialect_of(
                  "SOLVER:\n  IMS_PER_BATCH: 16\n  BASE_LR: 0.02\nDATALOADER:\n  NUM_WORKERS: 2\n"),
              "detectron2");
    EXPECT_EQ(dialect_of("compute_environment: LOCAL_MACHINE\ndistributed_type: "
                         "MULTI_GPU\nmixed_precision: 'no'\nnum_processes: 2\n"),
              "accelerate");
    EXPECT_EQ(
        dialect_of("pretrained_model_name_or_path: x\ntrain_batch_size: "
                   "1\nmax_data_loader_n_workers: 0\nmixed_precision: fp16\nnetwork_dim: 16\n"),
        "kohya");
}

TEST(DialectTest, TwoNamesAreNoFramework) {
    // torchtune has llm-foundry's max_seq_len, below its tokenizer.
    EXPECT_EQ(dialect_of("tokenizer: {_component_: x, max_seq_len: 8}\ndataset: {packed: "
                         "False}\nbatch_size: 2\nepochs: 1\noptimizer: {_component_: AdamW, fused: "
                         "True, lr: 2e-5}\ncompile: False\ngradient_accumulation_steps: 8\n"
                         "global_train_batch_size: 4\n"),
              "plain");
    // ESPnet names decoder layers as timm names its own.
    EXPECT_EQ(
        dialect_of("batch_type: numel\nnum_workers: 4\nmax_epoch: 50\naccum_grad: 2\noptim: "
                   "adam\ngrad_clip: 1\nuse_amp: true\ndecoder_conf: {drop_path: 0.1, reprob: "
                   "0.2}\nbatch_size: 4\nlog_interval: 10\n"),
        "plain");
    EXPECT_EQ(dialect_of("job: my_own\nbatch_size: 4\n"), "saturate");
    EXPECT_EQ(dialect_of("job: {config_file: x}\nbatch_size: 4\n"), "plain");
}

TEST(DialectTest, PassesOverSectionsOfValidation) {
    Document document =
        Document::parse("val:\n  batch_size: 1\ntrain:\n  batch_size: 8\n", "c.yaml");
    KeyIndex index(document, false);
    std::vector<Found> found = index.find({"batch_size"});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(path_text(found[0].path), "train.batch_size");
}

TEST(DialectTest, PrefersTheTrainingSection) {
    Document document = Document::parse("batch_size: 1\ntraining:\n  batch_size: 8\n", "c.yaml");
    EXPECT_EQ(path_text(Settings::read(document).get(Setting::batch_size)->path),
              "training.batch_size");
}

TEST(SchemaTest, StandsInTheOrderOfItsEnum) {
    for (const SettingInfo& info : schema()) {
        EXPECT_EQ(&info_of(info.id), &info);
        EXPECT_EQ(find_setting(info.name), &info);
        EXPECT_FALSE(info.help.empty()) << info.name;
    }
}

TEST(SchemaTest, TheDocumentedSettingsAreThoseOfTheSchema) {
    const std::string file = SATURATE_SOURCE_DIR "/docs/settings.md";
    if (std::getenv("SATURATE_GOLDEN_ACCEPT")) write_file_whole(file, settings_reference());
    EXPECT_EQ(read_file(file, 1 << 20, "the reference"), settings_reference())
        << "tools/golden-accept writes it anew";
}

}  // namespace
}  // namespace saturate
