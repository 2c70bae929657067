# SPDX-License-Identifier: Apache-2.0
"""Settings that go somewhere together, as one object or as keywords (a part of Effect)."""

import ast

from . import names
from .literals import literal
from .reads_whole import shows_only
from .scopes import ancestors, dotted


class Whole:
    def _under_target(self, declaration):
        """Returns whether the key is under a `_target_`, so that the object made there takes it."""
        for other in self._makers().get(declaration.file, ()):
            if other.path[:-1] == declaration.path[: len(other.path) - 1]:
                return True
        return False

    def _makers(self):
        """Returns the keys that name a class, by file."""
        if self._made is None:
            self._made = {}
            for one in self.settings.all:
                if (
                    one.key in ("_target_", "class_path")
                    or one.key in ("target", "class", "cls")
                    and "." in str((one.value or {}).get("literal"))
                ):
                    self._made.setdefault(one.file, []).append(one)
        return self._made

    def _spread_class(self, scope):
        """Returns "gone" if other code goes over all fields or a library gets an object of this
        class; "copied" if the fields are copied into an object that is read by name."""
        if scope in self._spreads:
            return self._spreads[scope]
        found = "gone" if scope in self._given_away() and not self._framework_takes(scope) else None
        for source in self.project.order:
            for call in (
                source.index.calls_named("asdict", "fields", "vars", "astuple", "replace", "cli")
                if source.index is not None and found != "gone"
                else ()
            ):
                name = (dotted(call.func) or "").rsplit(".", 1)[-1]
                if (
                    not name
                    or name == "replace"
                    and isinstance(call.func, ast.Attribute)
                    and dotted(call.func) != "dataclasses.replace"
                ):
                    continue
                values = [v for v in self.values.of(call.args[0]) if v[0] != "opaque"] if call.args else []
                if values and all(
                    v[0] in ("inst", "cls") and scope not in self.values.lineage(v[1])[0] for v in values
                ):
                    continue  # of another class
                if self._fills(call) or name in ("vars", "asdict") and self._goes_to_show(call):
                    continue
                found = "copied" if name in ("vars", "asdict") and self._into_namespace(call) else "gone"
            for node in source.index.attributes if source.index is not None and found != "gone" else ():
                if (
                    node.attr == "__dict__"
                    and not self._goes_to_show(node)
                    and any(
                        v[0] == "inst" and scope in self.values.lineage(v[1])[0] for v in self.values.of(node.value)
                    )
                ):
                    found = "gone"
        self._spreads[scope] = found
        return found

    def _framework_takes(self, scope):
        """transformers' Trainer gets the arguments, but reads only the names it knows."""
        return any("TrainingArguments" in b for b in self.values.lineage(scope)[1])

    @staticmethod
    def _into_namespace(call):
        """Namespace(**vars(args)): code that reads a field of the result names the field."""
        up = call.up
        return (
            isinstance(up, ast.keyword)
            and up.arg is None
            and (dotted(up.up.func) or "").rsplit(".", 1)[-1]
            in ("Namespace", "SimpleNamespace", "EasyDict", "AttrDict")
        )

    def _fills(self, call):
        """tyro.cli(Args) gives an object of the class, and so does what a parser made with the class parses."""
        return any(
            v[0] == "ext" and (v[1] in names.FILLS_CLASS or v[1] in names.PARSES_CLASS)
            for v in self.values.of(call.func)
        )

    def _goes_to_show(self, call):
        """wandb.init(config=vars(args)), f"{key}: {value}" for key, value in vars(args).items(): shown or kept, and read by nobody."""
        child = call
        for up in ancestors(call):
            if isinstance(up, ast.Call) and child is not up.func:
                return getattr(up.func, "attr", getattr(up.func, "id", "")) in names.SHOWS
            if isinstance(up, ast.comprehension):
                return self.reads.shown(up.up)
            if isinstance(up, (ast.For, ast.AsyncFor)):
                return child is up.iter and shows_only(up)
            if isinstance(up, ast.stmt):
                return False
            child = up
        return False

    def _given_away(self):
        """Returns classes whose objects are passed to code outside this project."""
        if self._away is None:
            self._away = set()
            for source in self.project.order:
                for call in source.index.calls if source.index is not None else ():
                    last = getattr(call.func, "attr", getattr(call.func, "id", ""))
                    if (
                        call in self.values.callees
                        or last in names.SHOWS - {"save", "init"}
                        or last in ("vars", "asdict", "fields", "astuple", "Namespace", "SimpleNamespace")
                    ):
                        continue  # _spread_class handles these
                    if (
                        last in ("hasattr", "setattr", "delattr", "field", "Field", "super")
                        or last == "getattr"
                        and len(call.args) > 1
                        and literal(call.args[1])[0]
                    ):
                        continue  # reads no field, or one that is named
                    if self._fills(call) or any(
                        v[0] == "ext" and v[1] in names.TRACKERS for v in self.values.of(call.func)
                    ):
                        continue  # fills a class, or keeps the values with a run
                    for argument in list(call.args) + [k.value for k in call.keywords]:
                        if isinstance(argument, ast.Call) and getattr(
                            argument.func, "attr", getattr(argument.func, "id", "")
                        ) in ("vars", "asdict", "astuple"):
                            continue  # likewise
                        own = (
                            call.scope.owner if isinstance(argument, ast.Name) and argument.id == "self" else None
                        )  # setattr(self, key, value)
                        for value in self.values.of(argument):
                            if (
                                value[0] in ("inst", "cls")
                                and not (value[1] is own and own in self.reads.filled)
                                and value[1] not in self._away
                            ):
                                self._away.update(
                                    self.values.lineage(value[1])[0]
                                )  # including the fields that it inherits
        return self._away
