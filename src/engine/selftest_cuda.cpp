// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "engine/selftest.h"

namespace saturate {

SelftestList selftest_cuda() {
    const CudaPlugin& plugin = need_cuda_plugin();
    int gpus = plugin.device_count();
    // Without TF32, so that the GPU must reach the precision of float.
    static constexpr DeviceOptions kOptions{.tf32 = false};
    SelftestList list;
    list.backend = open_gpu(plugin, {}, 0, kOptions);
    list.device = list.backend->name();
    list.items = plugin.selftest();
    for (SelftestItem& item : selftest_items(*list.backend)) list.items.push_back(std::move(item));
    auto open_rank = [&plugin](ProcessGroup& group) {
        auto backend = plugin.open(group.rank(), kOptions);
        group.use_device(plugin.collectives(group.store(), group.rank(), group.count()));
        return backend;
    };
    // At most 8 GPUs: with more, the parts of a batch get too small. With one GPU NCCL does little.
    list.items.push_back(selftest_ranks_item(std::min(gpus, 8), open_rank));
    for (int i = 1; i < gpus; ++i)
        list.items.push_back(
            selftest_device_item(fmt::format("eight steps on cuda:{} against the CPU", i),
                                 [&plugin, i] { return plugin.open(i, kOptions); }));
    return list;
}

}  // namespace saturate
