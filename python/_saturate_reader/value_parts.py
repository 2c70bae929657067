# SPDX-License-Identifier: Apache-2.0
"""Parts of values: unpacking, subscripts, elements of loops (a part of Values)."""

import ast

from . import names
from .literals import MOST, literal
from .scopes import dotted


class Parts:
    def part(self, values, path, expr=None):
        """Returns the values of unpacking: `a, b = expr` asks for the parts (0,) and (1,)."""
        for index in path:
            values = self._index(values, index, expr)
        return values

    def _index(self, values, index, expr=None):
        out = ()
        for value in values:
            kind = value[0]
            if kind == "box" and isinstance(value[1], ast.List) and not value[1].elts:
                for one in self._appended(value[1]):
                    out += self.of(one)
            elif kind == "box" and isinstance(value[1], (ast.ListComp, ast.GeneratorExp)):
                out += self.of(value[1].elt)
            elif kind == "box" and isinstance(value[1], (ast.Tuple, ast.List)):
                if isinstance(index, int) and -len(value[1].elts) <= index < len(value[1].elts):
                    out += self.of(value[1].elts[index])
                elif not isinstance(index, int):
                    for element in value[1].elts[:MOST]:
                        out += self.of(element)
            elif kind == "made" and value[1].endswith(".random_split"):
                out += (value,)
            elif kind == "made" and value[1].endswith(".prepare"):
                call = value[2]  # accelerator.prepare returns its arguments in order
                if isinstance(index, int) and index < len(call.args):
                    out += self.of(call.args[index])
            elif kind == "made" and value[1].endswith("parse_args_into_dataclasses"):
                out += self._dataclass(value[2], index)
            elif kind == "made" and value[1].rsplit(".", 1)[-1] in ("parse_known_args", "initialize"):
                if value[1].endswith("parse_known_args"):
                    out += (("cfg", "args", ()),) if index == 0 else ()
            elif kind == "cfg" and isinstance(index, str):
                out += (("cfg", value[1], value[2] + (index,)),)
            elif kind == "batch":
                out += (value,)
        return out

    @staticmethod
    def _appended(box):
        """Returns what is appended to a list that starts empty, in the function that makes it."""
        up = getattr(box, "up", None)
        name = dotted(up.targets[0]) if isinstance(up, ast.Assign) and isinstance(box, ast.List) else None
        if name is None:
            return []
        return [
            c.args[0]
            for c in box.scope.calls
            if getattr(c.func, "attr", "") == "append" and c.args and dotted(c.func.value) == name
        ][:MOST]

    @staticmethod
    def _put(box):
        """Returns (key, value) of what is stored into a dict that starts empty, in the function
        that makes it."""
        up = getattr(box, "up", None)
        name = dotted(up.targets[0]) if isinstance(up, ast.Assign) and not box.keys else None
        if name is None:
            return []
        return [
            (target.slice, expr)
            for target, expr, _ in box.src.index.stores
            if expr is not None
            and isinstance(target, ast.Subscript)
            and target.scope is box.scope
            and dotted(target.value) == name
        ][:MOST]

    def _dataclass(self, call, index):
        """HfArgumentParser((A, B)).parse_args_into_dataclasses() returns an A and a B."""
        for value in self.of(call.func.value) if isinstance(call.func, ast.Attribute) else ():
            if value[0] == "made" and value[1].endswith("HfArgumentParser") and value[2].args:
                for inner in self._index(self.of(value[2].args[0]), index):
                    if inner[0] == "cls":
                        return (("inst", inner[1]),)
        return ()

    def _subscript(self, node):
        key = node.slice
        out = ()
        for value in self.of(node.value):
            kind = value[0]
            if kind == "cfg":
                known, text = self.constant(key)
                out += (("cfg", value[1], value[2] + ((str(text),) if known else ("?",))),)
            elif kind == "box" and isinstance(value[1], ast.Dict):
                known, text = self.constant(key)
                for name, item in zip(value[1].keys, value[1].values):
                    if name is None:
                        continue
                    if not known or literal(name) == (True, text):
                        out += self.of(item)
                for name, item in self._put(value[1]):
                    if not known or not literal(name)[0] or literal(name) == (True, text):
                        out += self.of(item)
            elif kind == "box" and isinstance(value[1], ast.DictComp):
                out += self.of(value[1].value)
            elif kind == "box" and isinstance(value[1], ast.List) and not value[1].elts:
                for one in self._appended(value[1]):
                    out += self.of(one)
            elif kind == "box" and isinstance(value[1], (ast.List, ast.Tuple)):
                known, number = literal(key)
                if known and isinstance(number, int) and -len(value[1].elts) <= number < len(value[1].elts):
                    out += self.of(value[1].elts[number])
                else:
                    for element in value[1].elts[:MOST]:
                        out += self.of(element)
            elif kind == "inst" and self.registered(node.value, key):
                out += self.registered(node.value, key)
            elif kind == "inst" and value[1] in self.holders:
                known, text = self.constant(key)
                out += self.instance_attribute(value[1], str(text), set()) if known else ()
            elif kind == "inst" and self.dynamic(value[1]):
                known, text = literal(key)
                out += (("cfg", "file", (str(text),) if known else ("?",)),)
            elif kind == "batch":
                out += (value,)
            elif kind == "made" and value[1] == "builtins.globals":
                known, text = self.constant(key)
                if known:
                    out += self.module_attribute(node.src, str(text))
        if not out:
            out = self._stored(node) or self._keyword(node)
        return out

    def _keyword(self, node):
        """Returns what callers give for `kwargs['args']`, where kwargs is the function's **kwargs."""
        known, key = literal(node.slice)
        bound = self.lookup(node.value) if known and isinstance(node.value, ast.Name) else None
        if not bound or bound[0].kind != "param" or bound[0].path[0] != "**":
            return ()
        self.open += 1
        return tuple(
            v
            for call, _ in self.callers.get(bound[0].scope, ())[:MOST]
            for k in call.keywords
            if k.arg == key
            for v in self.of(k.value)
        )

    def _stored(self, node):
        """Returns the values stored by `x['key'] = value` elsewhere in the same function."""
        known, text = literal(node.slice)
        name = dotted(node.value)
        if not known or name is None:
            return ()
        out = ()
        for target, expr, _ in node.src.index.stores:
            if (
                expr is not None
                and isinstance(target, ast.Subscript)
                and target.scope is node.scope
                and dotted(target.value) == name
                and literal(target.slice) == (True, text)
            ):
                out += self.of(expr)
        return out

    def element(self, expr, path=()):
        """Returns the values that a loop over `expr` yields, unpacked for its target."""
        if isinstance(expr, ast.Call):
            last = (dotted(expr.func) or getattr(expr.func, "attr", "")).rsplit(".", 1)[-1]
            if last == "enumerate" and expr.args:
                if path and path[0] == 0:
                    return ()
                return self.element(expr.args[0], path[1:])
            if last == "zip" and path and isinstance(path[0], int) and path[0] < len(expr.args):
                return self.element(expr.args[path[0]], path[1:])
            if last in names.LOOKAHEAD and expr.args:
                return self.element(expr.args[0], path)
            if last in ("items", "values") and isinstance(expr.func, ast.Attribute):
                rest = path
                if last == "items":
                    if not path or path[0] == 0:
                        return ()
                    rest = path[1:]
                out = ()
                for value in self.of(expr.func.value):
                    if value[0] == "cfg":
                        out += (("cfg", value[1], value[2] + ("?",)),)
                    elif value[0] == "box" and isinstance(value[1], ast.Dict):
                        for item in value[1].values[:MOST]:
                            out += self.part(self.of(item), rest)
                    elif value[0] == "batch":
                        out += (value,)
                return out
            if last == "log_every":  # MetricLogger of the DETR family
                return self.element(expr.args[0], path) if expr.args else ()
        out = ()
        if isinstance(expr, ast.Name):
            for binding in self.lookup(expr) or ():
                if binding.kind == "param" and binding.path[0] == "*":
                    for argument in self.extra(binding.scope):
                        out += self.part(self.of(argument), path)
        for value in self.of(expr):
            kind = value[0]
            if kind == "box" and isinstance(value[1], (ast.List, ast.Tuple, ast.Set)):
                for element in value[1].elts[:MOST] or self._appended(value[1]):
                    out += self.part(self.of(element), path)
            elif kind == "box" and isinstance(value[1], ast.ListComp):
                out += self.part(self.of(value[1].elt), path)
            elif kind == "made" and (value[1] in names.LOADERS or value[1].endswith("DataLoader")):
                out += (("batch", value[2]),)
            elif (
                kind == "made"
                and value[2] is not expr
                and (
                    value[1] in ("builtins.enumerate", "builtins.zip") or value[1].rsplit(".", 1)[-1] in names.LOOKAHEAD
                )
            ):  # bar = tqdm(enumerate(loader))
                out += self.element(value[2], path)
            elif kind == "cfg":
                out += (("cfg", value[1], value[2] + ("?",)),)
            elif kind == "batch":
                out += (value,)
            elif kind == "gen":
                for one in value[1].yields:
                    out += self.part(self.of(one), path)
            elif kind == "inst":
                method = self.find_method(value[1], "__iter__")
                if method is not None:
                    for one in method.yields:
                        out += self.part(self.of(one), path)
        return out
