# SPDX-License-Identifier: Apache-2.0
"""What `**settings` brings into a call (a part of Calls)."""

import ast

from .literals import literal
from .scopes import FUNCTIONS, ancestors, dotted

BRANCHES = (ast.If, ast.For, ast.While, ast.Try, ast.IfExp, ast.BoolOp)


class Spreads:
    def spreads(self, call):
        out = []
        for keyword in call.keywords:
            if keyword.arg is None:
                out.append(self._spread(call.src, keyword.value, 2))
        for argument in call.args:
            if isinstance(argument, ast.Starred):
                out.append(self._spread(call.src, argument.value, 1))
        return out

    def _spread(self, source, node, stars):
        ways, is_open = [], False
        for value in self.values.of(node):
            found = self._held(value)
            if found is None:
                continue
            keys, more = dict(found[0]), found[1]
            if value[0] != "cfg":
                more |= self._changed(keys, self._names(value, node), node)
            ways.append(keys)
            is_open |= more
        merged = {}
        for keys in ways:
            for key, given in keys.items():
                # Several dicts may be meant: what only one of them has, or each in its own way, is not sure.
                maybe = (
                    merged.setdefault(key, given).get("maybe")
                    or given.get("maybe")
                    or any(other.get(key) != given for other in ways)
                )
                if maybe:
                    merged[key] = dict(merged[key], maybe=True)
        return {
            "bytes": source.span(node),
            "text": source.text(node),
            "stars": stars,
            "keys": list(merged.values()),
            "open": is_open or not ways,
        }

    def _held(self, value):
        """Returns what a dict has where it is made: {key: what is given}, and whether there may be more."""
        if value[0] == "box" and isinstance(value[1], ast.Dict):
            keys = {}
            for name, item in zip(value[1].keys, value[1].values):
                known, key = literal(name) if name is not None else (False, None)
                if known and isinstance(key, str):
                    keys[key] = self._given(key, name, item)
            return keys, any(k is None for k in value[1].keys)
        if value[0] == "made" and value[1] == "builtins.dict" and not value[2].args:
            return (
                {k.arg: self._given(k.arg, k.value, k.value) for k in value[2].keywords if k.arg},
                any(k.arg is None for k in value[2].keywords),
            )
        if value[0] == "cfg":
            return (
                {
                    d.key: {"key": d.key, "declaration": d.id}
                    for d in self.settings.all
                    if d.root == value[1] and len(d.path) == len(value[2]) + 1 and d.path[:-1] == value[2]
                },
                False,
            )
        return None

    @staticmethod
    def _names(value, node):
        """Yields (name, scope, first line) under which the dict may be changed: where it is made, and where it is spread."""
        made = value[1] if value[0] == "box" else value[2]
        up = getattr(made, "up", None)
        name = dotted(up.targets[0]) if isinstance(up, ast.Assign) else None
        if name:
            yield name, made.scope, made.lineno
        used = dotted(node)
        if used and (used, node.scope) != (name, made.scope):
            yield used, node.scope, 0

    def _changed(self, keys, names, node):
        """Puts into keys what is added later: `settings.update(more)`, `settings["key"] = 1`, `settings |= more`. Returns True if that may be any key."""
        is_open = False
        for name, scope, begin in names:
            end = node.lineno if scope is node.scope else None
            for place, how, added in self._changes(scope, name):
                if place.lineno < begin or end is not None and place.lineno >= end or self.reach.off(place):
                    continue
                maybe = self._under_condition(place, node)
                if added is None:
                    is_open = True
                    continue
                for key, given in added.items():
                    if key in keys and (maybe or how != "set"):
                        keys[key] = dict(keys[key], maybe=True)
                    elif how != "pop":
                        keys[key] = dict(given, maybe=True) if maybe else given
        return is_open

    def _changes(self, scope, name):
        """Yields (node, set, default or pop, {key: what is given} or None: any key) in the order of the source."""
        found = []
        for call in scope.calls:
            last = getattr(call.func, "attr", "")
            if last not in ("update", "setdefault", "pop") or dotted(call.func.value) != name:
                continue
            if last == "update":
                found.append(
                    (call, "set", {k.arg: self._given(k.arg, k.value, k.value) for k in call.keywords if k.arg})
                )
                found += [
                    (call, "set", self._added(more))
                    for more in call.args + [k.value for k in call.keywords if not k.arg]
                ]
            elif call.args:
                found.append((call, "pop" if last == "pop" else "default", self._one(call.args[0], call.args[-1])))
        for target, expr, statement in scope.source.index.stores:
            if isinstance(target, ast.Subscript) and target.scope is scope and dotted(target.value) == name:
                found.append((statement, "set", self._one(target.slice, expr)))
        for binding in scope.names.get(name, ()):
            if binding.kind == "aug":  # settings |= more
                found.append((binding.node, "set", self._added(binding.expr)))
        return sorted(found, key=lambda one: (one[0].lineno, one[0].col_offset))

    def _one(self, name, item):
        known, key = literal(name)
        return {key: self._given(key, name, item)} if known and isinstance(key, str) and item is not None else None

    def _added(self, node):
        """Returns {key: what is given} of `update(node)`, or None if that is not known."""
        ways = [self._held(value) for value in self.values.of(node)]
        if len(ways) != 1 or ways[0] is None or ways[0][1]:
            return None
        return ways[0][0]

    def _under_condition(self, place, node):
        """Returns whether the call at `node` may be reached without what happens at `place`."""
        around = set(ancestors(node))
        for up in ancestors(place):
            if isinstance(up, FUNCTIONS):
                return False
            if (
                isinstance(up, BRANCHES)
                and up not in around
                and not (isinstance(up, ast.If) and self.values.truth(up.test) is not None)
            ):
                return True
        return False

    def _given(self, key, name, item):
        """A key of a dict that is spread, with what its value is declared by."""
        if literal(item)[0]:
            declaration = self.flow.of_literal("dict", key, name, item).id
        else:
            sources = self.flow.sources(item)
            declaration = (
                sources[0]["declaration"]
                if len(sources) == 1 and sources[0]["certainty"] == "certain" and not sources[0]["derived"]
                else None
            )
        return {
            "key": key,
            "declaration": declaration,
            "bytes": item.src.span(item),
            "file": item.src.file,
            "line": item.lineno,
        }
