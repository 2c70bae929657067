// SPDX-License-Identifier: Apache-2.0
// Wraps yaml-cpp 0.7. The marks of its events count bytes after a byte order mark. A mark is before
// the value's anchor and tag; for an empty value it is the mark of whatever comes next. Aliases are
// not expanded.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <istream>
#include <stdexcept>
#include <streambuf>

#include "base/text.h"
#include "config/lines.h"
#include "config/reader.h"
#include "config/yaml_message.h"
#include "config/yaml_scan.h"

namespace saturate {

namespace {

class View : public std::streambuf {
  public:
    explicit View(std::string_view text) {
        char* data = const_cast<char*>(text.data());  // the interface wants char*; only read
        setg(data, data, data + text.size());
    }
};

// One open map or list.
struct OpenNode {
    Node node;
    std::size_t column = 0;    // of its keys or dashes, from 0; block style only
    bool in_brackets = false;  // flow style with its own brackets ([a: 1] has a map without)
    bool has_key = false;      // a map that waits for the value of `key`
    Member key = {};
};

class TreeBuilder : public YAML::EventHandler {
  public:
    TreeBuilder(std::string_view text, const std::string& file, std::vector<Problem>& problems)
        : text_(text),
          lines_(text, file),
          problems_(problems),
          shift_(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0) {}

    Node take_root() { return std::move(root_); }
    Lines& lines() { return lines_; }
    std::size_t at(const YAML::Mark& mark) const {
        // At the end of the text the library also counts its own end character.
        return mark.is_null() ? text_.size()
                              : std::min(static_cast<std::size_t>(mark.pos) + shift_, text_.size());
    }

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (++documents_ == 2) second = lines_.place(at(mark));
    }
    std::optional<Place> second;  // start of another document
    void OnDocumentEnd() override {}

    void OnAnchor(const YAML::Mark&, const std::string& name) override { anchor_ = name; }

    void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { add_empty(at(mark)); }

