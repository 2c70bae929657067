# SPDX-License-Identifier: Apache-2.0
"""Settings that another program of the project reads, or something that nobody followed
(a part of Effect)."""

import ast

from .literals import literal
from .reads_keys import TENSOR_ATTRIBUTES
from .scopes import ancestors, function_of, is_main
from .settings import LOOSE
from .source import Source


class Elsewhere:
    def _say_never(self, declaration):
        nested = self._same_key(declaration)
        if nested is not None:
            return self._say(
                declaration,
                "wrong place" if nested[1] is None else "never read",
                "nothing reads %s; %s reads %s" % (declaration.setting, "%s:%d" % nested[2:], nested[0]),
                at=None,
                instead="%s is in effect" % nested[0] if nested[1] is not None else None,
            )
        vain = (self.reads.nodes.get(declaration, []) + self.reads.unknown_reads(declaration))[:1]
        if vain:
            return self._say(
                declaration,
                "never read",
                "only %s() reads it (%s:%d), and nothing calls that function"
                % (function_of(vain[0]).name, vain[0].src.file, vain[0].lineno),
                at=vain[0].src.place(vain[0]),
            )
        return self._say(declaration, "never read", "nothing in this project reads it")

    def _same_key(self, declaration):
        """Returns (path, Declaration or None, file, line) of another key with the same
        name that is read."""
        for other in self.settings.all:
            if (
                other is not declaration
                and other.leaf
                and other.key == declaration.key
                and other.root == declaration.root
                and other.reads
                and other.file == declaration.file
            ):
                return other.setting, other, other.reads[0]["file"], other.reads[0]["line"]
        return None

    def _mentioned(self, declaration):
        node = self.reads.mentions.get(declaration.key)
        if (
            node is None
            or declaration.node is not None
            and node.src.file == declaration.file
            and any(up is declaration.node for up in ancestors(node))
        ):
            return None
        # A word among an option's choices, default or help is not the name of a setting.
        for up in ancestors(node):
            if isinstance(up, ast.keyword) and up.arg in ("choices", "default", "help"):
                return None
            if isinstance(up, ast.stmt):
                break
        return node

    def _read_elsewhere(self, declaration, paths):
        for path in paths[:40]:
            if path.endswith(".sh") and (declaration.root == "args" or declaration.kind in ("dataclass", "attribute")):
                continue  # it gives the option a value
            if not path.endswith(".py"):
                return self.project.relative(path)
            source = self._other(path)
            if source is None:
                return self.project.relative(path)
            if _checks(source):
                continue  # a unit test asserts the value
            own = False
            for node in ast.walk(source.tree):
                if (
                    isinstance(node, ast.Call)
                    and getattr(node.func, "attr", "") == "add_argument"
                    and node.args
                    and isinstance(node.args[0], ast.Constant)
                    and str(node.args[0].value).lstrip("-").replace("-", "_") == declaration.key
                ):
                    own = True
                if (
                    isinstance(node, ast.ClassDef)
                    and declaration.kind == "dataclass"
                    and node.name == declaration.scope.name
                    and any(
                        isinstance(s, ast.AnnAssign) and getattr(s.target, "id", "") == declaration.key
                        for s in node.body
                    )
                ):
                    own = True  # a class of the same name, and its own field
            if own and (declaration.root == "args" or declaration.kind == "dataclass"):
                continue
            if declaration.kind in ("constant", "variable") and _takes(source, declaration.key):
                return source.file
            for node in ast.walk(source.tree):
                key, base = _key_of(node)
                if key != declaration.key:
                    continue
                tail = (
                    base.attr
                    if isinstance(base, ast.Attribute)
                    else base.id
                    if isinstance(base, ast.Name)
                    else (literal(base.slice)[1] if isinstance(base, ast.Subscript) else None)
                )
                if tail in ("self", "cls", "nn", "torch", "np", "F") or key in TENSOR_ATTRIBUTES and tail not in LOOSE:
                    continue
                if (
                    len(declaration.path) > 1
                    and tail is not None
                    and tail != declaration.path[-2]
                    and tail not in LOOSE
                    and not isinstance(base, ast.Name)
                ):
                    continue
                if declaration.root == "args" and isinstance(base, ast.Attribute) and tail not in LOOSE:
                    continue
                return "%s:%d" % (source.file, node.lineno)
        return None

    def _other(self, path):
        if not hasattr(self, "_others"):
            self._others = {}
        if path not in self._others:
            source = Source(path, self.project.relative(path))
            self._others[path] = source if source.tree is not None else None
        return self._others[path]


def _takes(source, name):
    """Returns whether a file reads a name that it does not bind itself: it has it from another module."""
    found = [node for node in ast.walk(source.tree) if isinstance(node, ast.Name) and node.id == name]
    return bool(found) and all(isinstance(node.ctx, ast.Load) for node in found)


def _checks(source):
    """A file of unit tests, unlike a test.py that evaluates a model."""
    imported = {
        alias.name.split(".")[0] for node in source.tree.body if isinstance(node, ast.Import) for alias in node.names
    }
    imported |= {(node.module or "").split(".")[0] for node in source.tree.body if isinstance(node, ast.ImportFrom)}
    own = [node.name for node in source.tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    if not own or not all(name.lower().startswith("test") for name in own):
        return bool(imported & {"pytest", "unittest"})
    started = [
        call
        for node in source.tree.body
        if isinstance(node, ast.If) and is_main(node.test)
        for call in ast.walk(node)
        if isinstance(call, ast.Call)
    ]
    return all(getattr(call.func, "id", "") in own + ["print"] for call in started) or bool(
        imported & {"pytest", "unittest"}
    )


def _key_of(node):
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        return node.attr, node.value
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        known, key = literal(node.slice)
        return (key, node.value) if known and isinstance(key, str) else (None, None)
    if isinstance(node, ast.Call) and node.args:
        last = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if last in ("get", "pop") and isinstance(node.func, ast.Attribute):
            known, key = literal(node.args[0])
            return (key, node.func.value) if known and isinstance(key, str) else (None, None)
        if last in ("getattr", "hasattr") and len(node.args) > 1:
            known, key = literal(node.args[1])
            return (key, node.args[0]) if known and isinstance(key, str) else (None, None)
    return None, None
