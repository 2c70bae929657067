// SPDX-License-Identifier: Apache-2.0
// What others read of our files: Python's safetensors and a real TensorBoard. Where there is no
// Python with them (tests/support/python_torch), the framing alone is checked.
#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/text.h"
#include "engine/checkpoint.h"
#include "engine/tensorboard.h"
#include "support/run.h"

namespace saturate {
namespace {

std::string python() { return python_with_torch(SATURATE_SOURCE_DIR); }

TEST(TensorBoardTest, RecordsAreFramed) {
    TemporaryFolder folder;
    {
        TensorBoardFile file(folder.path());
        file.scalar("loss", 3, 0.5);
    }
    std::string content;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
        content = read_file(entry.path(), 1 << 20, "an event file");
    std::size_t at = 0;
    int records = 0;
    while (at < content.size()) {
        std::uint64_t length = 0;
        std::uint32_t head = 0, tail = 0;
        ASSERT_LE(at + 12, content.size());
        std::memcpy(&length, &content[at], 8);
        std::memcpy(&head, &content[at + 8], 4);
        ASSERT_LE(at + 16 + length, content.size());
        std::memcpy(&tail, &content[at + 12 + length], 4);
        auto masked = [](std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; };
        EXPECT_EQ(head, masked(crc32c(&content[at], 8)));
        EXPECT_EQ(tail, masked(crc32c(&content[at + 12], length)));
        at += 16 + length;
        ++records;
    }
    EXPECT_EQ(records, 2);
}

TEST(TensorBoardTest, RealTensorBoardReadsTheCurves) {
    std::string interpreter = python();
    if (interpreter.empty()) GTEST_SKIP() << "no Python with PyTorch";
    TemporaryFolder folder;
    {
        TensorBoardFile file(folder.path());
        for (int step = 0; step < 300; ++step) file.scalar("loss", step * 1000, 1.0 / (step + 1));
        file.scalar("evaluation/accuracy", 7, 93.5);
    }
    Ran ran = run({interpreter, "-c",
                   "import sys\n"
                   "from tensorboard.backend.event_processing.event_accumulator import "
                   "EventAccumulator\n"
                   "a = EventAccumulator(sys.argv[1], size_guidance={'scalars': 0}); a.Reload()\n"
                   "s = a.Scalars('loss')\n"
                   "print(sorted(a.Tags()['scalars']), len(s), s[-1].step, round(s[1].value, 6), "
                   "a.Scalars('evaluation/accuracy')[0].value)",
                   folder.path().string()});
    EXPECT_EQ(ran.out, "['evaluation/accuracy', 'loss'] 300 299000 0.5 93.5\n") << ran.err;
}

TEST(SafetensorsTest, PythonReadsTheWeights) {
    std::string interpreter = python();
    if (interpreter.empty()) GTEST_SKIP() << "no Python with PyTorch";
    TemporaryFolder folder;
    std::filesystem::path path = write_checkpoint(
        folder.path(),
        {.step = 1,
         .model = {{"layer.weight", torch::arange(6, torch::kFloat).reshape({2, 3}).t()},
                   {"norm.num_batches_tracked", torch::full({}, 9, torch::kLong)},
                   {"half", torch::full({2}, 0.5, torch::kBFloat16)}},
         .state = {},
         .facts = {}});
    Ran ran = run({interpreter, "-c",
                   "import sys\n"
                   "from safetensors.torch import load_file\n"
                   "t = load_file(sys.argv[1])\n"
                   "print(t['layer.weight'].tolist(), t['norm.num_batches_tracked'].item(), "
                   "t['half'].dtype, t['half'].tolist())",
                   (path / "model.safetensors").string()});
    EXPECT_EQ(ran.out, "[[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]] 9 torch.bfloat16 [0.5, 0.5]\n")
        << ran.err;
}

}  // namespace
}  // namespace saturate
