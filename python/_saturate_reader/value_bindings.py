# SPDX-License-Identifier: Apache-2.0
"""The values of bindings: imports, parameters from their callers, unpacked parts
(a part of Values)."""

import ast
import builtins

from . import names
from .literals import MOST, OPAQUE, argument_of, literal
from .scopes import dotted

BUILTINS = set(dir(builtins))


class Bindings:
    def _name(self, node):
        bindings = self.lookup(node)
        if bindings is None:
            found = self._from_star(node.src, node.id, set())
            if found:
                return found
            if node.id in BUILTINS:
                return (("ext", "builtins." + node.id),)
            return ()
        found = self._bound(bindings, node)
        if (
            len(bindings) == 1
            and bindings[0].kind == "import"
            and found
            and all(v[0] == "ext" for v in found)
            and not node.src.index.rewrites
        ):
            self.library.add(node)
        return found

    def _bound(self, bindings, node=None):
        """Returns the values of names with these bindings."""
        found = (
            tuple(self.binding(bindings[0]))
            if len(bindings) == 1
            else self._union([tuple(self.binding(b)) for b in bindings[:MOST]])
        )
        if (
            found
            and bindings[0].scope.parent is None
            and bindings[0].scope.source.index.rewrites
            and any(b.kind == "value" for b in bindings)
        ):
            return (OPAQUE,) + found  # exec() or globals() may set it
        return found

    @staticmethod
    def _union(parts):
        """Joins the values of several ways; one unknown way leaves the answer open."""
        out = ()
        for part in parts:
            out += part
        return (OPAQUE,) + out if out and not all(parts) else out

    def _from_star(self, source, name, seen):
        if source in seen or source.index is None:
            return ()
        seen.add(source)
        for module, level in sorted(source.index.stars):
            other = self.project.find(source, module, level)
            if (
                other is None
                and not level
                and module.startswith("torch.")
                and (name in names.OPTIMIZERS or name.endswith("LR") or name in ("DataLoader", "Dataset", "Module"))
            ):
                return (("ext", module + "." + name),)
            if other is None or other.index is None:
                continue
            found = other.index.top.names.get(name)
            if found:
                return self._bound(found)
            found = self._from_star(other, name, seen) or self._put_into(other, name)
            if found:
                return found
        return ()

    def _put_into(self, source, name):
        """setattr(sys.modules[__name__], ...): a package that adopts the classes
        of all its modules."""
        if not any(
            c.args and "modules" in (dotted(getattr(c.args[0], "value", c.args[0])) or "")
            for c in source.index.calls_named("setattr")
        ):
            return ()
        for call in source.index.calls_named("import_module", "__import__"):
            for other in self.project.computed.get(call, ()):
                found = other.index.top.names.get(name) if other.index is not None else None
                if found and any(b.kind in ("class", "def") for b in found):
                    return self._bound(found)
        return ()

    def binding(self, binding):
        kind = binding.kind
        if kind == "value":
            if binding.scope.is_class and isinstance(binding.node, ast.AnnAssign):
                return self._field(binding)
            return self.part(self.of(binding.expr), binding.path, binding.expr)
        if kind == "def":
            return self._decorated(binding.node)
        if kind == "class":
            return (("cls", binding.node.inner),)
        if kind == "import":
            return self._imported(binding)
        if kind == "param":
            return self._given.get(binding, self._parameter)
        if kind == "iter":
            return self.element(binding.expr, binding.path)
        if kind == "with":
            return self.part(self.of(binding.expr), binding.path, binding.expr)
        return (OPAQUE,) if kind == "aug" else ()

    def _field(self, binding):
        """`data: Data = field(default_factory=Data)`: an object of the class, also where the type alone says so."""
        expr = binding.expr
        if isinstance(expr, ast.Call) and (dotted(expr.func) or "").rsplit(".", 1)[-1] in ("field", "Field"):
            found = tuple(
                made
                for value in self.of(argument_of(expr, "default_factory", None))
                for made in self.result(value, expr)
            )
            found = found or self.of(argument_of(expr, "default", 0))
        else:
            found = self.of(expr)
        return found or self._annotated(binding.node)

    def _decorated(self, node):
        for decorator in node.decorator_list:
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            name = dotted(call) or ""
            if name.endswith("hydra.main") or name == "hydra.main":
                self.hydra.add(node.inner)
        return (("fn", node.inner),)

    def _imported(self, binding):
        source = binding.scope.source
        if binding.attr is None:
            found = self.project.find(source, binding.module, 0)
            return (("mod", found),) if found is not None else (("ext", binding.module),)
        module, level = binding.module
        found = self.project.find(source, module, level)
        if found is not None and found.index is not None:
            inside = found.index.top.names.get(binding.attr)
            if inside:
                out = (
                    self._bound([other for other in inside if other is not binding] or inside[:0])
                    if any(other is not binding for other in inside)
                    else ()
                )
                if out:
                    return out
            out = self._from_star(found, binding.attr, set())
            if out:
                return out
        name = (module + "." if module else "") + binding.attr
        submodule = self.project.find(source, name, level)
        if submodule is not None:
            return (("mod", submodule),)
        if level or found is not None:
            return ()
        return (("ext", name),)

    def _parameter(self, binding):
        scope = binding.scope
        position = binding.path[0]
        name = binding.name
        if scope.owner is not None and position == 0 and not self._static(scope):
            kind = "cls" if self._class_method(scope) else "inst"
            return tuple((kind, one) for one in [scope.owner] + self.subclasses(scope.owner))
        self.open += 1
        if scope in self.hydra and position == 0:
            # Without a file, the classes in ConfigStore are the configuration.
            structured = (
                self._annotated(binding.node) if self.settings is not None and not self.settings.formats else ()
            )
            return structured or (("cfg", "file", ()),)
        if self._click(scope, name):
            return (("cfg", "args", (name,)),)
        if (scope, name) in self.batches:
            return (("batch", self.batches[(scope, name)]),)
        section = self.configured.get(scope.owner) if scope.name == "__init__" else None
        if section is not None:
            path = self.settings.given("file", section, name)
            if path is not None or binding.expr is not None:
                return (("cfg", "file", path),) if path is not None else self.of(binding.expr)
        parts = []
        callers = self.callers.get(scope, ())
        default = not callers
        for call, shift in callers[:24]:
            given = self.argument(call, shift, name, position)
            if given is not None:
                parts.append(self.of(given))
                continue
            spread = self._spread_value(call, name)
            if spread:
                parts.append(spread)
            default = default or not spread
        if default and binding.expr is not None:
            parts.append(self.of(binding.expr))
            if not callers:
                parts.append(())  # no caller is seen: another value may come
        out = self._union(parts)
        if not out:
            out = self._annotated(binding.node)
        return out

    @staticmethod
    def _click(scope, name):
        """Returns whether a click option fills the parameter."""
        for decorator in getattr(scope.node, "decorator_list", ()):
            if isinstance(decorator, ast.Call) and (dotted(decorator.func) or "") in ("click.option", "click.argument"):
                for argument in decorator.args:
                    if (
                        isinstance(argument, ast.Constant)
                        and str(argument.value).split("/")[0].lstrip("-").replace("-", "_") == name
                    ):
                        return True
        return False

    @staticmethod
    def spreads(call):
        """Returns expressions whose keys become keyword arguments of a call: **x, and what
        hydra instantiates."""
        found = [k.value for k in call.keywords if k.arg is None]
        if (dotted(call.func) or "").rsplit(".", 1)[-1] == "instantiate" and call.args:
            found.append(call.args[0])
        return found

    def _spread_value(self, call, name):
        """Returns what `**x` gives for a parameter; empty if it cannot have it."""
        out = ()
        for node in self.spreads(call):
            values = self.of(node)
            if not values:
                out += (OPAQUE,)
            for value in values:
                if value[0] == "cfg":
                    path = (
                        self.settings.given(value[1], value[2], name)
                        if self.settings is not None
                        else value[2] + (name,)
                    )
                    if path is not None:
                        out += (("cfg", value[1], path),)
                elif value[0] == "box" and isinstance(value[1], ast.Dict):
                    for key, item in zip(value[1].keys, value[1].values):
                        if key is not None and literal(key) == (True, name):
                            out += self.of(item)
                else:
                    out += (OPAQUE,)
        return out

    def _annotated(self, node):
        annotation = getattr(node, "annotation", None)
        if annotation is None:
            return ()
        text = dotted(annotation)
        if text and text.rsplit(".", 1)[-1] in ("DictConfig", "CfgNode", "ConfigDict"):
            return (("cfg", "file", ()),)
        out = ()
        for value in self.of(annotation):
            if value[0] == "cls":
                out += (("inst", value[1]),)
        return out

    @staticmethod
    def _static(scope):
        return any(dotted(d) == "staticmethod" for d in getattr(scope.node, "decorator_list", ()))

    @staticmethod
    def _class_method(scope):
        return any(dotted(d) == "classmethod" for d in getattr(scope.node, "decorator_list", ()))

    def arguments(self, scope, name, position):
        """Returns the expressions that callers pass for a parameter."""
        out = []
        for call, shift in self.callers.get(scope, ())[:24]:
            given = self.argument(call, shift, name, position)
            if given is not None:
                out.append(given)
        return out

    def argument(self, call, shift, name, position):
        """Returns the expression that one call passes for a parameter, or None."""
        for keyword in call.keywords:
            if keyword.arg == name:
                return keyword.value
        if isinstance(position, int):
            index = position - shift
            given = self._positional(call)
            if 0 <= index < len(given) and not any(isinstance(a, ast.Starred) for a in given[: index + 1]):
                return given[index]
        for value in self.of(call.func):
            if value[0] == "partial" and value[2] is not call:  # make = partial(loader, workers=0); make(data)
                for keyword in value[2].keywords:
                    if keyword.arg == name:
                        return keyword.value
        return None

    def extra(self, scope):
        """Yields the expressions that callers pass for *args."""
        self.open += 1
        plain = sum(1 for _, _, how in scope.params if how == "position")
        for call, shift in self.callers.get(scope, ())[:24]:
            yield from call.args[max(0, plain - shift) :]

    @staticmethod
    def _positional(call):
        name = dotted(call.func) or ""
        last = name.rsplit(".", 1)[-1]
        if last == "spawn":  # mp.spawn(fn, nprocs=n, args=(a, b)) calls fn(rank, a, b)
            for keyword in call.keywords:
                if keyword.arg == "args" and isinstance(keyword.value, (ast.Tuple, ast.List)):
                    return [call.args[0] if call.args else keyword.value] + list(keyword.value.elts)
            if len(call.args) > 1 and isinstance(call.args[1], (ast.Tuple, ast.List)):
                return [call.args[0]] + list(call.args[1].elts)
            return []
        if last in ("Process", "Thread"):
            for keyword in call.keywords:
                if keyword.arg == "args" and isinstance(keyword.value, (ast.Tuple, ast.List)):
                    return list(keyword.value.elts)
        return call.args
