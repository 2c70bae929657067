// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/nsys_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/text.h"

namespace saturate {

NvtxText split_nvtx(std::string_view text) {
    NvtxText out{.name = text};
    for (std::string_view field : {", seq = ", ", op_id = ", ", sizes = "}) {
        std::size_t at = text.find(field);
        if (at == std::string_view::npos || at == 0) continue;
        out.is_op = true;
        out.name = text.substr(0, std::min(at, out.name.size()));
        if (field != ", sizes = ") continue;
        std::string_view rest = text.substr(at + field.size());
        std::size_t end = rest.find("]]");
        if (rest.starts_with("[") && end != std::string_view::npos)
            out.dims = rest.substr(0, end + 2);
    }
    for (std::string_view start : {"aten::", "autograd::", "c10d::"})
        out.is_op = out.is_op || text.starts_with(start);
    return out;
}

std::optional<std::int64_t> step_number(std::string_view range) {
    std::size_t digits = range.find_last_not_of("0123456789") + 1;
    if (digits == 0 || digits == range.size() || range.size() - digits > 12) return std::nullopt;
    std::string word = lower(range.substr(0, digits));
    while (!word.empty() && std::strchr(" _#:=-", word.back())) word.pop_back();
    for (std::string_view known : {"step", "iteration", "iter", "train_step", "train step",
                                   "training_step", "training step"}) {
        if (word == known) return parse_integer(range.substr(digits));
    }
    return std::nullopt;
}

std::string copy_name(std::int64_t copy, std::int64_t from, std::int64_t to) {
    constexpr std::array<std::string_view, 14> kCopyKinds = {
        "Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA",
        "DtoD",    "HtoH", "PtoP", "HtoD", "DtoH", "DtoD"};  // the last three: unified memory
    constexpr std::array<std::string_view, 8> kMemory = {
        "Pageable", "Pinned", "Device", "Array", "Managed", "Device", "Managed", "Unknown"};
    auto pick = [](const auto& table, std::int64_t index, std::size_t other) {
        return table[index >= 0 && index < static_cast<std::int64_t>(table.size())
                         ? static_cast<std::size_t>(index)
                         : other];
    };
    return fmt::format("Memcpy {} ({} -> {})", pick(kCopyKinds, copy, 0), pick(kMemory, from, 7),
                       pick(kMemory, to, 7));
}

std::string_view without_version(std::string_view call) {
    std::size_t at = call.rfind("_v");
    if (at == std::string_view::npos || at + 2 == call.size()) return call;
    bool is_number = call.find_first_not_of("0123456789", at + 2) == std::string_view::npos;
    return is_number ? call.substr(0, at) : call;
}

}  // namespace saturate
