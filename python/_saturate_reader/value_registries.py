# SPDX-License-Identifier: Apache-2.0
"""Registries: `@MODELS.register("small")`, `@register("model", "small")`, and what is looked up in them (a part of Values)."""

import ast

from .scopes import ancestors


class Registries:
    def registered(self, base, key):
        """Returns what was put into the registry `base` under this name, or under any if the name is not known."""
        entries = self._registered_in(base)
        known, text = self.constant(key) if entries else (False, None)
        return tuple(value for words, value in entries if not known or words == (text,))

    def built(self, call):
        """build("model", config.name, width=3), of which the function looks up its words in a registry: returns what was registered
        under them, or None."""
        if not self._find_registries():
            return None
        for value in self.of(call.func):
            entries = self._looked_up_in(value[1]) if value[0] == "fn" else ()
            if entries:
                self.open += 1
                given = [self.constant(one) for one in list(call.args) + [k.value for k in call.keywords if k.arg]]
                texts = {text.lower() for known, text in given if known and isinstance(text, str)}
                fitting = [one for words, one in entries if {word.lower() for word in words} <= texts]
                return fitting[0] if len(fitting) == 1 else None
        return None

    def _looked_up_in(self, scope):
        """Returns the entries of the registry that a function calls one of: `return MODELS[name](**rest)`."""
        found = self._lookups.get(scope)
        if found is None:
            found = ()
            for call in scope.calls:
                node = call.func
                bound = scope.names.get(node.id, ()) if isinstance(node, ast.Name) else ()
                node = bound[0].expr if len(bound) == 1 and bound[0].kind == "value" and not bound[0].path else node
                if isinstance(node, (ast.Subscript, ast.Call)):
                    found = found or self._registered_in(_root(node))
            self._lookups[scope] = found
        return found

    def _registered_in(self, base):
        return self._find_registries().get(self._origin(base), ()) if self._find_registries() else ()

    def _find_registries(self):
        """Returns the table of registries: the binding of the object -> [(words, function or class)]."""
        if self._registries is None:
            self._registries = {}
            for source in self.project.order:
                for scope in source.index.scopes if source.index is not None else ():
                    for decorator in getattr(scope.node, "decorator_list", ()):
                        self._register(scope, decorator)
            self._registries.pop(None, None)
        return self._registries

    def _register(self, scope, decorator):
        call = decorator if isinstance(decorator, ast.Call) else None
        func = call.func if call is not None else decorator
        if isinstance(func, ast.Attribute) and func.attr.startswith("register"):
            origin = self._origin(func.value)
        elif isinstance(func, ast.Name) and "register" in func.id.lower():
            origin = self._filled_by(func)
        else:
            return
        words = tuple(
            argument.value
            for argument in (call.args if call is not None else ())
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
        )
        self._registries.setdefault(origin, []).append(
            (words or (scope.name,), ("cls" if scope.is_class else "fn", scope))
        )

    def _filled_by(self, func):
        """Returns the binding of the dict that a decorator puts its function into: `KNOWN[kind][name] = made`."""
        for value in self.of(func):
            for target, expr, _ in value[1].source.index.stores if value[0] == "fn" else ():
                if (
                    isinstance(target, ast.Subscript)
                    and isinstance(expr, ast.Name)
                    and (target.scope is value[1] or any(up is value[1].node for up in ancestors(target)))
                ):
                    return self._origin(_root(target))
        return None

    def _origin(self, node):
        """Returns the one binding at the top of a module that a name has, also where it is imported; else None."""
        bound = self.lookup(node) if isinstance(node, ast.Name) else None
        for _ in range(4):
            if not bound or len(bound) != 1 or bound[0].scope.parent is not None:
                return None
            if bound[0].kind != "import" or bound[0].attr is None:
                return bound[0]
            module, level = bound[0].module
            source = self.project.find(bound[0].scope.source, module, level)
            bound = (
                source.index.top.names.get(bound[0].attr) if source is not None and source.index is not None else None
            )
        return None


def _root(node):
    """Returns MODELS of `MODELS[kind][name]` and of MODELS.get(name)."""
    while isinstance(node, (ast.Subscript, ast.Call, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node
