// SPDX-License-Identifier: Apache-2.0
// Wraps toml++ (older torchtitan configurations). toml++ sorts a table's keys by name, so we
// restore the order of the file. Its places count characters from 1.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "config/lines.h"
#include "config/reader.h"

namespace saturate {

namespace {

// toml++ limits brackets but not dots: a key with a million parts would overflow the stack. Dots in
// quoted text count too; a hundred of them without a comma in between are no configuration either.
std::optional<std::size_t> find_endless_key(std::string_view text) {
    std::size_t dots = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '.' && ++dots > kDeepest) return at;
        if (std::string_view("=,{}\n").find(text[at]) != std::string_view::npos) dots = 0;
    }
    return std::nullopt;
}

class TomlReader {
  public:
    TomlReader(std::string_view text, const std::string& file, std::vector<Problem>& problems)
        : text_(text), lines_(text, file), problems_(problems) {}

    Node map(const toml::table& table, bool flow) {
        Node node = start(Node::Kind::map, table.source());
        node.flow = flow;
        std::vector<std::pair<const toml::key*, const toml::node*>> order;
        for (auto&& [key, value] : table) order.emplace_back(&key, &value);
        std::ranges::sort(order, [](const auto& a, const auto& b) {
            auto place = [](const auto& pair) {
                toml::source_position at = pair.first->source().begin;
                return std::pair(at.line, at.column);
            };
            return place(a) < place(b);
        });
        for (const auto& [key, value] : order) {
            Member member{.key = std::string(key->str())};
            member.begin = at(key->source().begin);
            member.end = at(key->source().end);
            member.place = lines_.place(member.begin);
            member.value = read(*value, flow);
            node.members.push_back(std::move(member));
        }
        return node;
    }

    std::size_t at(toml::source_position position) const {
        if (position.line == 0 || position.line > lines_.count()) return text_.size();
        std::size_t at = lines_.start(position.line - 1);
        for (toml::source_index column = 1; column < position.column && at < text_.size();
             ++column) {
            do {
                ++at;
            } while (at < text_.size() && (static_cast<unsigned char>(text_[at]) & 0xC0) == 0x80);
        }
        return at;
    }

    Lines& lines() { return lines_; }

  private:
    Node start(Node::Kind kind, const toml::source_region& source) {
        Node node;
        node.kind = kind;
        node.begin = at(source.begin);
        node.end = std::max(node.begin, at(source.end));
        node.place = lines_.place(node.begin);
        return node;
    }

    void stop(Problem problem) {
        problems_.push_back(std::move(problem));
        throw StopReading();
    }

    Node read(const toml::node& value, bool flow) {
        if (++values_ > kMostValues) stop(too_many(lines_.place(at(value.source().begin))));
        if (++depth_ > kDeepest) stop(too_deep(lines_.place(at(value.source().begin))));
        Node node = read_value(value, flow);
        --depth_;
        return node;
    }

    Node read_value(const toml::node& value, bool flow) {
        if (const toml::table* table = value.as_table())
            return map(*table, flow || table->is_inline());
        if (const toml::array* array = value.as_array()) {
            Node node = start(Node::Kind::sequence, value.source());
            node.flow =
                text_.substr(node.begin).starts_with("[[") ? !array->is_array_of_tables() : true;
            for (const toml::node& item : *array) node.items.push_back(read(item, node.flow));
            return node;
        }
        Node node = start(Node::Kind::scalar, value.source());
        node.flow = flow;
        if (const auto* text = value.as_string()) {
            node.text = text->get();
            node.quoted = true;
        } else {
            node.text = text_.substr(node.begin, node.end - node.begin);
        }
        return node;
    }

    std::string_view text_;
    Lines lines_;
    std::vector<Problem>& problems_;
    std::size_t values_ = 0;
    std::size_t depth_ = 0;
};

Problem explain(const toml::parse_error& error, Place where, std::string_view line) {
    std::string_view said = error.description();
    std::string here = trim(line).empty() ? "" : ": " + in_quotes(trim(line));
    auto says = [&](std::string_view part) { return said.find(part) != std::string_view::npos; };
    if (says("redefine existing")) {
        return {std::move(where), "a key or table that already exists" + here,
                "each key once in its table", "remove one of the two"};
    }
    if (says("could not determine value type")) {
        return {std::move(where), "not a valid TOML value" + here,
                "a number, true, false, or a text in quotes", "write the word in quotes"};
    }
    if (says("expected value")) {
        return {std::move(where), "a key without a value" + here, "key = value", "add the value"};
    }
    if (says("encountered end-of-file")) {
        return {std::move(where), "the file ends inside a value" + here,
                "the closing quote or bracket", "close it"};
    }
    return {std::move(where), "is not TOML" + here, "key = value lines under [table] headers",
            "check this line and the one before it"};
}

}  // namespace

Node read_toml(std::string_view text, const std::string& file, std::vector<Problem>& problems) {
    TomlReader reader(text, file, problems);
    if (std::optional<std::size_t> at = find_endless_key(text)) {
        problems.push_back(too_deep(reader.lines().place(*at)));
        return {};
    }
    try {
        toml::table root = toml::parse(text, std::string_view(file));
        return reader.map(root, false);
    } catch (const StopReading&) {
    } catch (const toml::parse_error& error) {
        std::size_t at = reader.at(error.source().begin);
        Lines& lines = reader.lines();
        std::string_view line = text.substr(lines.begin(at), lines.end(at) - lines.begin(at));
        problems.push_back(explain(error, lines.place(at), line));
    }
    return {};
}

}  // namespace saturate
