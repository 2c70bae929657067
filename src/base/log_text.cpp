// SPDX-License-Identifier: Apache-2.0
#include "base/log_text.h"

#include "base/text.h"

namespace saturate {

std::vector<std::string_view> terminal_lines(std::string_view log) {
    std::vector<std::string_view> lines = split(log, '\n');
    for (std::string_view& line : lines) {
        std::size_t end = line.find_last_not_of('\r');
        line = line.substr(0, end == std::string_view::npos ? 0 : end + 1);
        line.remove_prefix(line.rfind('\r') + 1);  // npos + 1 is 0
    }
    return lines;
}

std::string shortened(std::string_view utf8, std::size_t limit) {
    auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
    std::size_t used = 0;
    for (std::size_t at = 0; at < utf8.size(); ++at) {
        if (begins(utf8[at]) && used++ == limit) return std::string(utf8.substr(0, at)) + "...";
    }
    return std::string(utf8);
}

}  // namespace saturate
