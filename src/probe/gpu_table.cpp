// SPDX-License-Identifier: Apache-2.0
#include "probe/gpu_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/csv.h"
#include "base/error.h"
#include "base/text.h"
#include "probe/gpu_name.h"

namespace saturate {

std::string_view embedded_gpus();

std::string_view precision_name(Precision precision) {
    switch (precision) {
        case Precision::fp16:
            return "fp16";
        case Precision::bf16:
            return "bf16";
        case Precision::fp32:
            break;
    }
    return "fp32";
}

namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

// A row and the parsed names of its card.
struct GpuRow {
    GpuFacts facts;
    GpuName name;      // from the table's short name
    GpuName official;  // the maker's name; has the form if the short name has none

    [[nodiscard]] const std::string& form() const {
        return name.form.empty() ? official.form : name.form;
    }
    [[nodiscard]] std::vector<std::uint64_t> memories() const {
        std::vector<std::uint64_t> sizes = facts.other_memory_bytes;
        sizes.push_back(facts.memory_bytes);
        return sizes;
    }
};

std::uint64_t bytes_of(double gb) { return static_cast<std::uint64_t>(gb * kGiB); }

double required_number(const CsvRow& row, std::string_view column) {
    std::optional<double> value = parse_number(row.find(column)->second);
    SATURATE_CHECK(value, fmt::format("gpus.csv: {} of {}", column, row.find("name")->second));
    return *value;
}

std::optional<double> optional_number(const CsvRow& row, std::string_view column) {
    if (row.find(column)->second.empty()) return std::nullopt;
    return required_number(row, column);
}

std::optional<Capability> parse_capability(std::string_view text) {
    std::vector<std::string_view> parts = split(text, '.');
    if (parts.size() != 2) return std::nullopt;  // such as AMD's "gfx942"
    auto major = parse_integer(parts[0]), minor = parse_integer(parts[1]);
    if (!major || !minor) return std::nullopt;
    return Capability{static_cast<int>(*major), static_cast<int>(*minor)};
}

Precision parse_precision(std::string_view text) {
    for (Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16}) {
        if (text == precision_name(precision)) return precision;
    }
    SATURATE_CHECK(false, fmt::format("gpus.csv: best_amp_dtype {}", text));
    return Precision::fp32;
}

GpuFacts facts_of(const CsvRow& row) {
    auto text = [&](std::string_view column) { return row.find(column)->second; };
    GpuFacts facts;
    facts.name = text("name");
    facts.arch = text("arch");
    facts.capability = parse_capability(text("compute_capability"));
    facts.memory_bytes = bytes_of(required_number(row, "memory_gb"));
    if (auto also = optional_number(row, "also_gb"))
        facts.other_memory_bytes.push_back(bytes_of(*also));
    facts.bandwidth_gbs = required_number(row, "bandwidth_gbs");
    facts.tdp_watts = required_number(row, "tdp_w");
    facts.sm_count = static_cast<int>(required_number(row, "sm_count"));
    facts.fp32_tflops = required_number(row, "fp32_tflops");
    facts.tf32_tflops = optional_number(row, "tf32_tensor_tflops");
    facts.fp16_tflops = optional_number(row, "fp16_tensor_fp32acc_tflops");
    facts.bf16_tflops = optional_number(row, "bf16_tensor_tflops");
    facts.fp8_tflops = optional_number(row, "fp8_tensor_tflops");
    facts.has_bf16 = text("bf16_native") == "1";
    facts.has_tf32 = text("tf32") == "1";
    facts.best_precision = parse_precision(text("best_amp_dtype"));
    facts.needs_grad_scaler = text("grad_scaler") == "1";
    facts.source = fmt::format("{}; rates: {}", text("spec_source"), text("rate_source"));
    facts.note = text("note");
    return facts;
}

struct GpuTable {
    std::vector<GpuFacts> facts;
    std::vector<GpuRow> rows;
};

const GpuTable& table() {
    static const GpuTable kTable = [] {
        GpuTable out;
        for (const CsvRow& row : parse_csv(embedded_gpus(), "gpus.csv")) {
            out.facts.push_back(facts_of(row));
            out.rows.push_back({out.facts.back(), parse_gpu_name(row.find("name")->second),
                                parse_gpu_name(row.find("match")->second)});
        }
        return out;
    }();
    return kTable;
}

// One row with one of its sizes, and the distance from the wanted card.
struct GpuChoice {
    const GpuRow* row = nullptr;
    std::uint64_t memory_bytes = 0;
    double size_distance = 0;  // 0: equal, or no size wanted
    bool other_form = false;
};

// Cards reserve some of their memory: 15 GiB and a T4's 16 GiB are the same size.
double size_distance(std::uint64_t wanted, std::uint64_t there) {
    double apart = std::abs(std::log(static_cast<double>(wanted) / static_cast<double>(there)));
    return apart < 0.12 ? 0 : apart;
}

GpuChoice choice_of(const GpuRow& row, std::uint64_t memory, const GpuName& name,
                    std::optional<std::uint64_t> wanted) {
    return {.row = &row,
            .memory_bytes = memory,
            .size_distance = wanted ? size_distance(*wanted, memory) : 0,
            .other_form = !name.form.empty() && !row.form().empty() && name.form != row.form()};
}

std::string gb_text(std::uint64_t bytes) {
    return fmt::format("{:.0f} GB", static_cast<double>(bytes) / kGiB);
}

std::string label(const GpuChoice& choice) {
    const GpuFacts& facts = choice.row->facts;
    if (facts.other_memory_bytes.empty()) return facts.name;
    return fmt::format("{} {}", facts.name, gb_text(choice.memory_bytes));
}

