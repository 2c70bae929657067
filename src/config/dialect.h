// SPDX-License-Identifier: Apache-2.0
// The names that frameworks give to the settings of the schema (src/config/aliases.csv). Recognises
// the dialect that a file is written in.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "config/document.h"
#include "config/schema.h"

namespace saturate {

// The meaning of a value, if the key's name alone does not tell it.
enum class Convention {
    none,
    epochs,        // an interval in epochs
    steps,         // an interval in optimizer steps
    by_epoch,      // in epochs or steps, depending on another key: left alone
    unit_text,     // "2000ba": left alone
    tokens,        // a batch counted in tokens: left alone
    total,         // a batch over all GPUs
    nominal,       // ultralytics accumulates up to this batch
    ultralytics,   // a batch; -1 and fractions are automatic
    per_rank,      // workers of each process
    self_scaling,  // a learning rate that the framework scales with the batch
    boolean,       // mixed precision on or off; the framework chooses the type
    boolean_bf16,  // one of two exclusive switches
    boolean_fp16,  //
    word,          // bf16, fp16, none
    no_word,       // bf16, fp16, no
    lightning,     // bf16-mixed, 16-mixed, 32-true
    amp_word,      // amp_bf16, amp_fp16, fp32
    torch_dtype,   // bfloat16, float16, float32
    amp_wrapper,   // AmpOptimWrapper, OptimWrapper
    hf_optim,      // adamw_torch_fused
    word_fused,    // fused, for-loop, foreach
    word_mode,     // none, selective, full
    timm_compile,  // a backend's name
    dynamo,        // a backend's name in capitals
};

struct Alias {
    Setting setting;
    KeyPath key;
    Convention convention = Convention::none;
};

struct Dialect {
    std::string name;              // "hf_trainer"; "saturate" is ours, "plain" hand-written loops
    std::vector<Alias> aliases;    // in order of preference
    std::vector<KeyPath> markers;  // keys that identify the dialect but name no setting

    [[nodiscard]] bool is_ours() const { return name == "saturate"; }
    [[nodiscard]] bool is_free() const { return is_ours() || name == "plain"; }
    // The preferred name of a setting in this dialect, or null.
    [[nodiscard]] const Alias* alias_of(Setting setting) const;
};

[[nodiscard]] std::span<const Dialect> dialects();
[[nodiscard]] const Dialect* find_dialect(std::string_view name);

// The framework's dialect that explains most of the known keys, at least two and one of them its
// own; else plain. A file with a top-level key `job` is ours if it names a reference job or has
// other keys of ours.
[[nodiscard]] const Dialect& recognise_dialect(const Document& document);

struct Found {
    KeyPath path;
    const Node* node = nullptr;
    const Member* member = nullptr;
    std::size_t prefix = 0;  // number of keys in the path before the alias
};

// The keys of a document, without those in sections for validation, test, callbacks and the like.
// Made once per document, because files may be large.
class KeyIndex {
  public:
    KeyIndex(const Document& document, bool ignore_case);
    // Finds the key at the root or below other keys ("train.batch_size" for "batch_size").
    [[nodiscard]] std::vector<Found> find(const KeyPath& key) const;

  private:
    struct Section {
        KeyPath prefix;
        const Node* map;
    };
    void walk(const Node& map, const KeyPath& prefix);

    const Document& document_;
    bool ignore_case_;
    std::vector<Section> sections_;
    std::unordered_map<std::string, std::vector<std::size_t>> by_key_;  // indices in sections_
};

// The names of one dialect in a document. A framework's names count only in the section that has
// most of them.
class DialectKeys {
  public:
    DialectKeys(const KeyIndex& index, const Dialect& dialect);
    // Places are in order of preference.
    [[nodiscard]] std::vector<Found> find(const Alias& alias) const;
    // Every path that an alias or a marker of the dialect explains, with that alias or marker.
    [[nodiscard]] std::vector<std::pair<KeyPath, KeyPath>> explained() const;

  private:
    [[nodiscard]] bool is_home(const Found& found, const KeyPath& key) const;

    const KeyIndex& index_;
    const Dialect& dialect_;
    KeyPath home_;
};

}  // namespace saturate
