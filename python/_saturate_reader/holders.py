# SPDX-License-Identifier: Apache-2.0
"""Classes that a configuration is copied into: `Config(**data)`,
`for k, v in data.items(): setattr(config, k, v)`.

A field of such a class has the value of the key with the same name. If only known fields are
copied, other keys are dropped.
"""

import ast

from .scopes import LOOPS, ancestors, dotted


class Holders:
    def __init__(self, project, values):
        self.project = project
        self.values = values
        self.guarded = {}  # class Scope -> the copy that drops unknown keys

    def find(self):
        for source in self.project.order:
            if source.index is None:
                continue
            for call in sorted(
                list(source.index.calls_named("setattr")) + source.index.spreading, key=lambda c: c.sequence
            ):
                if dotted(call.func) == "setattr" and len(call.args) > 2 and isinstance(call.args[1], ast.Name):
                    self._copied(call)
                elif any(k.arg is None for k in call.keywords):
                    self._spread(call)

    def _copied(self, call):
        loop = next((up for up in ancestors(call) if isinstance(up, LOOPS)), None)
        if not isinstance(loop, ast.For):
            return
        path = self._path(loop.iter)
        if path is None:
            return
        guard = any(isinstance(up, ast.If) and _asks_fields(up.test) for up in _until(call, loop))
        guard = guard or any(
            isinstance(s, ast.If) and _asks_fields(s.test) and isinstance(s.body[-1], (ast.Continue, ast.Raise))
            for s in loop.body
        )
        for value in self.values.of(call.args[0]):
            if value[0] == "inst":
                self._hold(value[1], path, call if guard else None)

    def _spread(self, call):
        classes = [v[1] for v in self.values.of(call.func) if v[0] == "cls" and is_data(v[1])]
        if not classes:
            return
        for keyword in call.keywords:
            if keyword.arg is not None:
                continue
            for value in self.values.of(keyword.value):
                path, guard = None, False
                if value[0] == "cfg" and value[1] == "file":
                    path = value[2]
                elif value[0] == "box" and isinstance(value[1], ast.DictComp):
                    path = self._path(value[1].generators[0].iter)
                    guard = any(_asks_fields(test) for g in value[1].generators for test in g.ifs)
                if path is not None:
                    for scope in classes:
                        self._hold(scope, path, call if guard else None)

    def _path(self, node):
        """Returns the part of a configuration that a loop goes over."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("items", "keys"):
            node = node.func.value
        for value in self.values.of(node):
            if value[0] == "cfg" and value[1] == "file" and "?" not in value[2]:
                return value[2]
        return None

    def _hold(self, scope, path, guard):
        if guard is not None:
            self.guarded.setdefault(scope, guard)
        self.values.holders.setdefault(scope, (path, self.fields(scope) if guard is not None else None))

    def fields(self, scope):
        """Returns the names of a class's fields, including inherited ones."""
        found = set()
        for one in self.values.lineage(scope)[0]:
            found |= {name for name, bindings in one.names.items() if any(b.kind == "value" for b in bindings)}
            found |= {
                s.target.id for s in one.node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
            }
            found |= set(one.attributes)
        return found


def is_data(scope):
    """Returns whether a class is a dataclass or similar."""
    decorators = [
        (dotted(d.func if isinstance(d, ast.Call) else d) or "").rsplit(".", 1)[-1] for d in scope.node.decorator_list
    ]
    return "dataclass" in decorators or any(
        (dotted(b) or "").rsplit(".", 1)[-1] in ("BaseModel", "NamedTuple", "BaseSettings") for b in scope.bases
    )


def _asks_fields(test):
    """Returns whether a condition tests for known fields: hasattr(x, key),
    key in Config.__dataclass_fields__."""
    for node in ast.walk(test):
        if isinstance(node, ast.Call) and dotted(node.func) == "hasattr":
            return True
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            text = ast.dump(node.comparators[0])
            if (
                "fields" in text
                or "annotations" in text
                or "__dict__" in text
                or "signature" in text
                or "parameters" in text
                or "'vars'" in text
            ):
                return True
    return False


def _until(node, top):
    for up in ancestors(node):
        if up is top:
            return
        yield up
