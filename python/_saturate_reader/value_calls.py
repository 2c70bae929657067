# SPDX-License-Identifier: Apache-2.0
"""The value of a call, and the functions that it enters (a part of Values)."""

import ast

from . import names
from .literals import MOST, argument_of, literal
from .scopes import dotted, is_main

NONE_BY_PLACE = -1000  # the function gets its arguments by name alone


class CallValues:
    def _call(self, node):
        out = ()
        func = node.func
        name = dotted(func) or ""
        last = name.rsplit(".", 1)[-1] if name else getattr(func, "attr", "")
        if last in names.PARSE_CALLS:
            return self._parsed_class(func) or (
                (("cfg", "args", ()),) if last != "parse_known_args" else (("made", "parse_known_args", node),)
            )
        if last == "getattr" and name == "getattr" and len(node.args) > 1:
            known, attr = self.constant(node.args[1])
            if known:
                return self.attribute(node.args[0], str(attr), node)
            for value in self.of(node.args[0]):
                if value[0] == "ext":
                    out += (("ext", value[1] + ".*"),)
                elif value[0] == "mods":
                    out += (value,)
                elif (
                    value[0] == "mod" and value[1].index is not None
                ):  # one of its own classes, or functions if it has none
                    own = [b for bs in value[1].index.top.names.values() for b in bs]
                    own = [b for b in own if b.kind == "class"] or [b for b in own if b.kind == "def"]
                    out += tuple(v for b in own for v in self.binding(b)) if len(own) <= 6 else ()
            return out
        if name == "next" and node.args:
            return self.element(node.args[0])
        if name == "eval" and node.args:
            return self._evaluated(node)
        if name == "locals" and any(
            dotted(getattr(d, "func", d)) == "click.option" for d in getattr(node.scope.node, "decorator_list", ())
        ):
            return (("cfg", "args", ()),)  # Config(locals().copy())
        if last == "super" and not node.args or name == "super":
            owner = node.scope.owner if node.scope.is_function else None
            if owner is not None:
                for base in self.bases(owner):
                    out += (("inst", base),) if not isinstance(base, str) else (("made", base, node),)
            return out
        if last in ("import_module", "__import__") and node.args:
            known, module = self.constant(node.args[0])
            if known and isinstance(module, str):
                found = self.project.find(node.src, module.lstrip("."), 0)
                return (("mod", found),) if found is not None else (("ext", module),)
            return (("mods", node),) if node in self.project.computed else ()
        if isinstance(func, ast.Attribute):
            special = self._method(node, func, last)
            if special is not None:
                return special
        built = self.built(node)
        if built is not None:
            return self.result(built, node)
        values = self.of(func)
        for value in values:
            out += tuple(self.result(value, node))
            if len(out) > MOST:
                break
        if any(value[0] == "fn" and self._imports(value[1], 0) for value in values):
            named = self._given_names(node)
            if named:
                return named
        return out

    def _parsed_class(self, func):
        """ArgumentParser(Options).parse_args() of argparse_dataclass, Options().parse_args() of a class derived from Tap: an object of the class."""
        for value in self.of(func.value) if isinstance(func, ast.Attribute) else ():
            if value[0] == "made" and value[1] in names.PARSES_CLASS:
                return tuple(
                    ("inst", v[1]) for v in self.of(argument_of(value[2], "options_class", 0)) if v[0] == "cls"
                )
            if value[0] == "inst" and any(base.rsplit(".", 1)[-1] == "Tap" for base in self.lineage(value[1])[1]):
                return (value,)
        return ()

    def _evaluated(self, node):
        """eval("models." + name + ".make"): what the text names, if it is known and a dotted name."""
        known, text = self.constant(node.args[0])
        parts = text.split(".") if known and isinstance(text, str) else []
        if not parts or not all(part.isidentifier() for part in parts):
            return ()
        found = self._bound(self.lookup(node, parts[0]) or ())
        for part in parts[1:]:
            found = tuple(inner for value in found for inner in self.attribute_of(value, part))
        return found

    def _imports(self, scope, depth):
        """Returns whether a function makes or returns what a text names: import_module(path)."""
        return (
            any(
                getattr(c.func, "attr", getattr(c.func, "id", "")) in ("import_module", "__import__", "locate")
                for c in scope.calls
            )
            or depth < 1
            and any(
                value[0] == "fn" and self._imports(value[1], depth + 1)
                for c in scope.calls
                if isinstance(c.func, ast.Name)
                for value in self.of(c.func)
            )
        )

    def _given_names(self, node):
        """Returns the project's classes that a call's arguments name: as text, or by a section of
        the configuration."""
        out = ()
        for argument in list(node.args) + [k.value for k in node.keywords if k.arg]:
            self.open += 1
            known, text = self.constant(argument)
            texts = [text] if known else []
            for value in self.of(argument) if not known and self.settings is not None else ():
                if value[0] == "cfg" and "?" not in value[2]:
                    texts += [
                        text
                        for key in names.TARGETS
                        for known, text in [self.settings.constant(value[1], value[2] + (key,))]
                        if known
                    ]
            for text in texts:
                found = self.named(text) if isinstance(text, str) else None
                if found is not None:
                    out += (
                        (found, ("inst", found[1])) if found[0] == "cls" else (found,)
                    )  # the function may use the class or an object of it
        return out

    def _method(self, node, func, last):
        """Handles methods that return the object they are called on, or a part of it."""
        if last in ("get", "pop", "setdefault") and node.args:
            out = ()
            known, key = self.constant(node.args[0])
            for value in self.of(func.value):
                if value[0] == "cfg":
                    out += (("cfg", value[1], value[2] + ((str(key),) if known else ("?",))),)
                elif (
                    value[0] == "inst"
                    and value[1] in self.holders
                    and known
                    and self.find_method(value[1], last) is None
                ):
                    out += self.instance_attribute(value[1], str(key), set())
                elif value[0] == "params" and known:
                    out += self.attribute_of(value, str(key))
                elif (
                    value[0] == "inst"
                    and self.dynamic(value[1])
                    and last == "get"
                    and self.find_method(value[1], "get") is None
                ):
                    out += (("cfg", "file", (str(key),) if known else ("?",)),)
                elif value[0] == "box" and isinstance(value[1], ast.Dict):
                    for name, item in zip(value[1].keys, value[1].values):
                        if name is not None and (not known or literal(name) == (True, key)):
                            out += self.of(item)
            if out:
                self.open += 1
                default = self.of(node.args[1]) if len(node.args) > 1 and last == "get" else ()
                ask = self.settings
                if ask is None or not all(v[0] == "cfg" for v in out):
                    return out + default
                if all(ask.find(v[1], v[2]) for v in out):
                    return out
                if (
                    default
                    and known
                    and ask.complete
                    and not any(ask.find(v[1], v[2]) or v[2][-1] in ask.written[v[1]] for v in out)
                ):
                    return default  # no file declares it and nothing sets it
                return out + default
            return None
        if last in names.SAME_METHODS:
            values = self.of(func.value)
            kept = tuple(
                v
                for v in values
                if v[0] in ("inst", "made", "cfg", "box", "batch")
                and not (v[0] == "inst" and self.find_method(v[1], last) is not None)
            )
            if kept:
                return kept
            return None
        if last not in ("item", "size", "dim", "numel", "tolist", "numpy", "shape", "keys", "items", "values"):
            kept = tuple(v for v in self.of(func.value) if v[0] == "batch")
            if kept:
                return kept
        if last == "merge" and node.args:
            out = ()
            for argument in node.args:
                values = self.element(argument.value) if isinstance(argument, ast.Starred) else self.of(argument)
                out += tuple(v for v in values if v[0] == "cfg")
            return tuple(dict.fromkeys(out)) or None
        return None

    def result(self, value, node):
        """Returns the values of calling `value`."""
        kind = value[0]
        if kind in ("fn", "bound"):
            return self._returned(value[1])
        if kind == "cls":
            base = self.plain_loader(value[1])
            if base is not None:
                return (("made", base, node),)
            return self._opened(value[1], node) or (("inst", value[1]),)
        if kind == "inst":
            method = self.find_method(value[1], "__call__") or self.find_method(value[1], "forward")
            return self._returned(method) if method is not None else ()
        if kind == "partial":
            return self.result(value[1], value[2] if value[1][0] == "ext" else node)
        if kind == "ext":
            name = value[1]
            if name in ("functools.partial",) and node.args:
                return tuple(("partial", v, node) for v in self.of(node.args[0]))
            if name == "argparse.Namespace" and not node.args and not node.keywords:
                return (("made", name, node),)
            if name in names.CONFIG_NODES and not node.args and not node.keywords:
                return (("cfg", "file", ()),)
            if name in names.SAME and (node.args or node.keywords):
                argument = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg is None), None)
                values = self.of(argument)
                if values:
                    return values
            if name.endswith("instantiate") and node.args:
                return self._instantiated(node)
            if name in names.FILLS_CLASS:
                made = tuple(
                    ("inst", v[1]) for v in self.of(argument_of(node, names.FILLS_CLASS[name], 0)) if v[0] == "cls"
                )
                if made:
                    return made
            if name in names.READS_CONFIG:
                self.open += 1
                formats = self.settings.formats if self.settings is not None else ()
                if formats and name in names.READS_JSON and "json" not in formats:
                    return (("made", name, node),)  # the configuration is not JSON, so this reads data
                return (("cfg", "file", ()),)
            return (("made", name, node),)
        return ()

    def plain_loader(self, scope):
        """Returns the loader class of a library that a class is derived from, if making an object is the same for both; else None."""
        scopes, outside = self.lineage(scope)
        return (
            next((base for base in outside if base in names.LOADERS), None)
            if all(one.method("__init__") is None for one in scopes)
            else None
        )

    def _opened(self, scope, node):
        """AttrDict(json.load(f)): a dict whose keys are attributes too is the configuration that it is made of."""
        given = [a for a in node.args if not isinstance(a, ast.Starred)] + [
            k.value for k in node.keywords if k.arg is None
        ]
        if len(given) != 1 or len(given) < len(node.args) + len(node.keywords) or not self.opens_keys(scope):
            return ()
        values = self.of(given[0])
        return values if any(v[0] == "cfg" for v in values) else ()

    def _instantiated(self, node):
        """hydra.utils.instantiate(cfg.x): the class that `_target_` (`class` before hydra 1.0)
        names in the configuration."""
        out = ()
        self.open += 1
        for value in self.of(node.args[0]):
            if value[0] != "cfg" or self.settings is None:
                continue
            value = (value[0], value[1], self.settings.resolved(value[1], value[2]))
            for key in names.TARGETS:
                known, target = self.settings.constant(value[1], value[2] + (key,))
                if known and isinstance(target, str):
                    out += self._made_from(target, node, value)
                    break
        return out

    def _made_from(self, target, node, value):
        found = self.named(target)
        known, partial = self.settings.constant(value[1], value[2] + ("_partial_",))
        if found is None:
            return (("partial", ("ext", target), node),) if known and partial else (("made", target, node),)
        if found[0] == "cls" and not (known and partial):
            return (("inst", found[1]),)
        return (("partial", found, node),) if known and partial else ()

    def named(self, target):
        """Returns the project's class or function with a dotted name, or None."""
        if self.project.entry is None or "." not in target:
            return None
        module, name = target.rsplit(".", 1)
        source = self.project.find(self.project.entry, module, 0)
        if source is None or source.index is None:
            return None
        for value in self.module_attribute(source, name):
            if value[0] in ("cls", "fn"):
                return value
        return None

    def _returned(self, scope):
        out = ()
        if scope.yields:
            return (("gen", scope),)
        returned = scope.returns
        if len(returned) > 1:
            returned = [r for r in returned if not self.switched_off(r)] or returned
        out = self._union([self.of(value) for value in returned[:8]])
        if isinstance(scope.node, ast.Lambda):
            out += self.of(scope.node.body)
        copied = self._copied(scope, out)
        return copied or tuple(out)

    def _copied(self, scope, out):
        """Returns the configuration if the function copies it key by key, else an empty tuple."""
        made = any(
            v[0] == "made"
            and v[1] in ("argparse.Namespace", "types.SimpleNamespace", "builtins.dict", "easydict.EasyDict")
            or v[0] == "box"
            and isinstance(v[1], ast.Dict)
            for v in out
        )
        if not made:
            return ()
        sets = any(
            (dotted(c.func) == "setattr" and len(c.args) > 1 and not isinstance(c.args[1], ast.Constant))
            for c in scope.calls
        )
        if not sets:
            sets = any(
                isinstance(t, ast.Subscript)
                and t.scope is scope
                and not isinstance(t.slice, ast.Constant)
                and not self._is_object(expr)
                for t, expr, _ in scope.source.index.stores
            )
        if not sets:
            return ()
        kept = ()
        for name, _, how in scope.params:
            for binding in scope.names.get(name, ()):
                if binding.kind == "param":
                    kept += tuple(v for v in self.binding(binding) if v[0] == "cfg")
        if not kept:  # the file is read inside the function
            for call in scope.calls:
                kept += tuple(v for v in self.of(call) if v[0] == "cfg" and v[2] == ())
        whole = tuple(v for v in kept if "?" not in v[2])  # for nested sections the function calls itself
        return whole or kept

    def _is_object(self, expr):
        """Returns whether a value is certainly an object and no setting: `loaders[phase] = DataLoader(...)`."""
        values = self.of(expr) if expr is not None else ()
        return bool(values) and all(
            v[0] == "inst" or v[0] == "made" and v[1].split(".")[0] in ("torch", "torchvision", "numpy") for v in values
        )

    def connect(self):
        """Fills callers and callees. The second round knows the parameters that
        the first one bound."""
        self.find_subclasses()
        calls = [call for source in self.project.order if source.index is not None for call in self._made_by(source)]
        for _ in range(3):
            callers, callees = {}, {}
            for call in calls:
                for scope, shift in self.targets(call):
                    callers.setdefault(scope, []).append((call, shift))
                    callees.setdefault(call, []).append((scope, shift))
            same = callees == self.callees
            self.callers, self.callees = callers, callees
            if same:
                break
            self.forget()

    def _made_by(self, source):
        """Returns the calls of a file that this program may make: without those under its
        `if __name__ == "__main__"`, unless it is the program."""
        own = (
            [s for s in source.tree.body if isinstance(s, ast.If) and is_main(s.test)]
            if source is not self.project.entry
            else ()
        )
        return [c for c in source.index.calls if not any(s.lineno <= c.lineno <= s.body[-1].end_lineno for s in own)]

    def drop_answers(self):
        self.memo.clear()
        self._given.now.clear()

    def forget(self):
        """Drops the answers that more knowledge would change."""
        self.memo.clear()
        for kept in (self.truths, self._lineage, self._dynamic, self._given, self._live, self._looked):
            kept.now.clear()
            if self.holders:  # their fields differ from what the sources alone say
                kept.final.clear()
        if self.holders:
            self.final.clear()
            self.settled.clear()
        if not self._all_classes or self.holders:
            self.find_subclasses()

    def targets(self, call):
        """Returns the project's functions that a call enters: (Scope, number of parameters
        filled otherwise)."""
        kept = self.settled.get(call)
        if kept is not None:
            return kept
        out = []
        cuts, was_open = self.cuts, self.open
        func = call.func
        for value in self.of(func):
            out.extend(self.enters(value))
        built = self.built(call)
        if built is not None:
            out.extend((scope, NONE_BY_PLACE) for scope, _ in self.enters(built))
        last = func.attr if func.__class__ is ast.Attribute else func.id if func.__class__ is ast.Name else ""
        if last in ("spawn", "partial", "map", "submit", "run") and call.args:
            for value in self.of(call.args[0]):
                for scope, shift in self.enters(value):
                    out.append((scope, shift - 1 if last in ("partial", "submit") else shift))
        if last in ("Process", "Thread"):
            for keyword in call.keywords:
                if keyword.arg == "target":
                    for value in self.of(keyword.value):
                        out.extend(self.enters(value))
        if last == "instantiate":
            for value in self.of(call):
                if value[0] == "inst":
                    method = self.find_method(value[1], "__init__")
                    if method is not None:
                        out.append((method, 0))  # the configuration is passed in place of self
        if len(out) > 1:
            out = list(dict.fromkeys(out))
        if (cuts, was_open) == (self.cuts, self.open):
            self.settled[call] = out
        return out

    def enters(self, value):
        kind = value[0]
        if kind == "fn":
            return [(value[1], 0)]
        if kind == "bound":
            return [(value[1], 1)]
        if kind == "cls":
            method = self.find_method(value[1], "__init__")
            return [(method, 1)] if method is not None else []
        if kind == "inst":
            method = self.find_method(value[1], "__call__") or self.find_method(value[1], "forward")
            return [(method, 1)] if method is not None else []
        if kind == "partial":
            return self.enters(value[1])
        return []
