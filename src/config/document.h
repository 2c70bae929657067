// SPDX-License-Identifier: Apache-2.0
// A user's configuration file as a tree. Every key and value knows its place and its bytes, so that
// messages can point at it and edits can leave the rest unchanged. Reads YAML, JSON and TOML,
// depending on the file's name.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace saturate {

using KeyPath = std::vector<std::string>;                  // {"train", "batch_size"}
[[nodiscard]] std::string path_text(const KeyPath& path);  // "train.batch_size"

struct Member;

struct Node {
    enum class Kind { null, scalar, sequence, map, alias };
    Kind kind = Kind::null;
    std::string text;     // a scalar without quotes and escapes; an alias's anchor name
    bool quoted = false;  // in quotes or as a block: always a word
    Place place;
    // The bytes of the value in the file, [begin, end): the raw scalar with its quotes, without
    // anchor, tag or comment. An empty value has none, so both are equal.
    std::size_t begin = 0;
    std::size_t end = 0;
    bool placed = true;   // begin and end are certain; else the value cannot be edited
    bool flow = false;    // a map or sequence in brackets, or inside one
    std::string anchor;   // the name of an anchor on this node
    bool tagged = false;  // has a tag (!!bool, !ref) that sets its type: we leave the value alone
    std::vector<Node> items;      // of a sequence
    std::vector<Member> members;  // of a map, in file order

    // The value of a key in this map, or null. "<<" is an ordinary key here.
    [[nodiscard]] const Node* find(std::string_view key) const;
};

struct Member {
    std::string key;
    Place place;
    std::size_t begin = 0;  // bytes of the key
    std::size_t end = 0;
    bool placed = true;  // begin and end are certain
    Node value = {};
};

enum class Format { yaml, json, toml };

class Document {
  public:
    // Throws UserError with all mistakes that can be seen at once: syntax, duplicate keys, tabs,
    // binary content, nesting too deep, no map at the top. Aliases are not expanded, so a file of
    // nested aliases costs nothing.
    static Document parse(std::string text, const std::string& file);
    // Reads the file (at most kLargest bytes) and parses it.
    static Document read(const std::string& file);
    static constexpr std::size_t kLargest = 16 << 20;

    [[nodiscard]] const std::string& text() const { return text_; }
    [[nodiscard]] const std::string& file() const { return file_; }
    [[nodiscard]] Format format() const { return format_; }
    [[nodiscard]] const Node& root() const { return root_; }
    // The start of the file's second document, if any. The keys of all documents are joined.
    [[nodiscard]] const std::optional<Place>& second_document() const { return second_; }

    // Follows keys from the root, through aliases. Null if a key is missing.
    [[nodiscard]] const Node* find(const KeyPath& path) const;
    // The node that an alias refers to; another node stays itself.
    [[nodiscard]] const Node* resolve(const Node& node) const;

  private:
    std::string text_;
    std::string file_;
    Format format_ = Format::yaml;
    Node root_;
    std::optional<Place> second_;
};

}  // namespace saturate
