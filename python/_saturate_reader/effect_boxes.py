# SPDX-License-Identifier: Apache-2.0
"""Keys of a configuration that is a dict in the program, which nothing asks for (a part of Effect)."""

import ast
import re

from .declarations import Declaration
from .literals import literal
from .reads_whole import shows_only
from .scopes import dotted

# Names of dicts that are a configuration.
CONFIGURATION = re.compile(
    r"(^|_)(conf|config|configs|configuration|cfg|cfgs|opt|options|params|parameters|hparams|hyper_?parameters|hyper_?params|settings|args|hp)($|_)",
    re.I,
)
SMALLEST = 4  # so many keys make a configuration
PRINTS = {"print", "pprint", "pp", "info", "debug", "pformat", "len", "str", "repr"}
ASKS = ("get", "pop", "setdefault")


class Boxes:
    def _unasked_keys(self):
        """`config = {"lr": 0.1, "momentum": 0.9}`, of which every use is followed, and none asks for momentum."""
        found = []
        if self.project.is_partly_read or any("larger" in text or "more than" in text for text in self.project.limits):
            return
        for binding in self._dicts():
            self._unasked_of(binding, binding.expr, (), found)
        elsewhere = self.project.scan_others({d.key for d, _ in found})
        for declaration, source in found:
            if not self._read_elsewhere(declaration, elsewhere.get(declaration.key, ())):
                entry = {
                    "file": declaration.file,
                    "line": declaration.line,
                    "bytes": declaration.span,
                    "declaration": None,
                    "setting": declaration.setting,
                    "kind": "never read",
                    "certainty": "certain",
                    "at": None,
                    "instead": None,
                    "why": "nothing in this project reads it",
                }
                self.found.append(entry)

    def _dicts(self):
        for source in self.project.order:
            for scope in source.index.scopes if source.index is not None else ():
                if scope.is_class or scope.is_function and self.reach.runs(scope) is None:
                    continue
                for name, bindings in scope.names.items():
                    if (
                        len(bindings) == 1
                        and bindings[0].kind == "value"
                        and not bindings[0].path
                        and CONFIGURATION.search(name)
                        and isinstance(bindings[0].expr, ast.Dict)
                        and isinstance(bindings[0].node, (ast.Assign, ast.AnnAssign))
                    ):
                        yield bindings[0]

    def _unasked_of(self, binding, box, path, found):
        asked = set()
        keys = [literal(key)[1] if key is not None and literal(key)[0] else None for key in box.keys]
        if (
            len(set(keys)) < len(keys)
            or not all(isinstance(key, str) for key in keys)
            or not self._asked_of(binding, box, asked)
        ):
            return
        source = binding.scope.source
        if len(keys) >= SMALLEST and 2 * len(asked.intersection(keys)) >= len(keys):
            for key, node, value in zip(keys, box.keys, box.values):
                if key not in asked and literal(value)[0] and not key.startswith("_"):
                    setting = ".".join(path + (key,))
                    found.append(
                        (
                            Declaration(
                                "key",
                                setting,
                                key,
                                None,
                                path + (key,),
                                source.file,
                                node.lineno,
                                source.span(node),
                                None,
                            ),
                            source,
                        )
                    )
        for key, value in zip(keys, box.values):
            if key in asked and isinstance(value, ast.Dict):
                self._unasked_of(binding, value, path + (key,), found)

    def _asked_of(self, binding, box, asked):
        """Adds the keys that the program asks of a dict. Returns whether every use of it is followed."""
        whole = ("box", box)
        if binding.expr is box:
            if not all(self.values.of(load) == (whole,) for load in self._loads_of(binding)):
                return False
            if binding.scope.parent is None and any(
                not isinstance(load.up, ast.Attribute) and ("mod", binding.scope.source) in self.values.of(load)
                for other in self.project.order
                if other.index is not None
                for load in other.index.loads
            ):
                return False
        for source in self.project.order:
            index = source.index
            for nodes in (index.loads, index.attributes, index.subscripts, index.calls) if index is not None else ():
                for node in nodes:
                    if (
                        node not in self.values.library
                        and whole in self.values.of(node)
                        and not self._asks(node, whole, asked)
                    ):
                        return False
        return True

    def _loads_of(self, binding):
        name = binding.name
        if binding.scope.is_function:
            return self._loads(binding.scope, name)
        return [
            load
            for load in binding.scope.source.index.loads
            if load.id == name and binding in (self.values.lookup(load) or ())
        ]

    def _asks(self, node, whole, asked):
        """Notes the key that a use of a dict asks for. Returns False if it may ask for others."""
        up = node.up
        if isinstance(up, ast.Attribute):
            call = up.up
            if not isinstance(call, ast.Call) or call.func is not up:
                return False
            if up.attr in ASKS and call.args:
                return self._ask_key(call.args[0], asked)
            if up.attr == "update":
                return True
            return (
                up.attr in ("items", "keys")
                and isinstance(call.up, (ast.For, ast.AsyncFor))
                and call.up.iter is call
                and shows_only(call.up)
            )
        if isinstance(up, ast.Subscript) and up.value is node:
            return True if isinstance(up.ctx, ast.Store) and literal(up.slice)[0] else self._ask_key(up.slice, asked)
        if (
            isinstance(up, ast.Compare)
            and len(up.ops) == 1
            and isinstance(up.ops[0], (ast.In, ast.NotIn))
            and up.comparators[0] is node
        ):
            return self._ask_key(up.left, asked)
        if isinstance(up, (ast.FormattedValue, ast.Expr)):
            return True
        if isinstance(up, ast.Return):
            callers = self.values.callers.get(up.scope, ())
            return bool(callers) and all(
                whole in self.values.of(one[0] if isinstance(one, tuple) else one) for one in callers
            )
        if isinstance(up, (ast.Assign, ast.AnnAssign)) and up.value is node:
            return all(
                self._holds(target, whole) for target in (up.targets if isinstance(up, ast.Assign) else [up.target])
            )
        if isinstance(up, ast.keyword):
            if up.arg is None:
                return False
            up = up.up
        if not isinstance(up, ast.Call) or up.func is node:
            return False
        entered = self.values.callees.get(up, ())
        if not entered:
            return getattr(up.func, "attr", getattr(up.func, "id", "")) in PRINTS
        return all(self._passes(scope, self._name_of(up, node, scope, shift), whole) for scope, shift in entered)

    @staticmethod
    def _ask_key(node, asked):
        known, key = literal(node)
        asked.add(key)
        return known

    def _holds(self, target, whole):
        """Returns whether what a dict is assigned to is known to be that dict wherever it is read."""
        if isinstance(target, ast.Name):
            return all(
                whole in self.values.of(load) for load in target.scope.source.index.loads if load.id == target.id
            )
        if isinstance(target, ast.Attribute) and dotted(target.value) == "self":
            return all(
                whole in self.values.of(node) or any(v[0] != "opaque" for v in self.values.of(node))
                for source in self.project.order
                if source.index is not None
                for node in source.index.attributes
                if node.attr == target.attr
            )
        return False

    def _passes(self, scope, name, whole):
        loads = self._parameter_loads(scope, name)
        return loads is not None and all(whole in self.values.of(load) for load in loads)
