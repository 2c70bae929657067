# SPDX-License-Identifier: Apache-2.0
# Sources for source_random_test.cpp: spans.py OUT FILES... writes each file in several styles (as it is, CRLF, tabs, latin-1, no
# newline at the end) to OUT and prints where calls, expressions and runs of statements stand in them, in bytes.
import ast
import json
import os
import sys


def styles(text):
    yield "plain", text.encode()
    yield "crlf", text.replace("\n", "\r\n").encode()
    yield "bom", b"\xef\xbb\xbf" + text.encode()
    yield "no_newline", text.rstrip("\n").encode()
    lines = []
    for line in text.split("\n"):
        blanks = len(line) - len(line.lstrip(" "))
        lines.append("\t" * (blanks // 4) + " " * (blanks % 4) + line[blanks:])
    yield "tabs", "\n".join(lines).encode()
    latin = "# -*- coding: latin-1 -*-\nname = 'caf\xe9'; other = max('\xe9', name)\n" + text
    yield "latin", latin.encode("latin-1", "replace")


def spans(data):
    tree = ast.parse(data)
    encoding = "latin-1" if b"coding: latin-1" in data[:40] else "utf-8"
    bom = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    text = data[bom:].decode(encoding)
    starts = [0]
    for line in text.replace("\r\n", "\n").split("\n"):
        ending = 2 if b"\r\n" in data else 1
        starts.append(starts[-1] + len(line.encode(encoding)) + ending)
    lines = [line.encode() for line in text.replace("\r\n", "\n").split("\n")]

    def at(line, column):
        return bom + starts[line - 1] + len(lines[line - 1][:column].decode().encode(encoding))

    def span(node):
        first = node.decorator_list[0].lineno if getattr(node, "decorator_list", None) else node.lineno
        return [at(first, node.col_offset), at(node.end_lineno, node.end_col_offset)]

    out = {"calls": [], "expressions": [], "statements": []}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            out["calls"].append(span(node))
        for name in ("value", "test", "iter"):
            value = getattr(node, name, None)
            if isinstance(node, ast.stmt) and isinstance(value, ast.expr):
                out["expressions"].append(span(value))
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if not isinstance(body, list) or not all(isinstance(item, ast.stmt) for item in body):
                continue
            ends = [span(item) for item in body]
            out["statements"] += [[a[0], b[1]] for i, a in enumerate(ends) for b in ends[i : i + 3]]
    return out


def main():
    out = []
    for number, path in enumerate(sys.argv[2:]):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for style, data in styles(text):
            try:
                found = spans(data)
            except SyntaxError:  # a file whose strings do not survive the style
                continue
            name = os.path.join(sys.argv[1], "%d-%s.py" % (number, style))
            with open(name, "wb") as file:
                file.write(data)
            out.append(dict(found, file=name))
    print(json.dumps(out))


if __name__ == "__main__":
    main()
