# SPDX-License-Identifier: Apache-2.0
"""Who reads each declared setting: accesses by key, whole configurations that go somewhere, and what cannot be followed."""
import ast
import re

from . import names
from .scopes import COMPREHENSIONS, ancestors, dotted
from .settings import LOOSE
from .literals import literal

# Objects of these libraries never hold the user's settings.
NOT_SETTINGS = ("torch", "numpy", "tqdm", "cv2", "PIL", "os", "sys", "logging", "time", "matplotlib", "builtins", "math", "random", "datetime", "re", "shutil",
                "collections", "itertools", "functools", "torchvision", "torchaudio", "sklearn", "scipy", "pandas", "pathlib", "glob", "pickle", "copy", "json",
                "string", "subprocess", "threading", "warnings", "wandb", "tensorboardX", "typing", "abc", "contextlib", "socket", "io", "argparse", "multiprocessing",
                "skimage", "imageio", "librosa", "soundfile", "nltk", "platform", "inspect", "traceback", "uuid", "hashlib", "csv", "h5py", "lmdb", "yaml", "albumentations")


TENSOR_ATTRIBUTES = {"device", "dtype", "shape", "ndim", "grad", "is_cuda", "requires_grad"}


class Reads:
    def __init__(self, project, values, settings, reach, tensors, holders):
        self.holders = holders
        self.tensors = tensors
        self.project = project
        self.values = values
        self.settings = settings
        self.reach = reach
        self.unknown = {}   # key -> [(parent key or None, node)]: read from an object that nothing is known of
        self.mentions = {}  # key -> node: a word in a list, or asked for by a computed name
        self.escaped = {}   # (root, path) -> (why, node)
        self.fields = {}    # class Scope -> why its fields may be read unseen
        self.loads = {"args": False, "file": False}
        self.missing = {}   # (class Scope, key) -> node: asked of a class that has no such field
        self.nodes = {}     # declaration -> [node that reads it]
        self._holds = {}    # (Scope, name) -> whether it may be a configuration
        self.asked = {}     # path -> [node]: read from the configuration, whether it is there or not

    def collect(self):
        constants = {d.key for d in self.settings.all if d.kind in ("constant", "variable") or d.root == "args"}
        for source in self.project.order:
            if source.index is None:
                continue
            for node in source.index.attributes:
                if node.value not in self.values.library:
                    self._access(node, node.value, node.attr)
            for node in source.index.subscripts:
                known, key = literal(node.slice)
                if known and isinstance(key, str):
                    self._access(node, node.value, key)
                elif not known:
                    self._computed(node, node.value, node.slice)
            for call in source.index.calls:
                self._call(call)
                if not self._plain(call):
                    self._whole(call)
            for node in source.index.loads:
                if node in self.values.library:
                    continue
                if self._may_be_whole(node):
                    self._whole(node)
                if node.id in constants or node.id in source.index.renamed:
                    self._constant(node)
            for node in source.index.compares:
                self._compare(node)
            for element in source.index.listed:
                self.mentions.setdefault(element.value, element)
            for target, expr, statement in source.index.stores:
                self._store(target, expr, statement)
        self._interpolations()

    def _may_be_whole(self, node):
        """Whether any of a name's bindings, wherever it is read, gives a configuration."""
        scope = node.scope
        first = True
        while scope is not None:
            bindings = scope.names.get(node.id)
            if bindings and (first or not scope.is_class):
                found = self._holds.get((scope, node.id))
                if found is None:
                    found = self._holds[(scope, node.id)] = len(bindings) > 8 or any(
                        v[0] == "cfg" for b in bindings for v in self.values.binding(b))
                return found
            scope = scope.parent
            first = False
        return bool(node.src.index.stars)

    def _plain(self, call):
        """A library's function that never gives a configuration."""
        values = self.values.of(call.func)
        return bool(values) and all(v[0] == "ext" and v[1] not in names.SAME and v[1] not in names.READS_CONFIG and not v[1].endswith(".merge")
                                    for v in values) and getattr(call.func, "attr", "") not in ("get", "pop", "copy", "merge")

    # Reads of one key

    def _note(self, declaration, node, certainty="certain"):
        place = node.src.place(node)
        place["certainty"] = certainty
        if place not in declaration.reads:
            declaration.reads.append(place)
            self.nodes.setdefault(declaration, []).append(node)

    def _ask(self, root, path, node):
        """Options count where the program puts its configuration over them."""
        if root == "file" or self.settings.merged and len(path) == 1 and ("args", path[0]) in self.settings.by_path:
            self.asked.setdefault(path, []).append(node)

    def _access(self, node, base, key):
        values = tuple(v for v in self.values.of(base) if v[0] != "opaque")
        if not values:
            if isinstance(base, ast.Name) and base.id in ("self", "cls"):
                owner = node.scope
                while owner is not None and not owner.is_class:
                    owner = owner.parent
                if owner is not None:
                    return
            if key in TENSOR_ATTRIBUTES and (dotted(base) or "").rsplit(".", 1)[-1] not in LOOSE or self.tensors.kind(base) in ("gpu", "cpu"):
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
                for declaration in self._fields(scope):
                    if declaration.key == key:
                        self._note(declaration, node)
                        # The field may hold a key of a configuration, in a way that was not followed.
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
        """A dict that more keys may come into: `**`, update(), a key that is computed."""
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
            return any(isinstance(t, ast.Subscript) and dotted(t.value) == target and not isinstance(t.slice, ast.Constant) for t, _, _ in source.index.stores)
        return False

    def _fields(self, scope):
        if not hasattr(self, "_by_scope"):
            self._by_scope = {}
            for declaration in self.settings.all:
                if declaration.kind in ("dataclass", "attribute") and declaration.scope is not None:
                    self._by_scope.setdefault(declaration.scope, []).append(declaration)
        return self._by_scope.get(scope, ())

    def _constant(self, node):
        """A name that is read: the constants that it may be, or the option that click fills it with."""
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
                inside = other.index.top.names.get(binding.attr) if other is not None and other.index is not None else None
                if not inside:
                    break
                binding = inside[0]
            declaration = self.settings.by_node.get(binding.node)
            if declaration is not None and declaration.kind in ("constant", "variable"):
                self._note(declaration, node)

    def _call(self, call):
        name = dotted(call.func) or ""
        last = name.rsplit(".", 1)[-1] or getattr(call.func, "attr", "")
        if isinstance(call.func, ast.Attribute) and last in ("get", "pop", "setdefault", "getattr", "has_key", "select", "get_value") and call.args:
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
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            right = node.comparators[0]
            base = right.func.value if isinstance(right, ast.Call) and isinstance(right.func, ast.Attribute) and right.func.attr == "keys" else right
            if any(v[0] == "cfg" for v in self.values.of(base)):
                self._access(node, base, node.left.value)

    # Whole configurations

    def _escape(self, root, path, why, node):
        self.escaped.setdefault((root, path), (why, node))

    def _whole(self, node):
        """A configuration, or a part with keys below it, as a value: where does it go?"""
        values = [v for v in self.values.of(node) if v[0] == "cfg"]
        if not values:
            return
        for value in values:
            self.loads[value[1]] = True
        why = self._goes(node)
        if why:
            for value in values:
                self._escape(value[1], value[2], why, node)

    def _goes(self, node):
        """Why other code may read its keys unseen; None where it is followed, shown or kept only."""
        up = node.up
        if isinstance(up, ast.Attribute):
            if up.attr in ("items", "values", "keys") and isinstance(up.up, ast.Call) and up.up.func is up:
                return self._looped(up.up)
            return None
        if isinstance(up, (ast.For, ast.AsyncFor)) and up.iter is node and not self._is_leaf(node):
            return None if _shows_only(up) else "a loop goes over all of it"
        if isinstance(up, ast.Subscript) and up.value is node:
            return None
        if isinstance(up, ast.keyword) or isinstance(up, ast.Call) or isinstance(up, ast.Starred):
            call = up if isinstance(up, ast.Call) else up.up
            if not isinstance(call, ast.Call):
                return None
            if isinstance(up, ast.Call) and up.func is node:
                return None
            if isinstance(up, ast.keyword) and up.arg is None:
                return None  # a spread, looked at with its call
            return self._given(call, node)
        return None

    def _given(self, call, node):
        name = dotted(call.func) or ""
        last = name.rsplit(".", 1)[-1] or getattr(call.func, "attr", "")
        if call in self.values.callees:
            return None
        if name in ("vars", "dict", "list", "sorted", "iter", "enumerate", "zip", "deepcopy", "copy.deepcopy", "copy.copy", "set", "tuple", "asdict"):
            return self._looped(call)
        if last in names.SHOWS or last in ("getattr", "setattr", "hasattr", "delattr", "is_config", "update", "append", "extend", "merge_from_file"):
            return None
        values = self.values.of(call.func)
        if any(v[0] in ("cls", "fn", "bound", "mods") for v in values):
            return None  # a class without __init__ of its own; a module of the project that a computed name picks
        for value in values:
            if value[0] == "ext":
                if value[1] in names.SAME or value[1] in names.READS_CONFIG or value[1].endswith(("OmegaConf.merge", ".instantiate")):
                    if value[1].endswith("instantiate"):
                        return "hydra makes an object from it"
                    return None
                if value[1].split(".")[0] in ("os", "sys", "logging", "wandb", "json", "yaml", "pickle", "builtins", "pprint", "random", "time", "math", "numpy"):
                    return None
                if any(v[0] == "cfg" and len(v[2]) > 0 for v in self.values.of(node)) and self._is_leaf(node):
                    return None
                return "%s is given it" % value[1]
        if self._is_leaf(node):
            return None
        return "%s is given it" % (name or last or "a function")

    def _is_leaf(self, node):
        for value in self.values.of(node):
            if value[0] == "cfg":
                found = self.settings.find(value[1], value[2]) if value[2] else []
                if not found or any(not d.leaf for d in found):
                    return False
        return True

    def _looped(self, call):
        """vars(args), cfg.items(): fine where a loop only shows, compares or copies what it finds."""
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
                if last in ("sorted", "list", "enumerate", "dict", "set", "tuple", "OrderedDict", "deepcopy", "iter", "zip", "vars", "copy"):
                    node = up
                    continue
                return None if up in self.values.callees else "%s is given all of it" % (last or "a function")
            if isinstance(up, (ast.For, ast.AsyncFor)) and node is up.iter:
                return None if _shows_only(up) or self._copies(up) else "a loop goes over all of it"
            if isinstance(up, ast.comprehension):
                holder = up.up
                return None if self._shown(holder) or self._held(holder) else "a comprehension goes over all of it"
            return None
        return None

    def _copies(self, loop):
        """A loop that copies keys into fields of a class that is known."""
        return any(isinstance(n, ast.Call) and dotted(n.func) == "setattr" and any(v[0] == "inst" and v[1] in self.values.holders for v in self.values.of(n.args[0]))
                   for s in loop.body for n in ast.walk(s))

    def _held(self, node):
        up = node.up
        if isinstance(up, ast.keyword) and up.arg is None and isinstance(up.up, ast.Call):
            return any(v[0] == "cls" and v[1] in self.values.holders for v in self.values.of(up.up.func))
        if isinstance(up, ast.Assign):  # a name for it: the spread that takes it was looked at
            return any(v[0] == "cls" and v[1] in self.values.holders for c in node.scope.calls for k in c.keywords if k.arg is None and isinstance(
                k.value, ast.Name) and k.value.id == dotted(up.targets[0]) for v in self.values.of(c.func))
        return False

    def _shown(self, node):
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
        if isinstance(key, ast.Slice) or isinstance(key, ast.Constant):
            return
        for up in ancestors(node):
            if isinstance(up, (ast.For, ast.AsyncFor)) and _names_target(up.target, key):
                if _shows_only(up):
                    return
                break
            if isinstance(up, COMPREHENSIONS) and any(_names_target(g.target, key) for g in up.generators):
                if self._shown(up):
                    return
                break
        for value in values:
            if value[2] and self._is_leaf(base):
                continue
            self._escape(value[1], value[2], "keys are read by computed names", node)

    def _spread(self, call, node):
        """f(**cfg): parameters of that name read it; a library may read all of it."""
        values = [v for v in self.values.of(node) if v[0] == "cfg"]
        if not values:
            return
        targets = self.values.callees.get(call, ())
        for value in values:
            self.loads[value[1]] = True
            if not targets:
                known = [v for v in self.values.of(call.func) if v[0] == "cls"]
                fields = [s for v in known for s in self.values.lineage(v[1])[0] if list(self._fields(s))]
                if fields:
                    for scope in fields:
                        for declaration in self._fields(scope):
                            for other in self.settings.find(value[1], value[2] + (declaration.key,)):
                                self._note(other, call)
                    continue
                if any(v[0] == "ext" and v[1] in ("argparse.Namespace", "types.SimpleNamespace", "builtins.dict", "easydict.EasyDict", "collections.OrderedDict")
                       for v in self.values.of(call.func)):
                    continue
                name = dotted(call.func) or "a function"
                if name.rsplit(".", 1)[-1] in names.SHOWS:
                    continue
                self._escape(value[1], value[2], "%s is given its keys with **" % name, node)
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
                    elif how == "**" and any(load.id == name for load in scope.source.index.loads if load.scope is scope):
                        self._escape(value[1], value[2], "%s takes its keys with ** and uses them" % scope.qualified(), node)

    # Writes

    def _store(self, target, expr, statement):
        if isinstance(target, ast.Attribute):
            base, key = target.value, target.attr
        else:
            known, key = literal(target.slice)
            base = target.value
            if not known or not isinstance(key, str):
                return
        if isinstance(base, ast.Name) and base.id == "self":
            return
        for value in self.values.of(base):
            if value[0] != "cfg":
                continue
            for declaration in self.settings.find(value[1], value[2] + (key,)):
                if statement in self.settings.by_node:
                    continue  # a default of yacs
                place = target.src.place(statement)
                if place not in declaration.writes:
                    declaration.writes.append(place)
                    self.nodes.setdefault((declaration, "writes"), []).append((target, expr, statement))

    def _interpolations(self):
        """${a.b} in a value reads a.b; a YAML alias reads its anchor."""
        anchors = {d.more["anchor"]: d for d in self.settings.all if "anchor" in d.more}
        for declaration in self.settings.all:
            text = (declaration.value or {}).get("text") or ""
            for reference in re.findall(r"\$\{([^}:$]+)\}", text):
                for other in self.settings.find("file", tuple(reference.strip().split("."))):
                    if not other.leaf:
                        self.escaped.setdefault(("file", other.path), ("%s stands for all of it" % declaration.setting, None))
                    other.reads.append({"file": declaration.file, "line": declaration.line, "bytes": declaration.span, "certainty": "certain"})
            alias = declaration.more.get("alias")
            if alias in anchors:
                anchors[alias].reads.append({"file": declaration.file, "line": declaration.line, "bytes": declaration.span, "certainty": "certain"})

    # Answers

    def escape_of(self, declaration):
        """Why this setting may be read where we do not see it; None when there is no way."""
        for length in range(len(declaration.path) + 1):
            prefix = declaration.path[:length]
            found = self.escaped.get((declaration.root, prefix))
            if found is not None and length < len(declaration.path):
                return found[0]
        for (root, path), (why, _) in self.escaped.items():
            if root == declaration.root and path and ("?" in path or path != declaration.path[:len(path)]):
                # Flattened sections and unknown roots: the escaped part may hold this key.
                if _may_hold(path, declaration.path):
                    return why
        return None

    def unknown_reads(self, declaration):
        out = []
        for parent, node in self.unknown.get(declaration.key, ()):
            if parent is not None and len(declaration.path) > 1 and parent != declaration.path[-2] and parent not in LOOSE:
                continue
            if parent is not None and declaration.root == "args" and parent not in LOOSE:
                continue
            out.append(node)
        return out