    void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
        Node node = start(Node::Kind::alias, at(mark));
        node.end = name_end(text_, node.begin + 1);
        node.text = text_.substr(node.begin + 1, node.end - node.begin - 1);
        add(std::move(node));
    }

    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  const std::string& value) override {
        std::size_t begin = value_begin(at(mark));
        char first = begin < text_.size() ? text_[begin] : '\0';
        bool is_quoted = first == '"' || first == '\'';
        bool is_block = !in_flow() && (first == '|' || first == '>');
        if (value.empty() && (!is_quoted || !waits_for(begin))) {
            // A tag without a value: the library turns it into an empty text.
            tagged_ = true;
            add_empty(at(mark));
            return;
        }
        Node node = start(Node::Kind::scalar, begin);
        node.text = value;
        node.quoted = is_quoted || is_block || tag == "tag:yaml.org,2002:str";
        node.tagged = !tag.empty() && tag != "?" && tag != "!";
        std::optional<std::size_t> end = is_quoted  ? quoted_end(text_, begin)
                                         : is_block ? block_end(text_, begin, column())
                                                    : plain_end(text_, begin, value);
        if (is_quoted && !end) {
            // The library accepts the end of the file as the closing quote.
            problems_.push_back({.where = node.place,
                                 .found = "a quote that is never closed",
                                 .expected = "the same quote at the end",
                                 .fix = "close the quote"});
        }
        node.placed = end.has_value();
        node.end = end.value_or(begin);
        add(std::move(node));
    }

    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                         YAML::EmitterStyle::value style) override {
        tagged_ = tag != "?";
        open(Node::Kind::sequence, at(mark), style, '[');
    }
    void OnSequenceEnd() override { close(']'); }
    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                    YAML::EmitterStyle::value style) override {
        tagged_ = tag != "?";
        open(Node::Kind::map, at(mark), style, '{');
    }
    void OnMapEnd() override {
        report_duplicates(frames_.back().node, problems_);
        close('}');
    }

  private:
    [[nodiscard]] bool in_flow() const { return !frames_.empty() && frames_.back().node.flow; }
    [[nodiscard]] bool in_key() const {
        return !frames_.empty() && frames_.back().node.kind == Node::Kind::map &&
               !frames_.back().has_key;
    }
    [[nodiscard]] std::size_t column() const { return frames_.empty() ? 0 : frames_.back().column; }

    [[nodiscard]] std::size_t value_begin(std::size_t mark) const {
        std::size_t behind = skip_properties(text_, mark);
        return behind == mark ? mark : skip_space(text_, behind);
    }

    // True if the quoted text at `begin` is the awaited value, false if it is the next key.
    [[nodiscard]] bool waits_for(std::size_t begin) const {
        if (in_key() || in_flow()) return true;
        std::optional<std::size_t> end = quoted_end(text_, begin);
        std::size_t next = end ? skip_blanks(text_, *end) : text_.size();
        return next == text_.size() || text_[next] != ':';
    }

    Node start(Node::Kind kind, std::size_t begin) {
        if (++values_ > kMostValues) {
            problems_.push_back(too_many(lines_.place(begin)));
            throw StopReading();
        }
        Node node;
        node.kind = kind;
        node.begin = node.end = begin;
        node.place = lines_.place(begin);
        node.flow = in_flow();
        node.anchor = std::exchange(anchor_, {});
        tagged_ = false;
        if (!node.flow) check_tab(begin);
        return node;
    }

    // yaml-cpp accepts a tab before a value as a space; other readers do not.
    void check_tab(std::size_t begin) {
        std::size_t line = lines_.begin(begin);
        std::string_view before = text_.substr(line, begin - std::min(begin, line));
        std::size_t tab = before.find('\t');
        if (tab == std::string_view::npos || skip_blanks(before, 0) != before.size()) return;
        problems_.push_back({.where = lines_.place(line + tab),
                             .found = "a tab in the indentation",
                             .expected = "spaces",
                             .fix = "replace the tab with spaces"});
    }

    // Adds a value that is not written, or is written as null or ~.
    void add_empty(std::size_t mark) {
        bool own_properties = !anchor_.empty() || tagged_;
        std::size_t begin = own_properties ? value_begin(mark) : mark;
        std::size_t word = null_word(text_, begin);
        bool in_map = !frames_.empty() && frames_.back().has_key;
        if (in_key()) {
            add(start(Node::Kind::null, mark));
            return;
        }
        std::size_t colon = text_.size();
        if (in_map) {
            const Member& key = frames_.back().key;
            colon = skip_space(text_, key.end);
            bool has_colon = colon < text_.size() && text_[colon] == ':';
            if (!has_colon) {
                colon = text_.size();
                check_colon(key);
            }
            if (has_colon && begin <= colon) word = 0;  // the mark belongs to the key
        }
        if (word == 0) begin = empty_begin(mark, own_properties, in_map, colon);
        Node node = start(Node::Kind::null, begin);
        node.end = begin + word;
        node.placed = word > 0 || own_properties || (in_map && colon < text_.size());
        add(std::move(node));
    }

    // The library accepts a word in the last line as a key without a value.
    void check_colon(const Member& key) {
        std::size_t line = lines_.begin(key.begin);
        std::string_view before = text_.substr(line, key.begin - std::min(key.begin, line));
        if (in_flow() || before.find('?') != std::string_view::npos) return;
        problems_.push_back(
            {.where = key.place,
             .found = "a key without a colon: " + in_quotes(std::string_view(key.key)),
             .expected = "key: value",
             .fix = "add the colon, or remove the line"});
    }

    // The place for an empty value: after its anchor or tag, its colon or its dash.
    [[nodiscard]] std::size_t empty_begin(std::size_t mark, bool own_properties, bool in_map,
                                          std::size_t colon) const {
        if (own_properties) return skip_properties(text_, mark, true);
        if (in_map && colon < text_.size()) return colon + 1;
        if (frames_.empty()) return mark;
        std::size_t dash = skip_space(text_, cursor_);
        bool is_item = !in_map && !in_flow() && dash < text_.size() && text_[dash] == '-';
        return is_item ? dash + 1 : cursor_;
    }

    void open(Node::Kind kind, std::size_t mark, YAML::EmitterStyle::value style, char bracket) {
        // "&a key: 1" begins a map too, but the anchor belongs to the key.
        bool own_properties = !anchor_.empty() || tagged_;
        std::size_t begin = own_properties ? value_begin(mark) : mark;
        if (frames_.size() >= kDeepest) {
            problems_.push_back(too_deep(lines_.place(begin)));
            throw StopReading();
        }
        OpenNode frame;
        bool flow = style == YAML::EmitterStyle::Flow || in_flow();
        frame.in_brackets = flow && begin < text_.size() && text_[begin] == bracket;
        frame.node = start(kind, begin);
        frame.node.flow = flow;
        if (!flow) frame.column = begin - std::min(begin, lines_.begin(begin));
        cursor_ = std::max(cursor_, frame.in_brackets ? begin + 1 : begin);
        frames_.push_back(std::move(frame));
    }

    void close(char bracket) {
        OpenNode frame = std::move(frames_.back());
        frames_.pop_back();
        Node node = std::move(frame.node);
        if (frame.in_brackets) {
            std::optional<std::size_t> end = find_closing(text_, cursor_, bracket);
            node.placed = end.has_value();
            cursor_ = std::max(cursor_, end ? *end + 1 : 0);
        }
        node.end = std::max(cursor_, node.begin);
        add(std::move(node));
    }

    void add(Node node) {
        cursor_ = std::max(cursor_, node.end);
        if (frames_.empty()) {
            add_document(std::move(node));
            return;
        }
        OpenNode& frame = frames_.back();
        if (frame.node.kind == Node::Kind::sequence) {
            frame.node.items.push_back(std::move(node));
        } else if (frame.has_key) {
            frame.key.value = std::move(node);
            frame.node.members.push_back(std::move(frame.key));
            frame.has_key = false;
        } else {
            add_key(frame, std::move(node));
        }
    }

    // Programs that read several documents join their keys. Of two equal keys, the first counts.
    void add_document(Node node) {
        if (documents_ == 1 || root_.kind == Node::Kind::null) {
            root_ = std::move(node);
            return;
        }
        if (root_.kind != Node::Kind::map || node.kind != Node::Kind::map) return;
        for (Member& member : node.members) {
            if (!root_.find(member.key)) root_.members.push_back(std::move(member));
        }
        root_.end = std::max(root_.end, node.end);
    }

    void add_key(OpenNode& frame, Node node) {
        frame.has_key = true;
        if (node.kind != Node::Kind::scalar) {
            const char* what = node.kind == Node::Kind::null       ? "an empty value"
                               : node.kind == Node::Kind::alias    ? "an alias"
                               : node.kind == Node::Kind::sequence ? "a list"
                                                                   : "a map";
            problems_.push_back({.where = node.place,
                                 .found = std::string("a key that is ") + what,
                                 .expected = "a word or a number as the key",
                                 .fix = "write the key as a word, in quotes if necessary"});
            node.text = std::to_string(problems_.size()) + "\n";  // makes the key unique
        }
        frame.key = Member{.key = std::move(node.text),
                           .place = std::move(node.place),
                           .begin = node.begin,
                           .end = node.end,
                           .placed = node.placed};
    }

    std::string_view text_;
    Lines lines_;
    std::vector<Problem>& problems_;
    std::size_t shift_;
    std::vector<OpenNode> frames_;
    Node root_;
    std::string anchor_;      // of the next node
    bool tagged_ = false;     // the next empty value has a tag
    std::size_t cursor_ = 0;  // the end of the last piece read
    std::size_t values_ = 0;
    int documents_ = 0;
};

