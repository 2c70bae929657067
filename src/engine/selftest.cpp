// SPDX-License-Identifier: Apache-2.0
#include "engine/selftest.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/add.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/version.h>

#include "base/clock.h"
#include "base/text.h"
#include "engine/selftest_net.h"

namespace saturate {

namespace {

SelftestCheck compare(const at::Tensor& got, const at::Tensor& expected, double allowed) {
    return check_within((got - expected).abs().max().item().toDouble(), allowed);
}

// Sums of 48 products of standard normal numbers in float: 48 roundings of 2^-24 on values around 7
// give about 2e-5. Other orders of summation stay below five times that.
SelftestCheck check_matmul() {
    constexpr int kRows = 33, kInner = 48, kColumns = 29;
    at::Tensor a = at::randn({kRows, kInner}), b = at::randn({kInner, kColumns});
    at::Tensor expected = at::zeros({kRows, kColumns});
    auto left = a.accessor<float, 2>(), right = b.accessor<float, 2>(),
         out = expected.accessor<float, 2>();
    for (int i = 0; i < kRows; ++i) {
        for (int j = 0; j < kColumns; ++j) {
            double sum = 0;
            for (int k = 0; k < kInner; ++k) sum += static_cast<double>(left[i][k]) * right[k][j];
            out[i][j] = static_cast<float>(sum);
        }
    }
    return compare(at::matmul(a, b), expected, 1e-4);
}

SelftestCheck check_convolution() {
    constexpr int kSize = 12, kKernel = 3, kOut = kSize - kKernel + 1;
    at::Tensor image = at::randn({1, 1, kSize, kSize}),
               kernel = at::randn({1, 1, kKernel, kKernel});
    at::Tensor expected = at::zeros({1, 1, kOut, kOut});
    auto in = image.accessor<float, 4>(), weight = kernel.accessor<float, 4>(),
         out = expected.accessor<float, 4>();
    for (int y = 0; y < kOut; ++y) {
        for (int x = 0; x < kOut; ++x) {
            double sum = 0;
            for (int v = 0; v < kKernel; ++v) {
                for (int u = 0; u < kKernel; ++u)
                    sum += static_cast<double>(in[0][0][y + v][x + u]) * weight[0][0][v][u];
            }
            out[0][0][y][x] = static_cast<float>(sum);
        }
    }
    return compare(at::conv2d(image, kernel), expected, 1e-4);
}

// d/dx of sum(x^3) is 3 x^2: two multiplications, i.e. a few roundings of values up to about 50.
SelftestCheck check_gradient() {
    at::Tensor x = at::randn({64}).requires_grad_(true);
    at::sum(x * x * x).backward();
    return compare(x.grad(), 3 * x.detach() * x.detach(), 1e-4);
}

}  // namespace

std::vector<SelftestItem> selftest_items(DeviceBackend& backend) {
    std::vector<SelftestItem> items;
    for (auto part : {selftest_step_items, selftest_captured_items, selftest_run_items}) {
        for (SelftestItem& item : part(backend)) items.push_back(std::move(item));
    }
    return items;
}

SelftestCheck run_check(const SelftestItem& item) {
    std::int64_t begin = now_ns();
    SelftestCheck check;
    try {
        check = item.run();
    } catch (const std::exception& error) {
        check.detail = fmt::format("it ended with: {}", split(error.what(), '\n')[0]);
    }
    check.name = item.name;
    check.seconds = static_cast<double>(now_ns() - begin) / 1e9;
    return check;
}

std::string torch_version() { return TORCH_VERSION; }

SelftestList selftest_cpu() {
    SelftestList list{.device = "cpu", .backend = make_cpu_backend({.threads = 1}, false)};
    list.items = {{"matrix product against plain loops", check_matmul},
                  {"convolution against plain loops", check_convolution},
                  {"gradient of x^3", check_gradient}};
    for (SelftestItem& item : selftest_items(*list.backend)) list.items.push_back(std::move(item));
    list.items.push_back(selftest_ranks_item(
        2, [](ProcessGroup&) { return make_cpu_backend({.threads = 1}, false); }));
    return list;
}

}  // namespace saturate
