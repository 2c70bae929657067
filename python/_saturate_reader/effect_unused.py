# SPDX-License-Identifier: Apache-2.0
"""Settings that are read into something unused: a local name, an attribute, a parameter
(a part of Effect)."""

import ast
import os
import re

from .conditions import nested
from .literals import literal
from .settings_python import config_class

DEEPEST = 4
NUMBERS = 5  # so many numbers in one function are its settings
# Names of constants and variables that are settings.
SETTING = re.compile(
    r"batch|worker|epoch|(^|_)lr($|_)|learning_?rate|momentum|weight_?decay|(^|_)amp($|_)|autocast|fp16|bf16|precision|compile|pin_mem|prefetch|interval|freq"
    r"|(^|_)seed|benchmark|determinis|accum",
    re.I,
)


class Unused:
    def _read_for_nothing(self):
        for declaration in self.settings.all:
            if not declaration.root or not declaration.leaf:
                continue
            nodes = self.reads.nodes.get(declaration, ())
            if nodes and len(nodes) == len(declaration.reads):
                if (
                    self.reads.escape_of(declaration)
                    or self.reads.unknown_reads(declaration)
                    or not all(self._goes_nowhere(n, 0) for n in nodes)
                ):
                    continue
                self._say_unused(declaration, nodes[0])
            elif not declaration.reads and declaration.kind in ("yaml", "json", "toml"):
                self._unused_parameter(declaration)

    def _unused_locals(self):
        """`num_workers = 8` in a function that never uses the name; also `width = 28` among other numbers that are set there."""
        for source in self.project.order:
            for scope in source.index.scopes if source.index is not None else ():
                if (
                    not scope.is_function
                    or self.reach.runs(scope) is None
                    or any(getattr(call.func, "id", "") in ("locals", "vars", "eval", "exec") for call in scope.calls)
                ):
                    continue
                numbers = {
                    name: bindings[0]
                    for name, bindings in scope.names.items()
                    if len(bindings) == 1 and _is_number(bindings[0])
                }
                for name, one in numbers.items():
                    if (
                        (SETTING.search(name) or len(numbers) >= NUMBERS)
                        and not self._loads(scope, name)
                        and name not in scope.outer
                        and not name.startswith("_")
                    ):
                        entry = source.place(one.node)
                        entry.update(
                            {
                                "declaration": None,
                                "setting": name,
                                "kind": "never read",
                                "certainty": "certain",
                                "at": None,
                                "instead": None,
                                "why": "nothing in %s() uses it" % scope.name,
                            }
                        )
                        self.found.append(entry)

    def _say_unused(self, declaration, node):
        if declaration.root == "file" and self._read_elsewhere(
            declaration, self.project.scan_others({declaration.key}).get(declaration.key, ())
        ):
            return  # by another program
        self._say(
            declaration,
            "without effect",
            "%s:%d reads it, and nothing uses what it reads" % (node.src.file, node.lineno),
            at=node.src.place(node),
        )

    def _goes_nowhere(self, node, depth):
        """Returns whether the value only goes into names, attributes or parameters
        that nothing reads."""
        up = node.up
        if depth > DEEPEST:
            return False
        if isinstance(up, ast.keyword):
            up = up.up
        if isinstance(up, ast.Call) and node is not up.func:
            entered = self.values.callees.get(up, ())
            return bool(entered) and all(
                self._parameter_unused(scope, self._name_of(up, node, scope, shift), depth + 1)
                for scope, shift in entered
            )
        if isinstance(up, ast.BoolOp) and node is up.values[0]:  # self.x = x or {}
            node, up = up, up.up
        if isinstance(up, ast.Assign) and up.value is node:
            return all(self._target_unused(target, depth) for target in up.targets)
        return False

    def _target_unused(self, target, depth):
        if isinstance(target, ast.Name):
            scope = target.scope
            if scope.is_class and config_class(scope):
                return target.id not in self._words()
            if scope.parent is None:
                return not self._asked_of_module(scope.source, target.id)
            return scope.is_function and target.id not in scope.outer and not self._loads(scope, target.id)
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
            return not self._outside(target) and target.attr not in self._attributes()
        return False

    def _asked_of_module(self, source, name):
        """Returns whether some code may use a name of a module."""
        stem = os.path.splitext(os.path.basename(source.file))[0]
        elsewhere = self.project.scan_others({name, stem})
        if (
            source.index.rewrites
            or self.project.is_partly_read
            or set(elsewhere.get(name, ())).intersection(elsewhere.get(stem, ()))
        ):
            return True
        for other in self.project.order:
            index = other.index
            if index is not None and (
                name in index.strings
                or any(load.id == name for load in index.loads if other is source or index.stars)
                or any(attr == name for _, attr, _, _ in index.imports)
                or any(
                    node.attr == name and any(v[0] not in ("cfg", "opaque") for v in self.values.of(node.value))
                    for node in index.attributes
                )
            ):
                return True
        return False

    def _outside(self, target):
        """Returns whether a library's base class may read the attribute, or the class goes over all
        its attributes."""
        owner = target.scope.owner
        if owner is None or any(
            not base.endswith(("LightningDataModule", "Dataset", "object")) for base in self.values.lineage(owner)[1]
        ):
            return True
        index = owner.source.index
        return any(
            call.scope.owner is owner and call.args and getattr(call.args[0], "id", "") == "self"
            for call in index.calls_named("vars", "getattr", "asdict")
        ) or any(node.attr == "__dict__" and node.scope.owner is owner for node in index.attributes)

    def _attributes(self):
        """Returns the names of attributes that some code reads or that occur in a text."""
        if self._read_attributes is None:
            self._read_attributes = set()
            for source in self.project.order:
                if source.index is not None:
                    self._read_attributes.update(node.attr for node in source.index.attributes)
                    self._read_attributes |= source.index.strings
        return self._read_attributes

    @staticmethod
    def _loads(scope, name):
        return [load for load in scope.source.index.loads if load.id == name and nested(load.scope, scope)]

    def _name_of(self, call, node, scope, shift):
        """Returns the parameter that receives this argument of a call."""
        for keyword in call.keywords:
            if keyword.value is node:
                return keyword.arg
        for position, argument in enumerate(call.args):
            if (
                argument is node
                and not any(isinstance(a, ast.Starred) for a in call.args[: position + 1])
                and position + shift < len(scope.params)
            ):
                return scope.params[position + shift][0]
        return None

    def _parameter_unused(self, scope, name, depth):
        loads = self._parameter_loads(scope, name)
        return loads is not None and all(self._goes_nowhere(load, depth) for load in loads)

    def _parameter_loads(self, scope, name):
        """Returns where a function reads its parameter by name, or None if it may read it in another way, too."""
        if name is None or name not in [param for param, _, how in scope.params if how in ("position", "keyword")]:
            return None
        if any(
            getattr(call.func, "id", "") in ("locals", "vars", "eval", "exec")
            or getattr(call.func, "attr", "") == "save_hyperparameters"
            for call in scope.calls
        ):
            return None
        return self._loads(scope, name)

    def _unused_parameter(self, declaration):
        """Reports a key under a `_target_` if it is a parameter of the class made there that
        nothing uses."""
        for other in self._makers().get(declaration.file, ()):
            prefix = other.path[:-1]
            if (
                other.key != "_target_"
                or declaration.path[: len(prefix)] != prefix
                or len(declaration.path) <= len(prefix)
            ):
                continue
            if any(
                d.key == "_target_"
                and d is not other
                and len(d.path) > len(other.path)
                and declaration.path[: len(d.path) - 1] == d.path[:-1]
                for d in self._makers()[declaration.file]
            ):
                continue  # belongs to an object nested further inside
            found = self.values.named(str((other.value or {}).get("literal")))
            init = self.values.find_method(found[1], "__init__") if found is not None and found[0] == "cls" else None
            name = declaration.path[len(prefix)]
            if (
                init is not None
                and init.owner is found[1]
                and self.reach.runs(init)
                and self._parameter_unused(init, name, 1)
            ):
                self._say(
                    declaration,
                    "without effect",
                    "%s() takes it, and nothing uses it" % found[1].name,
                    at=init.source.place(init.node),
                )
                return


def _is_number(binding):
    """Returns whether a name is bound to a number that somebody chose: not to the 0 that a sum begins with."""
    if binding.kind != "value" or binding.path or not isinstance(binding.node, (ast.Assign, ast.AnnAssign)):
        return False
    known, value = literal(binding.expr)
    return (
        known
        and isinstance(value, (bool, int, float))
        and bool(value or isinstance(value, bool) or "worker" in binding.name)
    )