// Reports every line with a tab in its indentation, not only the first, where the library stopped.
bool report_tabs(std::string_view text, Lines& lines, std::size_t from,
                 std::vector<Problem>& problems) {
    auto tab_in = [&](std::size_t line) {
        std::size_t end = skip_blanks(text, line);
        bool has_content =
            end < text.size() && text[end] != '\r' && text[end] != '\n' && text[end] != '#';
        std::size_t tab = text.substr(line, end - line).find('\t');
        return has_content && tab != std::string_view::npos ? line + tab : std::string_view::npos;
    };
    std::size_t first = lines.index(from);
    if (tab_in(lines.start(first)) == std::string_view::npos) return false;
    for (std::size_t line = first; line < lines.count(); ++line) {
        std::size_t tab = tab_in(lines.start(line));
        if (tab == std::string_view::npos) continue;
        problems.push_back({.where = lines.place(tab),
                            .found = "a tab in the indentation",
                            .expected = "spaces",
                            .fix = "replace the tab with spaces"});
    }
    return true;
}

}  // namespace

Node read_yaml(std::string_view text, const std::string& file, std::vector<Problem>& problems,
               std::optional<Place>& second) {
    TreeBuilder builder(text, file, problems);
    try {
        View view(text);
        std::istream stream(&view);
        YAML::Parser parser(stream);
        while (parser.HandleNextDocument(builder)) {
        }
    } catch (const StopReading&) {
    } catch (const YAML::Exception& error) {
        std::size_t at = builder.at(error.mark);
        Lines& lines = builder.lines();
        if (!report_tabs(text, lines, at, problems)) {
            std::string_view line = text.substr(lines.begin(at), lines.end(at) - lines.begin(at));
            problems.push_back(explain_yaml_error(lines.place(at), error.msg, line));
        }
    } catch (const std::runtime_error& error) {  // the library's "internal error"
        problems.push_back(explain_yaml_error({file}, error.what(), ""));
    }
    second = builder.second;
    return builder.take_root();
}

}  // namespace saturate
