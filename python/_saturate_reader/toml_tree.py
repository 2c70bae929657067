# SPDX-License-Identifier: Apache-2.0
"""TOML as a tree with bytes: tables, dotted keys, values on one line and arrays
over several lines."""

import re

from .tree import Node, TreeError
from .yaml_tree import read_json

PART = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)"""
KEY = re.compile(r"\s*(%s(?:\s*\.\s*%s)*)\s*=\s*" % (PART, PART))
TABLE = re.compile(r"\s*(\[\[?)\s*(%s(?:\s*\.\s*%s)*)\s*\]\]?\s*(?:#.*)?$" % (PART, PART))


def _parts(text):
    return [p.strip("'\"") for p in re.findall(PART, text)]


def _below(root, parts, line):
    node = root
    for part in parts:
        found = node.find(part)
        if found is None:
            found = Node("map", line)
            node.members.append((part, line, None, found))
        if found.kind == "list" and found.items:
            found = found.items[-1]
        if found.kind != "map":
            raise TreeError("%s is a value and a table" % part, line)
        node = found
    return node


def read_toml(data):
    text = data.decode("latin-1")
    root = Node("map", 1)
    table = root
    at = 3 if text.startswith("\xef\xbb\xbf") else 0
    line = 1
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        row = text[at:end].rstrip("\r")
        start, here = at, line
        at, line = end + 1, line + 1
        if not row.strip() or row.lstrip().startswith("#"):
            continue
        match = TABLE.match(row)
        if match:
            parts = _parts(match.group(2))
            if match.group(1) == "[[":
                parent = _below(root, parts[:-1], here)
                many = parent.find(parts[-1])
                if many is None:
                    many = Node("list", here)
                    parent.members.append((parts[-1], here, start, many))
                table = Node("map", here)
                many.items.append(table)
            else:
                table = _below(root, parts, here)
            continue
        match = KEY.match(row)
        if not match:
            raise TreeError("neither a key with a value nor a table", here)
        begin = start + match.end()
        stop = _value_end(text, begin, here)
        parts = _parts(match.group(1))
        raw = text[begin:stop].rstrip()
        node = _value(data, raw, begin, here)
        _below(table, parts[:-1], here).members.append((parts[-1], here, start + match.start(1), node))
        after = text.find("\n", stop)
        after = len(text) if after < 0 else after
        line += text.count("\n", at, after + 1) if after + 1 > at else 0
        at = max(at, after + 1)
    return [root]


def _value_end(text, begin, line):
    """Returns the end of the value that starts here; strings and brackets may span lines."""
    depth, at = 0, begin
    while at < len(text):
        for quote in ('"""', "'''", '"', "'"):
            if text.startswith(quote, at):
                close = at + len(quote)
                while True:
                    close = text.find(quote, close)
                    if close < 0:
                        raise TreeError("a quote is never closed", line)
                    if quote[0] == '"' and text[close - 1] == "\\" and text[close - 2] != "\\":
                        close += 1
                        continue
                    break
                at = close + len(quote)
                break
        else:
            c = text[at]
            if c in "[{":
                depth += 1
            elif c in "]}":
                depth -= 1
            elif c == "#":
                if depth == 0:
                    return at
                at = text.find("\n", at)
                if at < 0:
                    return len(text)
                continue
            elif c in "\r\n" and depth <= 0:
                return at
            at += 1
    if depth > 0:
        raise TreeError("a bracket is never closed", line)
    return at


def _value(data, raw, begin, line):
    def made(kind, value):
        return Node(kind, line, begin, begin + len(raw), value, raw)

    if raw in ("true", "false"):
        return made("scalar", raw == "true")
    plain = raw.replace("_", "")
    if re.match(r"^[-+]?(0|[1-9][0-9]*)$", plain):
        return made("scalar", int(plain))
    if re.match(r"^[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$", plain):
        return made("scalar", float(plain))
    if raw[:1] in "'\"":
        return made("scalar", raw.strip("'\"").encode("latin-1").decode("utf-8", "replace"))
    if raw[:1] == "[":
        try:
            node = read_json(raw.encode("latin-1"))[0]
            node.line, node.begin, node.end = line, begin, begin + len(raw)
            for item in node.items:
                item.begin = item.end = None
            return node
        except TreeError:
            return made("list", None)
    if raw[:1] == "{":
        node = made("map", None)
        for match in re.finditer(r"(%s)\s*=\s*([^,{}]+|\{[^}]*\})" % PART, raw):
            node.members.append(
                (
                    match.group(1).strip("'\""),
                    line,
                    begin + match.start(1),
                    _value(data, match.group(2).strip(), begin + match.start(2), line),
                )
            )
        return node
    return made("scalar", raw)
