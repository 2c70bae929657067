// SPDX-License-Identifier: Apache-2.0
#include "probe/gpu_name.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"

namespace saturate {

namespace {

// Words that do not distinguish cards.
constexpr std::array kNoise = {"nvidia",     "geforce",     "tesla",  "amd",   "radeon",
                               "instinct",   "rtx",         "gtx",    "gpu",   "card",
                               "hbm2",       "hbm2e",       "hbm3",   "hbm3e", "graphics",
                               "generation", "workstation", "edition"};
// Many users write these together with the number: "rtx4090", "2080ti", "h100sxm5".
constexpr std::array kPrefixes = {"nvidia", "geforce", "tesla", "rtx", "gtx"};
constexpr std::array kSuffixes = {"ti",   "super", "laptop", "mobile", "ada",  "sxm",
                                  "sxm2", "sxm3",  "sxm4",   "sxm5",   "pcie", "nvl"};

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

bool all_digits(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, is_digit);
}

template <typename List>
bool is_one_of(const List& list, std::string_view word) {
    return std::ranges::find(list, word) != list.end();
}

std::vector<std::string> words_of(std::string_view name) {
    std::vector<std::string> words;
    std::string word;
    auto finish = [&] {
        std::string_view rest = word;
        for (bool again = true; again;) {
            again = false;
            for (std::string_view prefix : kPrefixes) {
                if (rest.size() > prefix.size() && rest.starts_with(prefix)) {
                    words.emplace_back(prefix);
                    rest.remove_prefix(prefix.size());
                    again = true;
                }
            }
        }
        std::string_view suffix;
        for (std::string_view one : kSuffixes) {
            bool fits = rest.size() > one.size() && rest.ends_with(one) &&
                        is_digit(rest[rest.size() - one.size() - 1]);
            if (fits) suffix = one;
        }
        rest.remove_suffix(suffix.size());
        if (!rest.empty()) words.emplace_back(rest);
        if (!suffix.empty()) words.emplace_back(suffix);
        word.clear();
    };
    for (char c : lower(name)) {
        if (std::isalnum(static_cast<unsigned char>(c))) {
            word += c;
        } else {
            finish();
        }
    }
    finish();
    return words;
}

bool is_size_unit(std::string_view word) { return word == "g" || word == "gb" || word == "gib"; }

// "80gb", or "80" if the next word is "gb".
std::optional<double> size_in(std::string_view word, std::string_view next) {
    std::size_t digits = 0;
    while (digits < word.size() && is_digit(word[digits])) ++digits;
    std::string_view unit = word.substr(digits);
    bool is_number = digits > 0 && digits <= 5;
    if (!is_number || !is_size_unit(unit.empty() ? next : unit)) return std::nullopt;
    return parse_number(word.substr(0, digits));
}

std::string form_in(std::string_view word) {
    if (word == "pcie" || word == "nvl") return std::string(word);
    bool is_sxm = word.starts_with("sxm") && (word.size() == 3 || all_digits(word.substr(3)));
    return is_sxm ? "sxm" : "";
}

}  // namespace

GpuName parse_gpu_name(std::string_view name) {
    GpuName out;
    bool says_hbm3 = false;
    std::vector<std::string> words = words_of(name);
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        std::string_view next = i + 1 < words.size() ? std::string_view(words[i + 1]) : "";
        says_hbm3 = says_hbm3 || word == "hbm3";
        out.geforce = out.geforce || word == "geforce";
        if (auto size = size_in(word, next)) {
            out.memory_gb = size;
            if (all_digits(word)) ++i;
        } else if (std::string form = form_in(word); !form.empty()) {
            out.form = form;
        } else if (!is_one_of(kNoise, word)) {
            // Data sheets say "mobile", the driver says "laptop".
            out.words.push_back(word == "mobile" ? "laptop" : word);
        }
    }
    out.key = join(out.words, " ");
    // The driver calls the SXM module "NVIDIA H100 80GB HBM3". The others have PCIe or NVL in the
    // name.
    if (out.key == "h100" && says_hbm3 && out.form.empty()) out.form = "sxm";
    return out;
}

}  // namespace saturate
