// SPDX-License-Identifier: Apache-2.0
#include "report/finding_words.h"

#include <fmt/format.h>

#include <algorithm>

namespace saturate {

namespace {

struct Chinese {
    std::string_view id;
    std::string_view name;
    std::string_view fix;
};

constexpr Chinese kChinese[] = {
    {"F01", "等待数据",
     "增加加载 worker，prefetch_factor 设为 4，persistent_workers=True；然后加快解码或用缓存"},
    {"F02", "在训练进程内加载数据", "DataLoader(num_workers=N, persistent_workers=True)"},
    {"F03", "从可换页内存向 GPU 拷贝",
     "DataLoader(pin_memory=True)，并用 batch.to(device, non_blocking=True)"},
    {"F04", "输入拷贝没有与计算重叠", "计算当前批次时，在另一个流上拷贝下一批"},
    {"F05", "加载时快时慢，或每轮重启 worker", "persistent_workers=True，并加大 prefetch_factor"},
    {"F06", "读取数值造成的隐式同步",
     "让数值留在 GPU 上；每 N 步读一次损失（先 .detach()，记录日志时再 .item()）"},
    {"F07", "显式同步", "去掉 torch.cuda.synchronize()；用 CUDA event 计时"},
    {"F08", "循环里有从 GPU 到主机的拷贝",
     "在 GPU 上收集结果，用 non_blocking=True 一次拷到锁页内存"},
    {"F09", "反复申请和释放显存",
     "保持缓存分配器开启（不用 empty_cache()，不设 PYTORCH_NO_CUDA_MEMORY_CACHING）；"
     "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True；固定形状"},
    {"F10", "受限于内核启动", "model = torch.compile(model)；CUDA graph；更大的批"},
    {"F11", "算子之间的 Python 开销", "把 Python 工作移出循环；训练时 gc.freeze() 并 gc.disable()"},
    {"F12", "内核过小", "融合它们：torch.compile，或融合模块"},
    {"F13", "优化器逐张量更新", "optimizer = AdamW(..., fused=True)，或 foreach=True"},
    {"F14", "用内核清零梯度", "optimizer.zero_grad(set_to_none=True)"},
    {"F15", "暴露的通信", "与反向重叠：更大的 bucket，累积时用 no_sync()，gradient_as_bucket_view"},
    {"F16", "小的集合通信太多", "把梯度分桶（DDP bucket_cap_mb=25，或合并的 all-reduce）"},
    {"F17", "有一个 rank 拖后腿", "解决迟到的 rank 自身的问题；其他 rank 都在等它"},
    {"F18", "有张量核心的 GPU 上用 FP32",
     "torch.set_float32_matmul_precision('high') 启用 TF32，或 "
     "torch.autocast('cuda', torch.bfloat16)"},
    {"F19", "内存布局来回转换", "模型和输入 .to(memory_format=torch.channels_last)"},
    {"F20", "注意力未融合", "torch.nn.functional.scaled_dot_product_attention"},
    {"F21", "矩阵乘法未对齐", "把指出的维度补齐到 8 的倍数"},
    {"F22", "多余的拷贝", "模型里避免 permute + contiguous 和 clone"},
    {"F23", "评估或检查点造成停顿", "异步保存，减少评估次数，用 inference_mode 和半精度评估"},
    {"F24", "稳定运行中重新编译", "固定形状，或 torch.compile(dynamic=True) 和 mark_dynamic"},
    {"F25", "GPU 没有填满", "更大的批，或融合算子"},
    {"F26", "可以省掉的工作", "batch norm 之前用 bias=False；直接在设备上创建张量"},
    {"F27", "适合 CUDA graph", "捕获整个步：torch.compile(mode='reduce-overhead')"},
    {"F28", "用了 DataParallel 或错误的后端", "DistributedDataParallel 加 NCCL，每块 GPU 一个进程"},
    {"F29", "降频", "提高功耗上限，改善散热"},
    {"F30", "加载 worker 太多", "减少 worker；每个 worker 一个线程"},
    {"F31", "显存没有用足", "更大的批，学习率按规则调整"},
    {"F32", "不起作用的设置", "按下面的修改"},
    {"F33", "逐元素运算没有融合", "对运行它们的部分使用 torch.compile，或使用融合模块"},
    {"F34", "内存不断增长", "不要把批次、损失或计算图留在列表里；加载器只创建一次"},
    {"F35", "步越来越慢", "找出在增长的东西：列表、日志、同一文件夹里的文件、没有上限的缓存"},
};

}  // namespace

FindingWords words_of(const Finding& finding, std::string_view language) {
    FindingWords out{.name = std::string(finding.name()),
                     .seen = {},
                     .fix = finding.fix_text(),
                     .evidence = finding.evidence};
    const auto* chinese = std::ranges::find(kChinese, finding.id, &Chinese::id);
    if (language != "zh" || chinese == std::end(kChinese)) return out;
    out.name = chinese->name;
    // A fix of its own is a line of code or of settings.
    if (finding.fix.empty()) out.fix = chinese->fix;
    if (finding.share_percent > 0)
        out.seen = finding.ms_per_step > 0
                       ? fmt::format("占步时的 {:.1f}%，每步 {:.1f} 毫秒。", finding.share_percent,
                                     finding.ms_per_step)
                       : fmt::format("占时间的 {:.1f}%。", finding.share_percent);
    return out;
}

}  // namespace saturate
