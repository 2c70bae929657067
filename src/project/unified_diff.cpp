// SPDX-License-Identifier: Apache-2.0
#include "project/unified_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace saturate {

namespace {

constexpr std::size_t kContext = 3;

using Lines = std::vector<std::string_view>;  // each line includes its newline

Lines lines_of(std::string_view text) {
    Lines out;
    while (!text.empty()) {
        std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
        out.push_back(text.substr(0, end));
        text.remove_prefix(end);
    }
    return out;
}

enum class Op { keep, remove, add };

// The shortest edit script from a to b (Myers). The caller removed the common head and tail, so the
// script is short for a few edits of a long file.
std::vector<Op> script(const Lines& a, const Lines& b) {
    int n = static_cast<int>(a.size()), m = static_cast<int>(b.size()), most = n + m;
    std::vector<std::vector<int>> trace;
    std::vector<int> far(static_cast<std::size_t>(2 * most + 2), 0);
    auto at = [&](int k) -> int& { return far[static_cast<std::size_t>(k + most)]; };
    bool found = false;
    for (int d = 0; d <= most && !found; ++d) {
        // The way back needs only the diagonals of this round.
        trace.emplace_back(far.begin() + most - d, far.begin() + most + d + 1);
        for (int k = -d; k <= d && !found; k += 2) {
            int x = k == -d || (k != d && at(k - 1) < at(k + 1)) ? at(k + 1) : at(k - 1) + 1;
            int y = x - k;
            while (x < n && y < m &&
                   a[static_cast<std::size_t>(x)] == b[static_cast<std::size_t>(y)])
                ++x, ++y;
            at(k) = x;
            found = x >= n && y >= m;
        }
    }
    std::vector<Op> out;
    int x = n, y = m;
    for (int d = static_cast<int>(trace.size()) - 1; d >= 0; --d) {
        const std::vector<int>& row = trace[static_cast<std::size_t>(d)];
        auto old = [&](int k) {
            int index = k + d;
            return index < 0 || index >= static_cast<int>(row.size())
                       ? 0
                       : row[static_cast<std::size_t>(index)];
        };
        int k = x - y;
        bool is_down = k == -d || (k != d && old(k - 1) < old(k + 1));
        int from_k = is_down ? k + 1 : k - 1;
        int from_x = d == 0 ? 0 : old(from_k), from_y = d == 0 ? 0 : from_x - from_k;
        while (x > from_x && y > from_y) {
            out.push_back(Op::keep);
            --x, --y;
        }
        if (d > 0) out.push_back(is_down ? Op::add : Op::remove);
        x = from_x;
        y = from_y;
    }
    std::ranges::reverse(out);
    return out;
}

void add_line(std::string& out, char sign, std::string_view line) {
    out += sign;
    out += line;
    if (!line.ends_with('\n')) out += "\n\\ No newline at end of file\n";
}

std::string range(std::size_t begin, std::size_t count) {
    // For an empty side, the line before it.
    return fmt::format("{},{}", count == 0 ? begin : begin + 1, count);
}

}  // namespace

std::string unified_diff(std::string_view file, std::string_view before, std::string_view after) {
    if (before == after) return "";
    Lines a = lines_of(before), b = lines_of(after);
    std::size_t head = 0, tail = 0, least = std::min(a.size(), b.size());
    while (head < least && a[head] == b[head]) ++head;
    while (tail < least - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
    std::vector<Op> ops(head, Op::keep);
    std::vector<Op> middle =
        script({a.begin() + static_cast<long>(head), a.end() - static_cast<long>(tail)},
               {b.begin() + static_cast<long>(head), b.end() - static_cast<long>(tail)});
    ops.insert(ops.end(), middle.begin(), middle.end());
    ops.insert(ops.end(), tail, Op::keep);

    // A tab ends a name that contains a blank; otherwise patch takes its first word only.
    std::string_view end = file.find(' ') == std::string_view::npos ? "" : "\t";
    std::string out = fmt::format("--- a/{0}{1}\n+++ b/{0}{1}\n", file, end);
    std::size_t x = 0, y = 0, i = 0;
    while (i < ops.size()) {
        if (ops[i] == Op::keep) {
            ++i, ++x, ++y;
            continue;
        }
        std::size_t lead = std::min(kContext, x);
        std::size_t first_a = x - lead, first_b = y - lead;
        std::string body;
        for (std::size_t j = first_a; j < x; ++j) add_line(body, ' ', a[j]);
        for (std::size_t kept = 0; i < ops.size(); ++i) {
            if (ops[i] == Op::keep) {
                // The hunk goes on if another change is near.
                std::size_t next = i;
                while (next < ops.size() && ops[next] == Op::keep) ++next;
                bool is_near = next < ops.size() && next - i + kept <= 2 * kContext;
                if (!is_near && kept >= kContext) break;
                add_line(body, ' ', a[x]);
                ++x, ++y, ++kept;
            } else if (ops[i] == Op::remove) {
                add_line(body, '-', a[x++]);
                kept = 0;
            } else {
                add_line(body, '+', b[y++]);
                kept = 0;
            }
        }
        out += fmt::format("@@ -{} +{} @@\n{}", range(first_a, x - first_a),
                           range(first_b, y - first_b), body);
    }
    return out;
}

}  // namespace saturate
