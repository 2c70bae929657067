// SPDX-License-Identifier: Apache-2.0
// The names that frameworks give to the settings of the schema (src/config/aliases.csv), and which
// of these dialects a file is written in.
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

// How a value is meant where its name alone does not tell.
enum class Convention {
    none,
    epochs,        // an interval in epochs
    steps,         // an interval in optimizer steps
    by_epoch,      // in epochs or steps, as another key says: left alone
    unit_text,     // "2000ba": left alone
    tokens,        // a batch counted in tokens: left alone
    total,         // a batch over all GPUs
    nominal,       // ultralytics accumulates up to it
    ultralytics,   // a batch; -1 and fractions choose by themselves
    per_rank,      // workers of each process
    self_scaling,  // a learning rate that the framework scales with the batch
    boolean,       // mixed precision on or off, the type chosen by the framework
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
    std::string name;            // "hf_trainer"; "saturate" is ours, "plain" a hand-written loop's
    std::vector<Alias> aliases;  // in order of preference
    std::vector<KeyPath>
        markers;  // keys that say nothing about a setting but give the dialect away

    [[nodiscard]] bool is_ours() const { return name == "saturate"; }
    [[nodiscard]] bool is_free() const { return is_ours() || name == "plain"; }
    // The first name that the dialect has for a setting, or null.
    [[nodiscard]] const Alias* alias_of(Setting setting) const;
};

[[nodiscard]] std::span<const Dialect> dialects();
[[nodiscard]] const Dialect* find_dialect(std::string_view name);

// The dialect that explains most of the keys that any of them knows, with one of its own among
// them; plain when there is none. A file with a top-level key `job` that is a word is ours.
[[nodiscard]] const Dialect& recognise_dialect(const Document& document);

struct Found {
    KeyPath path;
    const Node* node = nullptr;
    const Member* member = nullptr;
    std::size_t prefix = 0;  // keys of the path before the alias begins
};

// The keys of a document, except those below keys of validation, test, callbacks and the like. Made
// once, as files may be large.
class KeyIndex {
  public:
    KeyIndex(const Document& document, bool ignore_case);
    // At the root, or below other keys ("train.batch_size" for "batch_size").
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
    std::unordered_map<std::string, std::vector<std::size_t>> by_key_;  // to sections
};

// The names of one dialect in a document. A framework's count only where most of them stand.
class DialectKeys {
  public:
    DialectKeys(const KeyIndex& index, const Dialect& dialect);
    // Several places come in order of preference.
    [[nodiscard]] std::vector<Found> find(const Alias& alias) const;
    // Every path that the dialect explains by an alias or a marker, and that name.
    [[nodiscard]] std::vector<std::pair<KeyPath, KeyPath>> explained() const;

  private:
    [[nodiscard]] bool is_home(const Found& found, const KeyPath& key) const;

    const KeyIndex& index_;
    const Dialect& dialect_;
    KeyPath home_;
};

}  // namespace saturate
