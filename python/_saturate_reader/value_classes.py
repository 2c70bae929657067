# SPDX-License-Identifier: Apache-2.0
"""Attributes of modules, classes and objects; base classes (a part of Values)."""

import ast

from . import names
from .holders import is_data
from .literals import OPAQUE, argument_of
from .scopes import dotted


class Classes:
    def attribute(self, base, attr, node=None):
        out = ()
        for value in self.of(base):
            out += tuple(self.attribute_of(value, attr, node))
        if base in self.library and isinstance(node, ast.Attribute):
            self.library.add(node)
        return out

    def attribute_of(self, value, attr, node=None):
        kind = value[0]
        if kind == "ext":
            if value[1] == "absl.flags.FLAGS":
                self.open += 1
                whole = self.settings is not None and attr in self.settings.file_flags
                return (("cfg", "file", ()),) if whole else (("cfg", "args", (attr,)),)
            if value[1] == "wandb" and attr == "config":
                return self._given_to_wandb() or (("ext", "wandb.config"),)
            return (("ext", value[1] + "." + attr),)
        if kind == "mod":
            return self.module_attribute(value[1], attr)
        if kind == "params":
            out = ()
            for binding in value[1].names.get(attr, ()):
                if binding.kind == "param":
                    out += tuple(self.binding(binding))
            if not out and any(how == "**" for _, _, how in value[1].params):  # what **kwargs brought is saved too
                self.open += 1
                for call, shift in self.callers.get(value[1], ()):
                    given = self.argument(call, shift, attr, None)
                    out += tuple(self.of(given) if given is not None else self._spread_value(call, attr))
            return out
        if kind == "mods":
            out = ()
            for source in self.project.computed[value[1]]:
                out += tuple(self.module_attribute(source, attr))
            return out or (value,)
        if kind == "inst":
            return self.instance_attribute(value[1], attr, set())
        if kind == "cls":
            return self.class_attribute(value[1], attr, set())
        if kind == "cfg":
            if attr in names.DICT_METHODS:
                return (value,) if attr == "__dict__" else ()
            return (("cfg", value[1], value[2] + (attr,)),)
        if kind == "made":
            call = value[2]
            if attr == "module":
                return self.of(call.args[0]) if call.args else ()
            for keyword in call.keywords:
                if keyword.arg == attr and value[1].split(".")[0] != "torch":
                    return self.of(keyword.value)  # for HParams(batch_size=64).batch_size
            if attr == "dataset" and value[1] in names.LOADERS:
                return self.of(argument_of(call, "dataset", 0))
            return (("ext", value[1] + "()." + attr),)
        return ()

    def _given_to_wandb(self):
        """Returns what wandb.init(config=...) was given: wandb.config has the same keys."""
        return tuple(
            v
            for source in self.project.order
            if source.index is not None
            for call in source.index.calls_named("init")
            if dotted(call.func) == "wandb.init"
            for k in call.keywords
            if k.arg == "config"
            for v in self.of(k.value)
            if v[0] == "cfg"
        )

    def module_attribute(self, source, attr):
        if source.index is None:
            return ()
        bindings = source.index.top.names.get(attr)
        if bindings:
            return self._bound(bindings)
        found = self._from_star(source, attr, set())
        if found:
            return found
        if source.path.endswith("__init__.py"):
            submodule = self.project.find(source, attr, 1)
            if submodule is not None:
                return (("mod", submodule),)
        return ()

    def bases(self, scope):
        """Returns the base classes: the project's as Scope, others as dotted text."""
        out = []
        for base in scope.bases:
            values = self.of(base)
            if not values:
                out.append(dotted(base) or "?")
            for value in values:
                if value[0] == "cls":
                    out.append(value[1])
                elif value[0] == "ext":
                    out.append(value[1])
                elif value[0] == "made":
                    out.append(value[1])
        return out

    def lineage(self, scope):
        """Returns (scopes, dotted names) of all base classes, starting with the class itself."""
        return self._lineage.get(scope, self._find_lineage)

    def _find_lineage(self, scope):
        scopes, outside, queue = [], [], [scope]
        while queue and len(scopes) < 20:
            one = queue.pop(0)
            if isinstance(one, str):
                outside.append(one)
            elif one not in scopes:
                scopes.append(one)
                queue.extend(self.bases(one))
        return scopes, outside

    def subclasses(self, scope):
        """Returns the project's classes derived from this one, at most eight."""
        if not self._all_classes:
            self.open += 1
        return self._subclasses.get(scope, [])[:8]

    def find_subclasses(self):
        """Makes the table for subclasses(). Its answers are final if every base class follows from
        the sources alone."""
        cuts, was_open = self.cuts, self.open
        found = {}
        for source in self.project.order:
            for one in source.index.scopes if source.index is not None else ():
                if one.is_class and one.bases:
                    for base in self.lineage(one)[0][1:]:
                        found.setdefault(base, []).append(one)
        self._subclasses = found
        self._all_classes = (cuts, was_open) == (self.cuts, self.open)

    def find_method(self, scope, name):
        for one in self.lineage(scope)[0]:
            method = one.method(name)
            if method is not None:
                return method
        return None

    def set_methods(self, scope, name):
        """Returns methods that a class assigns to another name: self.train_dataloader =
        self._train_dataloader."""
        return [
            v[1]
            for b in scope.attributes.get(name, ())
            if b.kind == "value" and not b.path
            for v in self.of(b.expr)
            if v[0] in ("fn", "bound")
        ]

    def instance_attribute(self, scope, attr, seen):
        scopes, outside = self.lineage(scope)
        held = self.held(scope, attr)
        if held is not None:
            return (("cfg", "file", held),)
        if attr == "hparams" and outside:
            for one in scopes:
                init = one.method("__init__")
                if init is not None and any(getattr(c.func, "attr", "") == "save_hyperparameters" for c in init.calls):
                    return (("params", init),)
        for one in scopes:
            method = one.method(attr)
            if method is not None:
                for decorator in method.node.decorator_list:
                    if (dotted(decorator) or "").rsplit(".", 1)[-1] in ("property", "cached_property"):
                        out = ()
                        for value in method.returns:
                            out += self.of(value)
                        return out
                return (("fn", method),) if self._static(method) else (("bound", method, scope),)
            bindings = one.attributes.get(attr, []) + one.names.get(attr, [])
            if bindings:
                found = self._bound(bindings)
                if found and attr not in one.attributes and is_data(one):
                    found = self._union([found] + self._given_to_field(one, attr))
                return (OPAQUE,) + found if found and attr in self.foreign() else found
        if self.dynamic(scope):
            return (("cfg", "file", (attr,)),) if attr not in names.DICT_METHODS else ()
        if outside:
            return (("ext", outside[0] + "()." + attr),)
        return ()

    def _given_to_field(self, scope, attr):
        """Returns what makes objects of a dataclass with another value than the default: () for one that is not seen."""
        words = {word.split("=")[0].lstrip("-").replace("-", "_") for word in self.project.command.arguments}
        found = [()] if attr in words else []  # a parser of dataclasses takes it from the command
        for source in self.project.order:
            for call in source.index.calls_named(scope.name, "replace") if source.index is not None else ():
                last = getattr(call.func, "attr", getattr(call.func, "id", ""))
                is_copy = last == "replace" and call.args and any(v == ("inst", scope) for v in self.of(call.args[0]))
                if not is_copy and ("cls", scope) not in self.of(call.func):
                    continue
                given = [k.value for k in call.keywords if k.arg == attr]
                if given:
                    found.append(self.of(given[0]))
                elif len(call.args) > is_copy or any(k.arg is None for k in call.keywords):
                    found.append(())
        return found

    def foreign(self):
        """Returns names of attributes that are set from outside their class."""
        if self._foreign is None:
            self._foreign = set()
            for source in self.project.order:
                for target, _, _ in source.index.stores if source.index is not None else ():
                    if isinstance(target, ast.Attribute) and not (
                        isinstance(target.value, ast.Name) and target.value.id in ("self", "cls")
                    ):
                        self._foreign.add(target.attr)
        return self._foreign

    def held(self, scope, attr):
        """Returns the path of the configuration key that fills a field of this class, or None."""
        if scope not in self.holders or self.settings is None:
            return None
        self.open += 1
        path, fields = self.holders[scope]
        if fields is not None and attr not in fields or not self.settings.find("file", path + (attr,)):
            return None
        return path + (attr,)

    def class_attribute(self, scope, attr, seen):
        scopes, outside = self.lineage(scope)
        for one in scopes:
            method = one.method(attr)
            if method is not None:
                if self._class_method(method):
                    return (("bound", method, scope),)
                return (("fn", method),)
            bindings = one.names.get(attr)
            if bindings:
                found = self._bound(bindings)
                return (OPAQUE,) + found if found and attr in self.foreign() else found
        if outside:
            return (("ext", outside[0] + "." + attr),)
        return ()

    def dynamic(self, scope):
        """Returns whether the attributes of a class come from elsewhere: a dict's keys,
        setattr, __getattr__."""
        return self._dynamic.get(scope, self._is_dynamic)

    def opens_keys(self, scope):
        """A dict that does nothing but give its keys as attributes: `self.__dict__ = self`, or __getattr__."""
        scopes, outside = self.lineage(scope)
        if (
            not outside
            or len(scopes) > 1
            or any(base not in ("builtins.dict", "dict", "collections.OrderedDict") for base in outside)
        ):
            return False
        methods = {method.name for method in scope.children if method.is_function}
        if any(not name.startswith("__") for name in methods):
            return False
        return "__getattr__" in methods | set(scope.names) or any(
            isinstance(target, ast.Attribute) and target.attr == "__dict__" and target.scope.owner is scope
            for target, _, _ in scope.source.index.stores
        )

    def _is_dynamic(self, scope):
        scopes, outside = self.lineage(scope)
        if any(
            base
            in (
                "builtins.dict",
                "dict",
                "collections.OrderedDict",
                "argparse.Namespace",
                "types.SimpleNamespace",
                "easydict.EasyDict",
            )
            or base in names.CONFIG_NODES
            for base in outside
        ):
            return True
        for one in scopes:
            for method in one.children:
                if method.name == "__getattr__":
                    return True
                for call in method.calls:
                    name = dotted(call.func) or ""
                    if name == "setattr" and len(call.args) > 1 and not isinstance(call.args[1], ast.Constant):
                        return True
                    if name.endswith("__dict__.update"):
                        return True
        return False
