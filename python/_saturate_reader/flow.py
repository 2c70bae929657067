# SPDX-License-Identifier: Apache-2.0
"""Traces a value that is used back to the declarations it comes from."""

import ast

from .declarations import Declaration, value_of
from .literals import literal
from .scopes import dotted

THROUGH = {"int", "float", "str", "bool", "abs", "list", "tuple", "round"}
DEEPEST = 12


class Flow:
    """Finds out whether a declaration reaches a use unchanged (`derived` false) or is part
    of a computation."""

    def __init__(self, values, settings):
        self.values = values
        self.settings = settings

    def sources(self, node):
        """Returns [{declaration, certainty, derived}]; certain if there is only
        one complete way."""
        found = {}
        complete = self._trace(node, False, found, 0, set())
        single = len(found) == 1 and complete
        out = []
        for declaration, derived in found.items():
            out.append(
                {"declaration": declaration.id, "certainty": "certain" if single else "likely", "derived": derived}
            )
        return out

    def _trace(self, node, derived, found, depth, seen):
        """Fills found. Returns False if some way could not be followed to its end."""
        if node is None or depth > DEEPEST or node in seen:
            return False
        seen.add(node)
        if literal(node)[0]:
            return not found or True
        kind = type(node)
        if kind is ast.Name:
            return self._name(node, derived, found, depth, seen)
        if kind in (ast.Attribute, ast.Subscript):
            return self._access(node, derived, found, depth, seen)
        if kind is ast.Call:
            return self._call(node, derived, found, depth, seen)
        if kind is ast.IfExp:
            truth = self.values.truth(node.test)
            ways = [w for w, t in ((node.body, True), (node.orelse, False)) if truth is None or truth is t]
            return all([self._trace(w, derived, found, depth + 1, seen) for w in ways]) and len(ways) == 1
        if kind is ast.BoolOp:
            return all([self._trace(v, derived, found, depth + 1, seen) for v in node.values]) and False
        if kind in (ast.BinOp, ast.Compare, ast.UnaryOp):
            parts = (
                [node.left, node.right]
                if kind is ast.BinOp
                else [node.operand]
                if kind is ast.UnaryOp
                else [node.left] + node.comparators
            )
            return all([self._trace(p, True, found, depth + 1, seen) for p in parts])
        if kind in (ast.Tuple, ast.List):
            return all([self._trace(e, True, found, depth + 1, seen) for e in node.elts[:8]])
        return False

    def _note(self, declaration, derived, found):
        if declaration is not None:
            found[declaration] = found.get(declaration, False) or derived
            return True
        return False

    def _name(self, node, derived, found, depth, seen):
        bindings = self.values.lookup(node)
        if bindings is None:
            values = self.values.of(node)
            return bool(self._config(values, derived, found))
        return all([self._binding(b, derived, found, depth, seen) for b in bindings])

    def _binding(self, binding, derived, found, depth, seen):
        if binding.kind == "value" and not binding.path:
            if literal(binding.expr)[0]:
                return self._note(self.settings.of_binding(binding), derived, found)
            return self._trace(binding.expr, derived, found, depth + 1, seen)
        if (
            binding.kind == "value"
            and isinstance(binding.expr, ast.Tuple)
            and isinstance(binding.path[0], int)
            and binding.path[0] < len(binding.expr.elts)
        ):
            return self._trace(binding.expr.elts[binding.path[0]], derived, found, depth + 1, seen)
        if binding.kind == "param":
            return self._parameter(binding, derived, found, depth, seen)
        if binding.kind == "import" and binding.attr is not None:
            module, level = binding.module
            other = self.values.project.find(binding.scope.source, module, level)
            if other is not None and other.index is not None:
                inside = other.index.top.names.get(binding.attr, ())
                return bool(inside) and all(
                    [self._binding(b, derived, found, depth + 1, seen) for b in inside if b is not binding]
                )
        return False

    def _parameter(self, binding, derived, found, depth, seen):
        scope, position = binding.scope, binding.path[0]
        section = self.values.configured.get(scope.owner) if scope.name == "__init__" else None
        if section is not None:
            path = self.settings.given("file", section, binding.name)
            if path is not None:
                return self._config((("cfg", "file", path),), derived, found)
            if binding.expr is not None:
                return self._note(self.settings.of_binding(binding), derived, found)
        arguments = self.values.arguments(scope, binding.name, position)
        callers = len(self.values.callers.get(scope, ()))
        done = []
        for argument in arguments:
            if literal(argument)[0]:
                done.append(self._note(self.of_literal("argument", binding.name, argument, argument), derived, found))
            else:
                done.append(self._trace(argument, derived, found, depth + 1, seen))
        spread = self._spread(binding, derived, found)
        if binding.expr is not None and (not arguments or len(arguments) < callers) and not spread:
            done.append(self._note(self.settings.of_binding(binding), derived, found))
        return bool(done or spread) and all(done) and bool(callers)

    def _spread(self, binding, derived, found):
        """f(**cfg['data']): traces the parameter to the key of the same name."""
        done = False
        for call, _ in self.values.callers.get(binding.scope, ())[:12]:
            for node in self.values.spreads(call):
                for value in self.values.of(node):
                    path = self.settings.given(value[1], value[2], binding.name) if value[0] == "cfg" else None
                    if path is not None:
                        done |= self._config((("cfg", value[1], path),), derived, found)
        return done

    def _config(self, values, derived, found):
        done = False
        for value in values:
            if value[0] == "cfg":
                matched = self.settings.find(value[1], value[2])
                files = [d for d in matched if d.kind in ("yaml", "json", "toml")]
                for declaration in files or matched:
                    target = self._interpolated(declaration)
                    done |= self._note(target, derived, found)
        return done

    def _interpolated(self, declaration):
        """`batch_size: ${data.batch_size}`: returns the key that has the value."""
        for _ in range(5):
            text = (declaration.value or {}).get("literal")
            if not (
                isinstance(text, str)
                and text.startswith("${")
                and text.endswith("}")
                and ":" not in text
                and text.count("${") == 1
            ):
                break
            matched = self.settings.find("file", tuple(text[2:-1].split(".")))
            if len(matched) != 1:
                break
            declaration = matched[0]
        return declaration

    def _access(self, node, derived, found, depth, seen):
        values = self.values.of(node)
        if any(v[0] == "cfg" for v in values):
            return self._config(values, derived, found) and len([v for v in values if v[0] == "cfg"]) == len(values)
        if isinstance(node, ast.Attribute):
            done = []
            for value in self.values.of(node.value):
                if value[0] in ("inst", "cls"):
                    done += self._field(value[1], node.attr, derived, found, depth, seen)
                elif value[0] == "params":
                    for binding in value[1].names.get(node.attr, ()):
                        if binding.kind == "param":
                            done.append(self._binding(binding, derived, found, depth + 1, seen))
                elif value[0] == "made":
                    for keyword in value[2].keywords:
                        if keyword.arg == node.attr:
                            if literal(keyword.value)[0]:
                                done.append(
                                    self._note(
                                        self.of_literal("dict", keyword.arg, keyword.value, keyword.value),
                                        derived,
                                        found,
                                    )
                                )
                            else:
                                done.append(self._trace(keyword.value, derived, found, depth + 1, seen))
                elif value[0] == "mod" and value[1].index is not None:
                    for binding in value[1].index.top.names.get(node.attr, ()):
                        done.append(self._binding(binding, derived, found, depth + 1, seen))
            return bool(done) and all(done)
        done = []
        known, key = literal(node.slice)
        for value in self.values.of(node.value):
            if known and value[0] == "inst" and value[1] in self.values.holders:
                done += self._field(value[1], str(key), derived, found, depth, seen)
            elif known and value[0] == "box" and isinstance(value[1], ast.Dict):
                for name, item in zip(value[1].keys, value[1].values):
                    if name is not None and literal(name) == (True, key):
                        if literal(item)[0]:
                            done.append(self._note(self.of_literal("dict", str(key), name, item), derived, found))
                        else:
                            done.append(self._trace(item, derived, found, depth + 1, seen))
        return bool(done) and all(done)

    def of_literal(self, kind, key, name, item):
        """Declares a literal at the place of its use: a key of a dict, an argument of a call."""
        declaration = self.settings.by_node.get(name)
        if declaration is None:
            source = item.src
            span = [source.span(name)[0], source.span(item)[1]]
            declaration = Declaration(
                kind, key, key, None, (key,), source.file, name.lineno, span, value_of(source, item)
            )
            self.settings.by_node[name] = self.settings.add(declaration)
        return declaration

    def _field(self, scope, attr, derived, found, depth, seen):
        done = []
        held = self.values.held(scope, attr)
        if held is not None and self._config((("cfg", "file", held),), derived, found):
            return [True]
        for one in self.values.lineage(scope)[0]:
            bindings = one.attributes.get(attr, []) + one.names.get(attr, [])
            for binding in bindings:
                if binding.node in self.settings.by_node:
                    done.append(self._note(self.settings.by_node[binding.node], derived, found))
                elif (
                    binding.kind == "value"
                    and not binding.path
                    and binding.expr is not None
                    and literal(binding.expr)[0]
                ):
                    done.append(self._note(self._attribute(one, binding), derived, found))
                else:
                    done.append(self._binding(binding, derived, found, depth + 1, seen))
            if bindings:
                break
        return done

    def _attribute(self, scope, binding):
        source = scope.source
        declaration = Declaration(
            "attribute",
            scope.name + "." + binding.name,
            binding.name,
            None,
            (binding.name,),
            source.file,
            binding.node.lineno,
            source.span(binding.node),
            value_of(source, binding.expr),
        )
        declaration.node, declaration.scope = binding.node, scope
        self.settings.by_node[binding.node] = self.settings.add(declaration)
        return declaration

    def _call(self, node, derived, found, depth, seen):
        name = dotted(node.func) or ""
        last = name.rsplit(".", 1)[-1]
        if name in THROUGH and len(node.args) == 1:
            return self._trace(node.args[0], derived, found, depth + 1, seen)
        values = self.values.of(node)
        if any(v[0] == "cfg" for v in values) and (last in ("get", "pop", "getattr")):
            done = self._config(values, derived, found)
            if not done and last in ("get", "getattr"):
                default = node.args[-1] if len(node.args) > (1 if last == "get" else 2) else None
                return default is not None and literal(default)[0]
            return done
        if name in ("min", "max", "sum"):
            return all([self._trace(a, True, found, depth + 1, seen) for a in node.args]) and False
        return False
