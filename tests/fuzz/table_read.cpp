// SPDX-License-Identifier: Apache-2.0
// CSV tables of any bytes: refused with a UserError, or every window over them can be written and
// holds numbers only.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "pipeline/window.h"

using namespace saturate;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        auto table = std::make_shared<DataTable>(
            parse_table({reinterpret_cast<const char*>(data), size}, "fuzz.csv"));
        for (std::int64_t i = 0; i < table->rows * table->width(); ++i) {
            if (!std::isfinite(table->data[i])) std::abort();
        }
        WindowParts parts = cut_windows(table, {.length = 2, .normalise = size % 2 == 0});
        const WindowSource& source = *parts.training;
        std::vector<float> window(source.fields()[0].bytes() / sizeof(float));
        float target = 0;
        std::byte* places[] = {reinterpret_cast<std::byte*>(window.data()),
                               reinterpret_cast<std::byte*>(&target)};
        SampleCost cost;
        std::unique_ptr<Scratch> scratch = source.make_scratch();
        for (std::int64_t index : {std::int64_t{0}, source.size() - 1})
            source.write({.index = index}, *scratch, places, cost);
    } catch (const UserError&) {
    }
    return 0;
}
