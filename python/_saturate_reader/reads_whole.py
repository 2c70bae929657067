# SPDX-License-Identifier: Apache-2.0
"""Whole configurations and their sections as values: where they go, and whether other code may read
them unseen (a part of Reads)."""

import ast

from . import names
from .scopes import COMPREHENSIONS, ancestors, dotted, function_of, is_main


class WholeReading:
    def _escape(self, root, path, why, node):
        self.escaped.setdefault((root, path), (why, node))

    def _whole(self, node):
        """Notes a whole configuration or section that is passed on as a value."""
        values = [v for v in self.values.of(node) if v[0] == "cfg"]
        if not values:
            return
        for value in values:
            self.loads[value[1]] = True
        why = self._goes(node)
        if why and not _of_other_main(node, self.project.entry):
            for value in values:
                self._escape(value[1], value[2], why, node)

    def _goes(self, node):
        """Returns why other code may read the keys unseen, or None if it is followed, only shown or
        only kept."""
        up = node.up
        if isinstance(up, ast.Attribute):
            if up.attr in ("items", "values") and isinstance(up.up, ast.Call) and up.up.func is up:
                return self._looped(up.up)
            return None  # keys() gives names: a value is read with cfg[key]
        if isinstance(up, (ast.For, ast.AsyncFor)) and up.iter is node and not self._is_leaf(node):
            return None if shows_only(up) else "a loop goes over all of it"
        if isinstance(up, ast.Subscript) and up.value is node:
            return None
        if isinstance(up, ast.keyword) or isinstance(up, ast.Call) or isinstance(up, ast.Starred):
            call = up if isinstance(up, ast.Call) else up.up
            if not isinstance(call, ast.Call):
                return None
            if isinstance(up, ast.Call) and up.func is node:
                return None
            if isinstance(up, ast.keyword) and up.arg is None:
                return None  # a spread, examined with its call
            return self._given(call, node)
        return None

    def _given(self, call, node):
        name = dotted(call.func) or ""
        last = name.rsplit(".", 1)[-1] or getattr(call.func, "attr", "")
        if call in self.values.callees:
            return None
        if name in (
            "vars",
            "dict",
            "list",
            "sorted",
            "iter",
            "enumerate",
            "zip",
            "deepcopy",
            "copy.deepcopy",
            "copy.copy",
            "set",
            "tuple",
            "asdict",
        ):
            return self._looped(call)
        if last in names.SHOWS or last in (
            "getattr",
            "setattr",
            "hasattr",
            "delattr",
            "is_config",
            "update",
            "append",
            "extend",
            "merge_from_file",
        ):
            return None
        values = self.values.of(call.func)
        if any(v[0] in ("cls", "fn", "bound", "mods") for v in values):
            return None  # a class without its own __init__, or a module of the project picked by a computed name
        for value in values:
            if value[0] == "ext":
                if (
                    value[1] in names.SAME
                    or value[1] in names.READS_CONFIG
                    or value[1].endswith(("OmegaConf.merge", ".instantiate"))
                ):
                    if value[1].endswith("instantiate"):
                        return "hydra creates an object from it"
                    return None
                if value[1].split(".")[0] in (
                    "os",
                    "sys",
                    "logging",
                    "wandb",
                    "json",
                    "yaml",
                    "pickle",
                    "builtins",
                    "pprint",
                    "random",
                    "time",
                    "math",
                    "numpy",
                    "pathlib",
                ):
                    return None
                if any(v[0] == "cfg" and len(v[2]) > 0 for v in self.values.of(node)) and self._is_leaf(node):
                    return None
                return "it is passed to %s" % value[1]
        if self._is_leaf(node):
            return None
        return "it is passed to %s" % (name or last or "a function")

    def _is_leaf(self, node):
        for value in self.values.of(node):
            if value[0] == "cfg":
                found = self.settings.find(value[1], value[2]) if value[2] else []
                if not found or any(not d.leaf for d in found):
                    return False
        return True

    def _looped(self, call):
        """vars(args), cfg.items(): returns None if the loop only shows, compares
        or copies the keys."""
        node = call
        for up in ancestors(call):
            if isinstance(up, ast.Attribute):
                node = up
                continue
            if isinstance(up, ast.Call):
                if node is up.func:
                    node = up
                    continue
                last = getattr(up.func, "attr", getattr(up.func, "id", ""))
                if last in names.SHOWS | {"update", "Namespace", "len", "any", "all"}:
                    return None
                if last in (
                    "sorted",
                    "list",
                    "enumerate",
                    "dict",
                    "set",
                    "tuple",
                    "OrderedDict",
                    "deepcopy",
                    "iter",
                    "zip",
                    "vars",
                    "copy",
                ):
                    node = up
                    continue
                return None if up in self.values.callees else "all of it is passed to %s" % (last or "a function")
            if isinstance(up, (ast.For, ast.AsyncFor)) and node is up.iter:
                return (
                    None if shows_only(up) or self._copies(up) or self._sections(node) else "a loop goes over all of it"
                )
            if isinstance(up, ast.comprehension):
                holder = up.up
                return None if self.shown(holder) or self._held(holder) else "a comprehension goes over all of it"
            return None
        return None

    def _sections(self, call):
        """`for phase, part in cfg["data"].items()`: returns whether every part is a section, whose own keys are followed from its name."""
        if getattr(call.func, "attr", "") not in ("items", "values"):
            return False
        for value in self.values.of(call.func.value):
            if value[0] == "cfg":
                inside = (
                    [d for d in self.settings.all if d.root == value[1] and d.path[:-1] == value[2]] if value[2] else ()
                )
                if not inside or any(d.leaf for d in inside):
                    return False
        return True

    def _copies(self, loop):
        """Returns whether a loop copies keys into fields of a known class."""
        return any(
            isinstance(n, ast.Call)
            and dotted(n.func) == "setattr"
            and any(v[0] == "inst" and v[1] in self.values.holders for v in self.values.of(n.args[0]))
            for s in loop.body
            for n in ast.walk(s)
        )

    def _held(self, node):
        up = node.up
        if isinstance(up, ast.keyword) and up.arg is None and isinstance(up.up, ast.Call):
            return any(v[0] == "cls" and v[1] in self.values.holders for v in self.values.of(up.up.func))
        if isinstance(up, ast.Assign):  # assigned to a name: the spread that uses it was examined
            return any(
                v[0] == "cls" and v[1] in self.values.holders
                for c in node.scope.calls
                for k in c.keywords
                if k.arg is None and isinstance(k.value, ast.Name) and k.value.id == dotted(up.targets[0])
                for v in self.values.of(c.func)
            )
        return False

    def shown(self, node):
        for up in ancestors(node):
            if isinstance(up, ast.Call) and getattr(up.func, "attr", getattr(up.func, "id", "")) in names.SHOWS:
                return True
            if isinstance(up, ast.stmt):
                return False
        return False

    def _computed(self, node, base, key):
        """cfg[name] with a computed name: any key may be meant."""
        values = [v for v in self.values.of(base) if v[0] == "cfg"]
        if not values:
            return
        known, text = self.values.constant(key)
        if known and isinstance(text, str):
            self._access(node, base, text)
            return
        if isinstance(key, ast.Slice) or isinstance(key, ast.Constant) or not self._is_entered(function_of(node)):
            return
        for up in ancestors(node):
            if isinstance(up, (ast.For, ast.AsyncFor)) and _names_target(up.target, key):
                if shows_only(up):
                    return
                break
            if isinstance(up, COMPREHENSIONS) and any(_names_target(g.target, key) for g in up.generators):
                if self.shown(up):
                    return
                break
        for value in values:
            if value[2] and self._is_leaf(base):
                continue
            self._escape(value[1], value[2], "keys are read by computed names", node)

    def _is_entered(self, scope):
        """This program runs the function. __getitem__ runs where an object of its class is asked for a key."""
        if self.reach.runs(scope) is None:
            return False
        if scope.name != "__getitem__" or scope.owner is None:
            return True
        return any(
            value[0] == "inst" and scope.owner in self.values.lineage(value[1])[0]
            for source in self.project.order
            if source.index is not None
            for node in source.index.subscripts
            for value in self.values.of(node.value)
        )

    def _spread(self, call, node):
        """f(**cfg): parameters of the same names read the keys; a library may read all of them."""
        values = [v for v in self.values.of(node) if v[0] == "cfg"]
        if values and not _of_other_main(call, self.project.entry):
            for value in values:
                self.loads[value[1]] = True
            self._spread_into(call, node, values, ())

    def _spread_into(self, call, node, values, way):
        """`way`: the functions whose own ** the keys came through."""
        targets = self.values.callees.get(call, ())
        for value in values:
            if not targets:
                known = [v for v in self.values.of(call.func) if v[0] == "cls"]
                fields = [s for v in known for s in self.values.lineage(v[1])[0] if list(self.fields_of(s))]
                if fields:
                    for scope in fields:
                        for declaration in self.fields_of(scope):
                            for other in self.settings.find(value[1], value[2] + (declaration.key,)):
                                self._note(other, call)
                    continue
                if any(
                    v[0] == "ext"
                    and v[1]
                    in (
                        "argparse.Namespace",
                        "types.SimpleNamespace",
                        "builtins.dict",
                        "easydict.EasyDict",
                        "collections.OrderedDict",
                    )
                    for v in self.values.of(call.func)
                ):
                    continue
                name = dotted(call.func) or "a function"
                if name.rsplit(".", 1)[-1] in names.SHOWS:
                    continue
                self._escape(value[1], value[2], "its keys are passed to %s with **" % name, node)
                continue
            given = {k.arg for k in call.keywords}
            for scope, shift in targets:
                for position, (name, _, how) in enumerate(scope.params):
                    if how in ("position", "keyword"):
                        if name not in given and (how == "keyword" or position >= shift + len(call.args)):
                            self._ask(value[1], value[2] + (name,), call)
                        for declaration in self.settings.find(value[1], value[2] + (name,)):
                            if declaration.path[:-1] == value[2] or declaration.root == "args":
                                self._note(declaration, call, "certain")
                    elif how == "**" and any(
                        load.id == name for load in scope.source.index.loads if load.scope is scope
                    ):
                        if scope.name == "__init__" and self._fills_itself(scope, name, value):
                            self.filled.add(scope.owner)
                            continue
                        onward = self._passed_on(scope, name)
                        if onward and scope not in way and len(way) < 4:
                            for other in onward:
                                self._spread_into(other, node, [value], way + (scope,))
                            continue
                        self._escape(
                            value[1], value[2], "%s takes its keys with ** and uses them" % scope.qualified(), node
                        )

    @staticmethod
    def _passed_on(scope, name):
        """Returns the calls that get a function's **kwargs with **, if nothing else is done with them."""
        found = []
        for load in scope.source.index.loads:
            if load.id == name and load.scope is scope:
                up = load.up
                if not (isinstance(up, ast.keyword) and up.arg is None and isinstance(up.up, ast.Call)):
                    return []
                found.append(up.up)
        return found

    def _fills_itself(self, scope, name, value):
        """`for k, v in kwargs.items(): self[k] = HParams(**v) if ... else v`, `for k in kwargs: setattr(self, k.upper(), kwargs[k])`:
        the keys become the object's attributes, and nothing else is done with them."""
        if scope.owner is None or not self.values.dynamic(scope.owner):
            return False
        keys = [
            d.path[len(value[2])]
            for d in self.settings.all
            if d.root == value[1] and d.path[: len(value[2])] == value[2] and len(d.path) > len(value[2])
        ]
        for load in scope.source.index.loads:
            if load.id != name or load.scope is not scope:
                continue
            up = load.up
            if isinstance(up, ast.Call) and (dotted(up.func) or "").endswith("__dict__.update"):
                continue
            if isinstance(up, ast.Subscript) and any(
                isinstance(one, ast.For) and _iterates(one, name) for one in ancestors(up)
            ):
                continue  # in the body of such a loop
            loop = (
                up
                if isinstance(up, ast.For)
                else up.up.up
                if isinstance(up, ast.Attribute) and isinstance(up.up, ast.Call)
                else None
            )
            if not isinstance(loop, ast.For) or not _iterates(loop, name):
                return False
            for node in (n for statement in loop.body for n in ast.walk(statement)):
                last = getattr(getattr(node, "func", None), "attr", "")
                if last in ("upper", "lower") and all(key == getattr(key, last)() for key in keys):
                    continue
                if (
                    isinstance(node, ast.Call)
                    and dotted(node.func) not in ("setattr", "type", "isinstance")
                    and not any(v == ("cls", scope.owner) for v in self.values.of(node.func))
                ):
                    return False
        return True


