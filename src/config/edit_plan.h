// SPDX-License-Identifier: Apache-2.0
// The parts of apply_edits: turn an edit into patches of bytes for one format. Only for
// config/edit*.cpp.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/document.h"
#include "config/edit.h"
#include "config/lines.h"

namespace saturate {

// Replacements of bytes in one text. None lies inside another.
class Patches {
  public:
    // The order of patches that begin at the same byte.
    enum class Rank { value, comment, line };
    // `depth`: of lines at the same byte, the deepest comes first, so that each stays in its map.
    void add(std::size_t begin, std::size_t end, std::string text, Rank rank = Rank::value,
             std::size_t depth = 0);
    // Returns the new text, or nothing if two patches overlap.
    [[nodiscard]] std::optional<std::string> apply(std::string_view text) const;

  private:
    struct Patch {
        std::size_t begin;
        std::size_t end;
        Rank rank;
        std::size_t depth;
        std::string text;
    };
    std::vector<Patch> patches_;
};

// The place of an edit.
struct EditTarget {
    const Edit* edit = nullptr;
    const Node* map = nullptr;       // has the key, or will have it
    const Member* member = nullptr;  // the key; null if it is to be added
    const Node* brackets = nullptr;  // the outermost map or list in brackets around it
};

// A value as it will be written, and the node that reading it gives.
struct NewValue {
    std::string raw;
    Node node;
};

// Writes the edit's value in this format, with the quotes of the value it replaces. Throws
// UserError if the place cannot hold it.
[[nodiscard]] NewValue render_value(const Document& document, const EditTarget& target);
[[nodiscard]] std::string render_key(const std::string& key, Format format, bool flow);

// Collects the reasons. In the end each line gets one comment.
class Comments {
  public:
    Comments(const Document& document, const Lines& lines) : document_(document), lines_(lines) {}
    // Adds a reason for the value that ends at `end` in the old text. Drops it if a comment is
    // impossible: in JSON, or before further values in brackets that go on in the next line.
    void add(const EditTarget& target, std::size_t end, const std::string& reason);
    void write(Patches& patches) const;

  private:
    struct Comment {
        std::size_t at;
        std::string_view before;  // separator from the value or an older comment
        std::vector<std::string> reasons;
    };
    const Document& document_;
    const Lines& lines_;
    std::vector<Comment> comments_;
};

[[nodiscard]] std::string one_line(const std::string& reason);

// New pairs for the same gap of a map in brackets. They share its commas.
struct NewPairs {
    const Node* map;
    const Member* behind;                                   // null: the brackets are empty
    std::vector<std::pair<EditTarget, std::string>> pairs;  // "key: value"
};

struct EditPlan {
    const Document& document;
    Lines lines;
    Patches patches;
    Comments comments;
    std::vector<NewPairs> new_pairs;
    std::set<const Member*> removed;  // by all edits: no key is added after a removed one
    explicit EditPlan(const Document& d)
        : document(d), lines(d.text(), d.file()), comments(d, lines) {}
};

void change_value(EditPlan& plan, const EditTarget& target, const NewValue& value);
void insert_in_block(EditPlan& plan, const EditTarget& target, const NewValue& value);  // YAML
void insert_in_brackets(EditPlan& plan, const EditTarget& target,
                        const NewValue& value);  // all formats;
void write_new_pairs(EditPlan& plan);            // then this
void insert_in_table(EditPlan& plan, const EditTarget& target, const NewValue& value);  // TOML
void remove_from_block(EditPlan& plan, const EditTarget& target);
void remove_from_brackets(EditPlan& plan, const EditTarget& target);
void remove_from_table(EditPlan& plan, const EditTarget& target);

// Adds a whole line for the target's key after the line that contains byte `at`.
void add_line_behind(EditPlan& plan, const EditTarget& target, std::size_t at,
                     const std::string& line);
// The member after which a new key goes: the named one, else the last. Members to be removed do not
// count. Null if there is none.
[[nodiscard]] const Member* neighbour(const EditPlan& plan, const EditTarget& target);
// Throws UserError: why the edit cannot be made, with the place of the key or of its map.
[[noreturn]] void refuse(const EditTarget& target, const std::string& found,
                         const std::string& expected, const std::string& fix);

// True if the trees differ only in the targets' keys, with the new values.
[[nodiscard]] bool only_targets_differ(const Node& before, const Node& after,
                                       const std::vector<EditTarget>& targets,
                                       const std::vector<NewValue>& values);

}  // namespace saturate
