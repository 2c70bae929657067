// SPDX-License-Identifier: Apache-2.0
// fp16 for a GPU without bf16: autocast with a gradient scaler, or a reason why not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "project/fix_patch.h"
#include "project/fix_plan.h"
#include "support/run.h"

namespace saturate {
namespace {

using testing::HasSubstr;

struct Planned {
    FixPlan plan;
    std::string after;  // the script with every proposal of precision
    [[nodiscard]] std::string refusal() const {
        for (const FixRefusal& refusal : plan.refused)
            if (refusal.setting == "precision") return refusal.why;
        return "";
    }
};

Planned planned(const std::string& step, bool has_bf16) {
    TemporaryFolder folder;
    folder.file("train.py",
                "import torch\n\nmodel = torch.nn.Linear(8, 2).cuda()\n"
                "optimizer = torch.optim.Adam(model.parameters())\n"
                "for x, y in loader:\n"
                "    out = model(x.cuda())\n"
                "    loss = torch.nn.functional.cross_entropy(out, y.cuda())\n"
                "    optimizer.zero_grad()\n" +
                    step);
    ProjectReader reader({{"python3", "train.py"}, {}, folder.path()});
    FixQuestion question{.folder = folder.path()};
    ProjectFacts facts = reader.read();
    Planned out{.plan = plan_fixes(facts, {.has_bf16 = has_bf16}, question)};
    keep_exact(reader, facts, question, out.plan);
    std::vector<const FixProposal*> precision;
    for (const FixProposal& proposal : out.plan.proposals)
        if (proposal.setting == "precision") precision.push_back(&proposal);
    FixPatch patch = make_patch(reader, facts, question, precision);
    EXPECT_EQ(patch.problem, "");
    if (!patch.files.empty()) out.after = patch.files[0].after;
    return out;
}

TEST(GradScalerTest, GoesAroundBackwardAndStep) {
    std::string after =
        planned("    loss.backward()\n    optimizer.step()  # update\n", false).after;
    EXPECT_THAT(after, HasSubstr("import torch\ngrad_scaler = torch.amp.GradScaler(\"cuda\", "
                                 "enabled=torch.cuda.is_available())\n"));
    EXPECT_THAT(after, HasSubstr("dtype=torch.float16"));
    EXPECT_THAT(after, HasSubstr("    grad_scaler.scale(loss).backward()\n"
                                 "    grad_scaler.step(optimizer)  # update\n"
                                 "    grad_scaler.update()\n"));
}

TEST(GradScalerTest, IsNotThereForBf16) {
    std::string after = planned("    loss.backward()\n    optimizer.step()\n", true).after;
    EXPECT_THAT(after, HasSubstr("dtype=torch.bfloat16"));
    EXPECT_EQ(after.find("grad_scaler"), std::string::npos);
}

TEST(GradScalerTest, IsRefusedWhereTheStepIsNotPlain) {
    for (const char* step :
         {"    loss.backward()\n    torch.nn.utils.clip_grad_norm_(model.parameters(), 1)\n"
          "    optimizer.step()\n",
          "    loss.backward(retain_graph=True)\n    optimizer.step()\n",
          "    loss.backward()\n    optimizer.step(lambda: loss)\n",
          "    loss.backward()\n    print(model.weight.grad.norm())\n    optimizer.step()\n"}) {
        Planned answer = planned(step, false);
        EXPECT_EQ(answer.after, "") << step;
        EXPECT_THAT(answer.refusal(), HasSubstr("this GPU has no bf16")) << step;
    }
}

}  // namespace
}  // namespace saturate