def _iterates(loop, name):
    """Returns whether a loop goes over a dict of this name, or its items."""
    over = (
        loop.iter.func.value
        if isinstance(loop.iter, ast.Call) and getattr(loop.iter.func, "attr", "") in ("items", "keys")
        else loop.iter
    )
    return isinstance(over, ast.Name) and over.id == name


def _of_other_main(node, entry):
    """Returns whether the node is under `if __name__ == "__main__"` of a file that is imported: another program's."""
    return node.src is not entry and any(isinstance(up, ast.If) and is_main(up.test) for up in ancestors(node))


def _names_target(target, key):
    named = {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
    return any(isinstance(n, ast.Name) and n.id in named for n in ast.walk(key))


def shows_only(loop):
    """A loop that prints, compares, writes back or copies, and hands nothing to code that may act on it."""
    own = function_of(loop).name
    for statement in loop.body:
        for node in ast.walk(statement):
            if (
                isinstance(node, ast.BinOp)
                and isinstance(node.op, (ast.Mult, ast.Div, ast.Sub, ast.Pow, ast.FloorDiv))
                or isinstance(node, ast.AugAssign)
            ):
                operands = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
                if any(isinstance(one, ast.Name) and _names_target(loop.target, one) for one in operands):
                    return False  # total += losses[key] * weight
            if isinstance(node, ast.Call):
                last = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if (
                    last == own
                    and type(node.func) is ast.Name
                    and (
                        isinstance(node.up, (ast.AugAssign, ast.BinOp, ast.Expr))
                        or isinstance(node.up, ast.Assign)
                        and _names_target(loop.target, node.up.targets[0])
                    )
                ):
                    continue  # text += to_text(section), new[key] = copied(section): the same for a section below
                if last not in names.SHOWS | {
                    "vars",
                    "setattr",
                    "getattr",
                    "items",
                    "keys",
                    "get",
                    "lower",
                    "upper",
                    "strip",
                    "ljust",
                    "rjust",
                    "get_default",
                    "isinstance",
                    "startswith",
                    "endswith",
                    "replace",
                    "center",
                    "add_row",
                    "update",
                    "split",
                    "float",
                    "int",
                    "eval",
                    "literal_eval",
                    "dict2namespace",
                    "callable",
                    "is_tensor",
                    "warn",
                    "sorted",
                    "add",
                }:
                    return False
    return True
