# SPDX-License-Identifier: Apache-2.0
"""One declared setting: its place, its value, and the places that read and write it."""

import ast

from .literals import literal
from .scopes import ancestors, is_main


def type_name(value):
    for kind, name in ((bool, "bool"), (int, "int"), (float, "float"), (str, "str"), (dict, "dict")):
        if isinstance(value, kind):
            return name
    return "none" if value is None else "list"


def value_of(source, node):
    """Returns the `value` of a declaration from a Python expression."""
    if node is None:
        return None
    known, value = literal(node)
    entry = {
        "bytes": source.span(node),
        "line": node.lineno,
        "text": source.text(node),
        "type": type_name(value) if known else "expression",
    }
    if known and plain(value):
        entry["literal"] = list(value) if isinstance(value, (tuple, set)) else value
    return entry


def plain(value, depth=0):
    if value is None or isinstance(value, (bool, int, str)):
        return True
    if isinstance(value, float):
        return value == value and value not in (float("inf"), float("-inf"))
    if isinstance(value, (list, tuple, set)):
        return depth < 20 and len(value) < 100 and all(plain(v, depth + 1) for v in value)
    return (
        isinstance(value, dict)
        and depth < 20
        and len(value) < 100
        and all(isinstance(k, str) and plain(v, depth + 1) for k, v in value.items())
    )


class Declaration:
    def __init__(self, kind, setting, key, root, path, file, line, span, value):
        self.id = None
        self.kind = kind
        self.setting = setting
        self.key = key
        self.root = root  # "args", "file" or None
        self.path = path
        self.file = file
        self.line = line
        self.span = span
        self.value = value
        self.more = {}
        self.reads = []
        self.writes = []
        self.escapes = None
        self.node = None  # the ast node of a declaration in Python
        self.scope = None  # class that the field or attribute belongs to
        self.leaf = True

    def json(self):
        entry = {
            "id": self.id,
            "kind": self.kind,
            "setting": self.setting,
            "key": self.key,
            "file": self.file,
            "line": self.line,
            "bytes": self.span,
            "value": self.value,
            "reads": self.reads,
            "writes": self.writes,
            "escapes": self.escapes,
        }
        if self.kind in ("constant", "variable"):
            entry["branch"] = any(isinstance(up, ast.If) and not is_main(up.test) for up in ancestors(self.node))
        entry.update(self.more)
        return entry

    def place(self):
        return {"file": self.file, "line": self.line, "bytes": self.span}