def _may_hold(path, declared):
    """Whether a part at `path` (a tail of the real one) may hold the declared key."""
    for start in range(1, len(declared)):
        tail = declared[:start]
        if len(path) <= len(tail) and all(a == b or a == "?" for a, b in zip(reversed(path), reversed(tail))):
            return True
    return False


def _tail(base):
    """The key that an unknown object was itself read by: `x.train.lr` has the tail `train`."""
    if isinstance(base, ast.Attribute):
        return base.attr
    if isinstance(base, ast.Subscript):
        known, key = literal(base.slice)
        return key if known and isinstance(key, str) else None
    return None


def _names_target(target, key):
    named = {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
    return any(isinstance(n, ast.Name) and n.id in named for n in ast.walk(key))


def _shows_only(loop):
    """A loop that prints, compares, writes back or copies, and hands nothing to code that may act on it."""
    for statement in loop.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                last = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if last not in names.SHOWS | {"vars", "setattr", "getattr", "items", "keys", "get", "lower", "upper", "strip", "ljust", "rjust", "get_default",
                                              "isinstance", "startswith", "endswith", "replace", "center", "add_row", "update", "split", "float", "int", "eval",
                                              "literal_eval", "dict2namespace", "callable", "is_tensor", "warn", "sorted", "add"}:
                    return False
    return True
