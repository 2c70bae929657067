// SPDX-License-Identifier: Apache-2.0
// The parts of apply_edits: what an edit means in one format becomes patches of bytes. Only for
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

// Replacements of bytes of one text, none inside another.
class Patches {
  public:
    // What stands first where several begin at the same byte.
    enum class Rank { value, comment, line };
    // `depth`: of lines at the same byte the deepest stands first, so that each ends its own map.
    void add(std::size_t begin, std::size_t end, std::string text, Rank rank = Rank::value,
             std::size_t depth = 0);
    // The new text; nothing when two of them meet.
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

// Where an edit goes.
struct EditTarget {
    const Edit* edit = nullptr;
    const Node* map = nullptr;       // holds the key, or will
    const Member* member = nullptr;  // the key; null when it is to be added
    const Node* brackets = nullptr;  // the outermost map or list in brackets around it
};

// A value as it is to be written, and what reading it gives.
struct NewValue {
    std::string raw;
    Node node;
};

// How the edit's value is written in this format, in the quotes of the value it replaces. Throws
// UserError when it cannot stand there.
[[nodiscard]] NewValue render_value(const Document& document, const EditTarget& target);
[[nodiscard]] std::string render_key(const std::string& key, Format format, bool flow);

// Collects the reasons; each line gets one comment in the end.
class Comments {
  public:
    Comments(const Document& document, const Lines& lines) : document_(document), lines_(lines) {}
    // A reason for what ends at `end` in the old text. Dropped where no comment can stand: in JSON,
    // or before further values of brackets that go on in the next line.
    void add(const EditTarget& target, std::size_t end, const std::string& reason);
    void write(Patches& patches) const;

  private:
    struct Comment {
        std::size_t at;
        std::string_view before;  // what parts it from the value, or from an older comment
        std::vector<std::string> reasons;
    };
    const Document& document_;
    const Lines& lines_;
    std::vector<Comment> comments_;
};

[[nodiscard]] std::string one_line(const std::string& reason);

// Pairs that go into the same gap of a map in brackets: they share its commas.
struct NewPairs {
    const Node* map;
    const Member* behind;                                   // null: into empty brackets
    std::vector<std::pair<EditTarget, std::string>> pairs;  // "key: value"
};

struct EditPlan {
    const Document& document;
    Lines lines;
    Patches patches;
    Comments comments;
    std::vector<NewPairs> new_pairs;
    std::set<const Member*> removed;  // by all edits: nothing is added behind what goes
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

// Puts a whole line for the target's key behind the line that holds byte `at`.
void add_line_behind(EditPlan& plan, const EditTarget& target, std::size_t at,
                     const std::string& line);
// The member behind which a new key goes: the one that is named, else the last; of those that stay.
// Null when there is none.
[[nodiscard]] const Member* neighbour(const EditPlan& plan, const EditTarget& target);
// Why the edit cannot be done, with the place of the key or of its map.
[[noreturn]] void refuse(const EditTarget& target, const std::string& found,
                         const std::string& expected, const std::string& fix);

// Whether the two trees differ in the targets' keys only, and as they should.
[[nodiscard]] bool only_targets_differ(const Node& before, const Node& after,
                                       const std::vector<EditTarget>& targets,
                                       const std::vector<NewValue>& values);

}  // namespace saturate
