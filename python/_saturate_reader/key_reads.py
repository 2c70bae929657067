# SPDX-License-Identifier: Apache-2.0
"""Finds the keys of a configuration file that a program reads, present or not: a new key has an
effect there."""

import ast

from .declarations import type_name
from .literals import literal
from .scopes import function_of

TYPES = {"int": "int", "float": "float", "str": "str", "str2bool": "bool"}


class KeyReads:
    def __init__(self, settings, reads, reach):
        self.settings = settings
        self.reads = reads
        self.reach = reach
        self.nodes = {d.path for d in settings.all if d.kind == "yacs"}  # yacs refuses keys without a default

    def of(self, file, prefix):
        """Returns the keys of one file. A section counts only if one of its present keys is read by
        exactly this path: otherwise sections may have been moved."""
        declared = {d.path: d for d in self.settings.all if d.file == file and d.root == "file"}
        sections = {path[:-1] for path in declared if self._running(path)}
        out = []
        for path in sorted(self.reads.asked):
            if path[:-1] not in sections or path[: len(prefix)] != prefix or "?" in path:
                continue
            node = self._running(path)
            if node is None or self.nodes and path not in self.nodes and path not in declared:
                continue
            entry = {"path": list(path[len(prefix) :]), "there": path in declared, "type": self._type(path)}
            entry.update(node.src.place(node))
            out.append(entry)
        return out

    def _running(self, path):
        for node in self.reads.asked.get(path, ()):
            if self.reach.runs(function_of(node)) == "certain" and not self.reach.off(node):
                return node
        return None

    def _type(self, path):
        """Returns the type that the program expects, from its default for the
        key; None: not known."""
        kinds = set()
        for node in self.reads.asked[path]:
            if isinstance(node, ast.Call) and node.args:
                known, value = literal(node.args[-1])
                given = (
                    isinstance(node.func, ast.Attribute)
                    and len(node.args) == 2
                    or isinstance(node.func, ast.Name)
                    and len(node.args) == 3
                )
                if known and given and value is not None:
                    kinds.add(type_name(value))
        for declaration in self.settings.by_path.get(("args", path[-1]), ()) if len(path) == 1 else ():
            action, kind = declaration.more.get("action"), declaration.more.get("option_type")
            kinds.add(
                "bool"
                if action in ("store_true", "store_false")
                else TYPES.get(kind, (declaration.value or {}).get("type") if kind is None else None)
            )
        for declaration in self.settings.all:
            if (
                declaration.kind in ("yacs", "dataclass", "attribute")
                and declaration.key == path[-1]
                and declaration.value
                and (declaration.kind != "yacs" or declaration.path == path)
            ):
                kinds.add(declaration.value["type"])
        kinds -= {None, "none", "expression"}
        return kinds.pop() if len(kinds) == 1 else None