// Describes a match by name, with what was assumed.
std::string how_by_name(std::string_view asked, const GpuName& name, const GpuChoice& best,
                        const std::vector<GpuChoice>& equals, std::optional<std::uint64_t> wanted) {
    std::string how = "by name";
    if (equals.size() > 1) {
        std::vector<std::string> labels;
        for (const GpuChoice& choice : equals) labels.push_back(label(choice));
        how += fmt::format(": {} may be {}; treated as {}", in_quotes(asked), join(labels, ", "),
                           labels[0]);
    }
    if (best.row->name.key != name.key)
        how += fmt::format(", using the rates of {}", best.row->facts.name);
    if (best.other_form)
        how += fmt::format(", as {}: the table has no other of that size", label(best));
    if (best.size_distance > 0) {
        how += fmt::format(", with {} where the table has {}", gb_text(*wanted),
                           gb_text(best.memory_bytes));
    }
    return how;
}

std::optional<GpuMatch> match_by_name(std::string_view asked, const GpuName& name,
                                      std::optional<std::uint64_t> memory_bytes) {
    if (name.key.empty()) return std::nullopt;
    std::optional<std::uint64_t> wanted = memory_bytes;
    if (!wanted && name.memory_gb && *name.memory_gb > 0) wanted = bytes_of(*name.memory_gb);
    std::vector<GpuChoice> choices;
    for (const GpuRow& row : table().rows) {
        if (row.name.key != name.key && row.official.key != name.key) continue;
        for (std::uint64_t memory : row.memories())
            choices.push_back(choice_of(row, memory, name, wanted));
    }
    if (choices.empty()) return std::nullopt;
    // If several fit, take the one with the least memory: what fits into it fits into the others
    // too.
    auto rank = [](const GpuChoice& choice) {
        return std::tuple(choice.size_distance, choice.other_form, choice.memory_bytes,
                          choice.row->form() != "sxm");
    };
    std::ranges::stable_sort(choices, {}, rank);
    const GpuChoice best = choices.front();
    std::erase_if(choices, [&](const GpuChoice& choice) {
        return choice.size_distance != best.size_distance || choice.other_form != best.other_form;
    });
    GpuMatch match{.facts = best.row->facts, .kind = GpuMatchKind::name};
    match.how = how_by_name(asked, name, best, choices, wanted);
    match.facts.memory_bytes = wanted.value_or(best.memory_bytes);
    return match;
}

bool is_laptop(const GpuName& name) {
    return std::ranges::find(name.words, "laptop") != name.words.end();
}

std::optional<GpuMatch> match_by_capability(std::string_view asked, const GpuName& name,
                                            Capability capability,
                                            std::optional<std::uint64_t> memory_bytes) {
    std::vector<GpuChoice> choices;
    for (const GpuRow& row : table().rows) {
        if (!row.facts.capability || row.facts.capability->major != capability.major) continue;
        for (std::uint64_t memory : row.memories())
            choices.push_back(choice_of(row, memory, name, memory_bytes));
    }
    if (choices.empty()) return std::nullopt;
    auto rank = [&](const GpuChoice& choice) {
        const GpuRow& row = *choice.row;
        bool shares_model = std::ranges::find(name.words, row.name.words[0]) != name.words.end();
        return std::tuple(std::abs(row.facts.capability->minor - capability.minor),
                          is_laptop(row.name) != is_laptop(name), choice.size_distance,
                          !shares_model, row.official.geforce != name.geforce, choice.other_form,
                          choice.memory_bytes, row.form() != "sxm");
    };
    const GpuChoice best = *std::ranges::min_element(choices, {}, rank);
    GpuMatch match{.facts = best.row->facts, .kind = GpuMatchKind::capability};
    match.how = fmt::format("{}: treated as {}, going by capability {}.{}",
                            trim(asked).empty() ? "no name" : "new name", best.row->facts.name,
                            capability.major, capability.minor);
    if (Capability there = *best.row->facts.capability; there != capability)
        match.how += fmt::format(" (nearest in the table: {}.{})", there.major, there.minor);
    if (memory_bytes) match.how += fmt::format(" and {}", gb_text(*memory_bytes));
    match.facts.memory_bytes = memory_bytes.value_or(best.memory_bytes);
    return match;
}

}  // namespace

std::span<const GpuFacts> gpu_table() { return table().facts; }

std::optional<GpuMatch> match_gpu(std::string_view name, std::optional<Capability> capability,
                                  std::optional<std::uint64_t> memory_bytes) {
    if (memory_bytes == 0) memory_bytes = std::nullopt;
    GpuName parsed = parse_gpu_name(name);
    if (auto match = match_by_name(name, parsed, memory_bytes)) return match;
    if (!capability) return std::nullopt;
    return match_by_capability(name, parsed, *capability, memory_bytes);
}

std::optional<GpuMatch> match_gpu(const GpuIdentity& gpu) {
    return match_gpu(gpu.name, gpu.capability, gpu.memory_total_bytes);
}

std::vector<std::string> near_gpu_names(std::string_view name) {
    GpuName parsed = parse_gpu_name(name);
    std::vector<std::string> near, keys;
    for (const GpuRow& row : table().rows) {
        keys.push_back(row.name.key);
        if (std::ranges::find(parsed.words, row.name.words[0]) != parsed.words.end())
            near.push_back(row.facts.name);
    }
    if (!near.empty()) return near;
    auto meant = closest(parsed.key, keys);
    for (const GpuRow& row : table().rows) {
        if (meant && row.name.key == *meant) near.push_back(row.facts.name);
    }
    return near;
}

}  // namespace saturate
