// SPDX-License-Identifier: Apache-2.0
// Any bytes as a configuration: read, or refused with a UserError that has a message; never a
// crash, another exception or a value outside the text. The first byte chooses the format.

#include "config/document.h"
#include "fuzz_input.h"

namespace {

using namespace saturate;

void check(const Node& node, std::size_t size) {
    require(node.begin <= node.end && node.end <= size && node.place.line > 0);
    for (const Node& item : node.items) check(item, size);
    for (const Member& member : node.members) {
        require(member.begin <= member.end && member.end <= size && member.place.line > 0);
        check(member.value, size);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const char* file = data[0] == 'J' ? "a.json" : data[0] == 'T' ? "a.toml" : "a.yaml";
    std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
    try {
        Document document = Document::parse(text, file);
        require(document.root().kind == Node::Kind::map && document.text() == text);
        check(document.root(), text.size());
    } catch (const UserError& error) {
        require(!error.problems().empty() && !error.problems()[0].found.empty());
    }
    return 0;
}
