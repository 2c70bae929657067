# SPDX-License-Identifier: Apache-2.0
"""Finds who reads each declared setting: accesses by key, whole configurations that are passed on,
and what cannot be followed."""

import ast
import re

from . import names
from .literals import literal
from .reads_keys import KeyReading
from .reads_whole import WholeReading
from .settings import LOOSE


class Reads(KeyReading, WholeReading):
    def __init__(self, project, values, settings, reach, tensors, holders):
        self.holders = holders
        self.tensors = tensors
        self.project = project
        self.values = values
        self.settings = settings
        self.reach = reach
        self.unknown = {}  # key -> [(parent key or None, node)]: read from an unknown object
        self.mentions = {}  # key -> node: a word in a list, or requested by a computed name
        self.filled = set()  # class Scopes whose objects get the keys of a configuration as attributes
        self.escaped = {}  # (root, path) -> (why, node)
        self.fields = {}  # class Scope -> why its fields may be read unseen
        self.loads = {"args": False, "file": False}
        self.missing = {}  # (class Scope, key) -> node: read from a class without such a field
        self.nodes = {}  # declaration -> [node that reads it]
        self._holds = {}  # (Scope, name) -> whether it may be a configuration
        self.keys = set()  # of all declared settings and of the sections around them
        self._plain_classes = {}  # class Scope -> whether its `self` is not a configuration
        self.asked = {}  # path -> [node]: read from the configuration, present or not

    def collect(self):
        constants = {d.key for d in self.settings.all if d.kind in ("constant", "variable") or d.root == "args"}
        keys = self.keys = {key for d in self.settings.all for key in d.path} | {d.key for d in self.settings.all}
        for source in self.project.order:
            if source.index is None:
                continue
            for node in source.index.attributes:
                base = node.value
                if base not in self.values.library:
                    if node.attr in keys or not self._own(base):
                        self._access(node, base, node.attr)
                    if gives(node):
                        self._whole(node)
            for node in source.index.subscripts:
                known, key = literal(node.slice)
                if known and isinstance(key, str):
                    self._access(node, node.value, key)
                elif not known:
                    self._computed(node, node.value, node.slice)
            for call in source.index.calls:
                self._call(call)
                if not self._plain(call):
                    self._whole(call)
            for node in source.index.loads:
                if node in self.values.library:
                    continue
                if self._may_be_whole(node):
                    self._whole(node)
                if node.id in constants or node.id in source.index.renamed:
                    self._constant(node)
            for node in source.index.compares:
                self._compare(node)
            for element in source.index.listed:
                self.mentions.setdefault(element.value, element)
            for target, expr, statement in source.index.stores:
                self._store(target, expr, statement)
        for call in self.values.clis:
            self._escape(
                "file", (), "the command line interface reads it, and refuses keys that it does not know", call
            )
        self._interpolations()

    def _own(self, base):
        """Returns whether this is `self` of a class whose attributes its methods set: it is not a
        configuration itself."""
        if type(base) is not ast.Name or base.id != "self" or base.scope.owner is None:
            return False
        owner = base.scope.owner
        found = self._plain_classes.get(owner)
        if found is None:
            classes = [owner] + self.values.subclasses(owner)
            found = self._plain_classes[owner] = not any(
                self.values.dynamic(one) or any(b in self.values.holders for b in self.values.lineage(one)[0])
                for one in classes
            )
        return found

    def _may_be_whole(self, node):
        """Returns whether any binding of a name, wherever it is read, gives a configuration."""
        key = (node.scope, node.id)
        found = self._holds.get(key)
        if found is None:
            found = self._holds[key] = self._holds_whole(node)
        return found

    def _holds_whole(self, node):
        scope = node.scope
        first = True
        while scope is not None:
            bindings = scope.names.get(node.id)
            if bindings and (first or not scope.is_class):
                return len(bindings) > 8 or any(v[0] == "cfg" for b in bindings for v in self.values.binding(b))
            scope = scope.parent
            first = False
        return bool(node.src.index.stars)

    def _plain(self, call):
        """Returns whether a call is to a library function that never returns a configuration."""
        values = self.values.of(call.func)
        return (
            bool(values)
            and all(
                v[0] == "ext"
                and v[1] not in names.SAME
                and v[1] not in names.READS_CONFIG
                and not v[1].endswith(".merge")
                for v in values
            )
            and getattr(call.func, "attr", "") not in ("get", "pop", "copy", "merge")
        )

    # Writes

    def _store(self, target, expr, statement):
        if isinstance(target, ast.Attribute):
            base, key = target.value, target.attr
        else:
            known, key = literal(target.slice)
            base = target.value
            if not known or not isinstance(key, str):
                return
        if isinstance(base, ast.Name) and base.id == "self":
            return
        for value in self.values.of(base):
            if value[0] == "cfg":
                declared = self.settings.find(value[1], value[2] + (key,))
            elif value[0] == "inst" and self.values.dynamic(value[1]):  # AttrDict(json.load(f))
                declared = [d for d in self.settings.find("file", (key,)) if d.path == (key,)]
            elif value[0] in ("inst", "cls"):
                declared = [
                    d
                    for scope in self.values.lineage(value[1])[0]
                    for d in self.fields_of(scope)
                    if d.key == key and d.kind == "attribute"
                ]
            else:
                continue
            for declaration in declared:
                if statement in self.settings.by_node:
                    continue  # a default of yacs
                place = target.src.place(statement)
                if place not in declaration.writes:
                    declaration.writes.append(place)
                    self.nodes.setdefault((declaration, "writes"), []).append((target, expr, statement))

    def _interpolations(self):
        """Notes that ${a.b} in a value reads a.b, and a YAML alias reads its anchor."""
        anchors = {d.more["anchor"]: d for d in self.settings.all if "anchor" in d.more}
        for declaration in self.settings.all:
            text = (declaration.value or {}).get("text") or ""
            for reference in re.findall(r"\$\{([^}:$]+)\}", text):
                for other in self.settings.find("file", tuple(reference.strip().split("."))):
                    if not other.leaf:
                        self.escaped.setdefault(
                            ("file", other.path), ("%s refers to all of it" % declaration.setting, None)
                        )
                    other.reads.append(
                        {
                            "file": declaration.file,
                            "line": declaration.line,
                            "bytes": declaration.span,
                            "certainty": "certain",
                        }
                    )
            alias = declaration.more.get("alias")
            if alias in anchors:
                anchors[alias].reads.append(
                    {
                        "file": declaration.file,
                        "line": declaration.line,
                        "bytes": declaration.span,
                        "certainty": "certain",
                    }
                )

    # Answers

    def escape_of(self, declaration):
        """Returns why this setting may be read unseen, or None."""
        for length in range(len(declaration.path) + 1):
            prefix = declaration.path[:length]
            found = self.escaped.get((declaration.root, prefix))
            if found is not None and length < len(declaration.path):
                return found[0]
        for (root, path), (why, _) in self.escaped.items():
            if root == declaration.root and path and ("?" in path or path != declaration.path[: len(path)]):
                # Sections may be flattened and roots unknown: the part passed on may have this key.
                if _may_hold(path, declaration.path):
                    return why
        return None

    def unknown_reads(self, declaration):
        out = []
        for parent, node in self.unknown.get(declaration.key, ()):
            if (
                parent is not None
                and len(declaration.path) > 1
                and parent != declaration.path[-2]
                and parent not in LOOSE
            ):
                continue
            if parent is not None and declaration.root == "args" and parent not in LOOSE:
                continue
            out.append(node)
        if declaration.root == "file":
            for length in range(1, len(declaration.path)):  # build(x.loss): a section may be given away
                for parent, node in self.unknown.get(declaration.path[length - 1], ()):
                    if (
                        parent is None or length == 1 or parent == declaration.path[length - 2] or parent in LOOSE
                    ) and self._handed_on(node):
                        out.append(node)
        return out

    def _handed_on(self, node):
        """Returns whether a part of an object that nobody followed is an argument of a call."""
        return (
            isinstance(node, (ast.Attribute, ast.Subscript))
            and not self.values.of(node.value)
            and (isinstance(node.up, ast.keyword) or isinstance(node.up, ast.Call) and node in node.up.args)
        )


def gives(node):
    """Returns whether more than one key may be taken from this attribute: it is looped over, spread or an argument."""
    up = node.up
    return (
        isinstance(up, ast.Attribute)
        and up.attr in ("items", "values")
        or isinstance(up, (ast.For, ast.AsyncFor, ast.comprehension, ast.keyword, ast.Starred))
        or (isinstance(up, ast.Call) and up.func is not node)
    )


def _may_hold(path, declared):
    """Returns whether a part at `path` (a tail of the real path) may have the declared key."""
    for start in range(1, len(declared)):
        tail = declared[:start]
        if len(path) <= len(tail) and all(a == b or a == "?" for a, b in zip(reversed(path), reversed(tail))):
            return True
    return False
