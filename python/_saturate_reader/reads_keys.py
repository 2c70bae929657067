# SPDX-License-Identifier: Apache-2.0
"""Reads of single keys: `cfg.lr`, `cfg["lr"]`, `cfg.get("lr")`, `getattr(args, "lr")`, a constant's
name (a part of Reads)."""

import ast

from . import names
from .literals import literal
from .scopes import dotted
from .settings import LOOSE

# Objects of these libraries never have the user's settings.
NOT_SETTINGS = (
    "torch",
    "numpy",
    "tqdm",
    "cv2",
    "PIL",
    "os",
    "sys",
    "logging",
    "time",
    "matplotlib",
    "builtins",
    "math",
    "random",
    "datetime",
    "re",
    "shutil",
    "collections",
    "itertools",
    "functools",
    "torchvision",
    "torchaudio",
    "sklearn",
    "scipy",
    "pandas",
    "pathlib",
    "glob",
    "pickle",
    "copy",
    "json",
    "string",
    "subprocess",
    "threading",
    "warnings",
    "wandb",
    "tensorboardX",
    "typing",
    "abc",
    "contextlib",
    "socket",
    "io",
    "argparse",
    "multiprocessing",
    "skimage",
    "imageio",
    "librosa",
    "soundfile",
    "nltk",
    "platform",
    "inspect",
    "traceback",
    "uuid",
    "hashlib",
    "csv",
    "h5py",
    "lmdb",
    "yaml",
    "albumentations",
)


TENSOR_ATTRIBUTES = {"device", "dtype", "shape", "ndim", "grad", "is_cuda", "requires_grad"}


