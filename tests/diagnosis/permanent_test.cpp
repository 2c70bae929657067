// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/permanent.h"

#include <gtest/gtest.h>

#include "remedies/catalogue.h"

namespace saturate {
namespace {

std::string change(const std::string& name, const std::string& state, const std::string& loader,
                   const std::string& value) {
    return R"({"name":")" + name + R"(","level":"safe","state":")" + state +
           R"(","text":"why","loader":)" + loader + R"(,"value":)" + value + "}";
}

// A script with one loader, one optimizer and one zero_grad.
Json python(const std::string& changes) {
    return Json::parse(R"json({"device":"cuda:0","changes":[)json" + changes + R"json(],
      "loaders":[{"id":3,"site":{"file":"train.py","line":5,"function":"main"},
        "call":{"end_line":5,"end_column":17,"spreads":false,"keywords":{},"first_line":5,
                "lines":["l = DataLoader(d)"]}}],
      "optimizers":[{"type":"Adam","fused":true,"site":{"file":"train.py","line":7,"function":"main"}}],
      "zero_grad":{"site":{"file":"train.py","line":9,"function":"main"},
        "call":{"end_line":9,"end_column":31,"spreads":false,
                "keywords":{"set_to_none":{"line":9,"column":26,"end_line":9,"end_column":31}},
                "first_line":9,"lines":["opt.zero_grad(set_to_none=False)"]}}})json",
                       "python.json");
}

TEST(PermanentTest, ALoadersKeywordsAreOneEdit) {
    auto edits = permanent_edits(python(change("num_workers", "applied", "3", "2") + "," +
                                        change("persistent_workers", "applied", "3", "true")));
    ASSERT_EQ(edits.size(), 1u);
    EXPECT_EQ(edits[0].names, (std::vector<std::string>{"num_workers", "persistent_workers"}));
    EXPECT_EQ(edits[0].where, "train.py:5 (main)");
    EXPECT_EQ(edits[0].line, "DataLoader(..., num_workers=2, persistent_workers=True)");
    EXPECT_EQ(edits[0].patch,
              "--- train.py\n+++ train.py\n@@ -5,1 +5,1 @@\n-l = DataLoader(d)\n"
              "+l = DataLoader(d, num_workers=2, persistent_workers=True)\n");
}

TEST(PermanentTest, WhatWasRefusedOrTakenBackIsNotKept) {
    EXPECT_TRUE(permanent_edits(python(change("num_workers", "applied", "3", "2") + "," +
                                       change("num_workers", "taken back", "3", "null") + "," +
                                       change("tf32", "refused", "null", "null")))
                    .empty());
    EXPECT_TRUE(permanent_edits(Json()).empty());
}

TEST(PermanentTest, EveryChangeHasItsLine) {
    std::string changes;
    for (const char* name : {"set_to_none", "tf32", "cudnn_benchmark", "fused", "channels_last",
                             "autocast", "compile"})
        changes += change(name, "applied", "null", "null") + ",";
    changes += change("threads", "applied", "null", "4") + "," +
               change("batched_fetch", "applied", "3", "null");
    std::vector<std::string> lines;
    for (const PermanentEdit& edit : permanent_edits(python(changes))) lines.push_back(edit.line);
    EXPECT_EQ(lines,
              (std::vector<std::string>{
                  "for rows in torch.randperm(n).split(batch_size): x[rows], y[rows]"
                  "  # in place of the DataLoader",
                  "Adam(..., fused=True)", "zero_grad(..., set_to_none=True)",
                  "torch.set_float32_matmul_precision(\"high\")",
                  "torch.backends.cudnn.benchmark = True", "torch.set_num_threads(4)",
                  "model.to(memory_format=torch.channels_last), and x.contiguous(memory_format="
                  "torch.channels_last) for its input",
                  "with torch.autocast(\"cuda\", torch.bfloat16): around the model and the loss",
                  "model.compile()"}));
}

// A remedy that the shim can do is of use only if it can be made to last.
TEST(PermanentTest, NoChangeOfTheShimIsWithoutOne) {
    for (const Remedy& remedy : remedies()) {
        if (remedy.shim.name.empty()) continue;
        std::string name(remedy.shim.name);
        Json script =
            python(change(name, "applied", "3", "2") + "," + change(name, "applied", "null", "2"));
        script.set("optimizers",
                   Json::parse(R"([{"type":"Adam","fused":true,"foreach":true}])", ""));
        std::vector<PermanentEdit> edits = permanent_edits(script);
        ASSERT_EQ(edits.size(), 1u) << name;
        EXPECT_EQ(edits[0].names, std::vector<std::string>{name});
    }
}

}  // namespace
}  // namespace saturate
