# SPDX-License-Identifier: Apache-2.0
"""A configuration as a tree in which every key and value has its line and its bytes."""


class Node:
    """kind is scalar, map, list or alias. begin and end are the bytes of the value,
    None if uncertain."""

    __slots__ = ("kind", "value", "begin", "end", "line", "members", "items", "anchor", "text")

    def __init__(self, kind, line, begin=None, end=None, value=None, text=None):
        self.kind = kind
        self.line = line
        self.begin = begin
        self.end = end
        self.value = value
        self.text = text
        self.members = []  # (key, key line, key begin, Node)
        self.items = []
        self.anchor = None

    def find(self, key):
        for name, _, _, value in self.members:
            if name == key:
                return value
        return None


class TreeError(Exception):
    def __init__(self, text, line):
        super().__init__(text)
        self.text = text
        self.line = line


def leaves(node, path=()):
    """Returns (path, key line, key begin, value Node) for every key, parents before
    children. Not recursive."""
    stack = [(node, path)]
    out = []
    while stack:
        one, where = stack.pop()
        if one.kind == "map":
            for key, line, begin, value in one.members:
                out.append((where + (key,), line, begin, value))
            for key, line, begin, value in reversed(one.members):
                stack.append((value, where + (key,)))
        elif one.kind == "list":
            for index, item in reversed(list(enumerate(one.items))):
                stack.append((item, where + ("[%d]" % index,)))
    return out


def scalar(text):
    """Returns a plain scalar's value, by the rules common to PyYAML and OmegaConf."""
    import re

    low = text.lower()
    if low in ("", "~", "null"):
        return None
    if low in ("true", "yes", "on"):
        return True
    if low in ("false", "no", "off"):
        return False
    plain = text.replace("_", "")
    if re.match(r"^[-+]?(0|[1-9][0-9]*)$", plain):
        return int(plain)
    if re.match(r"^0x[0-9a-fA-F]+$", plain):
        return int(plain, 16)
    if re.match(r"^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$", plain):
        return float(plain)
    if low in (".inf", "+.inf", "-.inf", ".nan", "inf", "nan"):
        return text
    return text