class KeyReading:
    def _note(self, declaration, node, certainty="certain"):
        place = node.src.place(node)
        place["certainty"] = certainty
        if place not in declaration.reads:
            declaration.reads.append(place)
            self.nodes.setdefault(declaration, []).append(node)

    def _ask(self, root, path, node):
        """Notes a read key of the configuration. Options count if the program merges its
        configuration into them."""
        if root == "file" or self.settings.merged and len(path) == 1 and ("args", path[0]) in self.settings.by_path:
            self.asked.setdefault(path, []).append(node)

    def _access(self, node, base, key):
        values = tuple(v for v in self.values.of(base) if v[0] != "opaque")
        if not values:
            if key not in self.keys:
                return
            if isinstance(base, ast.Name) and base.id in ("self", "cls"):
                owner = node.scope
                while owner is not None and not owner.is_class:
                    owner = owner.parent
                if owner is not None:
                    return
            if (
                key in TENSOR_ATTRIBUTES
                and (dotted(base) or "").rsplit(".", 1)[-1] not in LOOSE
                or self.tensors.kind(base) in ("gpu", "cpu")
            ):
                return
            self.unknown.setdefault(key, []).append((_tail(base), node))
            return
        for value in values:
            self._access_of(value, key, node, base)
        if isinstance(node, ast.Attribute) and any(v[0] == "cfg" for v in values):
            self._whole(node)
        elif any(v[0] == "cfg" for v in values):
            self._whole(node)

    def _access_of(self, value, key, node, base):
        kind = value[0]
        if kind == "cfg":
            self.loads[value[1]] = True
            if key in names.DICT_METHODS:
                return
            self._ask(value[1], value[2] + (key,), node)
            for declaration in self.settings.find(value[1], value[2] + (key,)):
                self._note(declaration, node)
        elif kind in ("inst", "cls"):
            for scope in self.values.lineage(value[1])[0]:
                for declaration in self.fields_of(scope):
                    if declaration.key == key:
                        self._note(declaration, node)
                        # The field may have a key of a configuration in a way
                        # that was not followed.
                        if scope not in self.values.holders:
                            self.unknown.setdefault(key, []).append((None, node))
                held = self.values.held(scope, key)
                if scope in self.values.holders and key in self.holders.fields(scope):
                    self._ask("file", self.values.holders[scope][0] + (key,), node)
                if held is not None:
                    for declaration in self.settings.find("file", held):
                        self._note(declaration, node)
                elif scope in self.values.holders:
                    self.missing.setdefault((scope, key), node)
            if kind == "inst" and self.values.dynamic(value[1]):
                self.loads["file"] = True
                for declaration in self.settings.find("file", (key,)):
                    self._note(declaration, node, "likely")
                self.unknown.setdefault(key, []).append((None, node))
        elif kind == "params":
            for given in self.values.attribute_of(value, key):
                for declaration in self.settings.find(given[1], given[2]) if given[0] == "cfg" else ():
                    self._note(declaration, node)
        elif kind == "mod" and value[1].index is not None:
            for binding in value[1].index.top.names.get(key, ()):
                declaration = self.settings.by_node.get(binding.node)
                if declaration is not None:
                    self._note(declaration, node)
        elif kind == "made" and value[1].split(".")[0].split("(")[0] not in NOT_SETTINGS:
            self.unknown.setdefault(key, []).append((_tail(base), node))
        elif kind == "box" and self._open_box(value[1], base):
            self.unknown.setdefault(key, []).append((_tail(base), node))
        elif kind == "lit" or kind == "batch":
            if kind == "lit" and literal(value[1]) == (True, None):
                self.unknown.setdefault(key, []).append((_tail(base), node))

    def _open_box(self, box, base):
        """Returns whether a dict may get more keys: `**`, update(), a computed key."""
        if not isinstance(box, ast.Dict) or any(k is None for k in box.keys):
            return True
        name = dotted(base)
        source = box.src
        for call in source.index.calls_named("update", "setdefault"):
            if isinstance(call.func, ast.Attribute) and name and dotted(call.func.value) == name:
                return True
        up = box.up
        target = dotted(up.targets[0]) if isinstance(up, ast.Assign) else None
        if target:
            for call in source.index.calls_named("update"):
                if isinstance(call.func, ast.Attribute) and dotted(call.func.value) == target:
                    return True
            return any(
                isinstance(t, ast.Subscript)
                and dotted(t.value) == target
                and not isinstance(t.slice, ast.Constant)
                and not self._foreign(expr)
                for t, expr, _ in source.index.stores
            )
        return False

    def _foreign(self, expr):
        """Returns whether a value is certainly a library's object and not a setting."""
        values = self.values.of(expr) if expr is not None else ()
        return bool(values) and all(v[0] == "made" and v[1].split(".")[0] in NOT_SETTINGS for v in values)

    def fields_of(self, scope):
        if not hasattr(self, "_by_scope"):
            self._by_scope = {}
            for declaration in self.settings.all:
                if declaration.kind in ("dataclass", "attribute") and declaration.scope is not None:
                    self._by_scope.setdefault(declaration.scope, []).append(declaration)
        return self._by_scope.get(scope, ())

    def _constant(self, node):
        """Notes a name that is read: the constants that it may be, or the option that click fills
        it with."""
        for value in self.values.of(node) if ("args", node.id) in self.settings.by_path else ():
            if value[0] == "cfg" and value[1] == "args" and value[2] == (node.id,):
                for declaration in self.settings.find("args", value[2]):
                    self._note(declaration, node)
        for binding in self.values.lookup(node) or ():
            for _ in range(4):
                if binding.kind != "import" or binding.attr is None:
                    break
                module, level = binding.module
                other = self.project.find(binding.scope.source, module, level)
                inside = (
                    other.index.top.names.get(binding.attr) if other is not None and other.index is not None else None
                )
                if not inside:
                    break
                binding = inside[0]
            declaration = self.settings.by_node.get(binding.node)
            if declaration is not None and declaration.kind in ("constant", "variable"):
                self._note(declaration, node)

    def _call(self, call):
        name = dotted(call.func) or ""
        last = name.rsplit(".", 1)[-1] or getattr(call.func, "attr", "")
        if (
            isinstance(call.func, ast.Attribute)
            and last in ("get", "pop", "setdefault", "getattr", "has_key", "select", "get_value")
            and call.args
        ):
            known, key = literal(call.args[0])
            if known and isinstance(key, str):
                self._access(call, call.func.value, key)
            elif not known:
                self._computed(call, call.func.value, call.args[0])
        elif name in ("getattr", "hasattr") and len(call.args) > 1:
            known, key = literal(call.args[1])
            if known and isinstance(key, str):
                self._access(call, call.args[0], key)
            else:
                self._computed(call, call.args[0], call.args[1])
        for keyword in call.keywords:
            if keyword.arg is None:
                self._spread(call, keyword.value)
        if last == "from_argparse_args":
            self._escape("args", (), "Lightning takes every option it knows", call)

    def _compare(self, node):
        if (
            len(node.ops) == 1
            and isinstance(node.ops[0], (ast.In, ast.NotIn))
            and isinstance(node.left, ast.Constant)
            and isinstance(node.left.value, str)
        ):
            right = node.comparators[0]
            base = (
                right.func.value
                if isinstance(right, ast.Call) and isinstance(right.func, ast.Attribute) and right.func.attr == "keys"
                else right
            )
            if any(v[0] == "cfg" for v in self.values.of(base)):
                self._access(node, base, node.left.value)


def _tail(base):
    """Returns the key by which an unknown object was itself read: `train` in `x.train.lr`, also if the object is kept:
    `self.part = x["train"]`."""
    if isinstance(base, ast.Attribute):
        owner = base.scope.owner if isinstance(base.value, ast.Name) and base.value.id == "self" else None
        for binding in owner.attributes.get(base.attr, ()) if owner is not None else ():
            if binding.kind == "value" and isinstance(binding.expr, ast.Subscript):
                return _tail(binding.expr)
        return base.attr
    if isinstance(base, ast.Subscript):
        known, key = literal(base.slice)
        return key if known and isinstance(key, str) else None
    return None
