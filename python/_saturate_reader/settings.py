# SPDX-License-Identifier: Apache-2.0
"""Declared settings: command-line options, keys of configuration files, yacs defaults, dataclass fields, constants."""

import ast
import re

from . import names
from .declarations import Declaration, plain, type_name
from .literals import literal
from .scopes import FUNCTIONS, ancestors, dotted, function_of
from .settings_options import OptionSettings
from .settings_python import PythonSettings
from .tree import leaves, scalar

# Usual names of objects with settings, for objects about which nothing else is known.
LOOSE = {
    "args",
    "opt",
    "opts",
    "cfg",
    "config",
    "conf",
    "hparams",
    "params",
    "hp",
    "options",
    "self",
    "settings",
    "flags",
    "FLAGS",
    "hyp",
    "configs",
    "param",
    "kwargs",
    "hyper_parameters",
    "ckpt",
    "checkpoint",
    "state",
    "model_args",
    "train_args",
    "hyperparams",
    "arguments",
    "_C",
    "C",
    "h",
    "hps",
    "data_args",
    "training_args",
    "model_config",
    "train_config",
    "train_cfg",
    "model_cfg",
    "parser",
    "option",
    "cmd_args",
    "argv",
}
MERGES = (
    "setattr",
    "set_defaults",
    "update",
    "merge_with",
    "merge",
    "merge_from_dict",
    "update_config",
    "Namespace",
    "SimpleNamespace",
    "dict",
    "EasyDict",
    "parse_args",
)


class Settings(PythonSettings, OptionSettings):
    def __init__(self, project, values):
        self.project = project
        self.values = values
        values.settings = self
        self.all = []
        self.by_path = {}  # (root, last key) -> [Declaration]
        self.by_node = {}  # ast node of a binding or parameter -> Declaration
        self.written = {"args": set(), "file": set()}
        self._writers = {}  # key -> statements that set it; None: one that cannot be switched off
        self.formats = set()  # of the configuration files that were found
        self.complete = False  # whether every configuration file known to be used was read
        self.file_flags = set()  # flags that give a whole configuration: DEFINE_config_file("config")
        self.python_files = set()  # sources that are a configuration, and what they import
        self.named = set()  # configuration files in the command: they win over others that a module opens
        self.merged = False  # whether options and configuration keys end up in one object

    def add(self, declaration):
        declaration.id = len(self.all)
        self.all.append(declaration)
        if declaration.root:
            self.by_path.setdefault((declaration.root, declaration.key), []).append(declaration)
        return declaration

    # Options

    def drop_unreached(self, reach):
        """Drops options of functions that this command does not run: they belong to another
        program. Returns True if there were any."""
        dropped = False
        by_hydra = any(reach.runs(scope) for scope in self.values.hydra) and not any(
            reach.runs(function_of(call)) and not reach.off(call)
            for source in self.project.order
            if source.index is not None
            for call in source.index.calls_named(*names.PARSE_CALLS)
        )
        for declaration in self.all:
            if (
                declaration.kind == "option"
                and declaration.root
                and (by_hydra or declaration.node.scope.is_function and reach.runs(declaration.node.scope) is None)
            ):
                self.by_path[("args", declaration.key)].remove(declaration)
                declaration.root = None
                dropped = True
        return dropped

    def read_writes(self):
        """Finds keys that the program sets itself, and whether it merges options
        and configuration."""
        for source in self.project.order:
            if source.index is None:
                continue
            for target, expr, statement in source.index.stores:
                base = dotted(target.value) or ""
                if (
                    base == "self"
                    or base.rsplit(".", 1)[-1] not in LOOSE
                    or isinstance(expr, ast.Call)
                    and self._makes_node(expr)
                ):
                    continue  # _C.MODEL = CfgNode() makes room for keys
                if isinstance(target, ast.Attribute):
                    self._wrote(target.attr, statement)
                else:
                    known, key = literal(target.slice)
                    if known and isinstance(key, str):
                        self._wrote(key, statement)
            for call in source.index.calls_named(*MERGES):
                self._merges(call)

    def _wrote(self, key, statement=None):
        self.written["args"].add(key)
        self.written["file"].add(key)
        self._writers.setdefault(key, []).append(statement)

    def other_default(self, key):
        """Returns whether set_defaults() or a configuration may replace the default of an option."""
        return self.merged or None in self._writers.get(key, ())

    def drop_off_writes(self, reach):
        """Restores keys that are only set by code that the settings switch off. Returns True if
        there were any."""
        dropped = [
            key for key, statements in self._writers.items() if all(s is not None and reach.off(s) for s in statements)
        ]
        dropped += self._kept_by_own_test([key for key in self._writers if key not in dropped])
        for key in dropped:
            del self._writers[key]
            self.written["args"].discard(key)
            self.written["file"].discard(key)
        return bool(dropped)

    def _kept_by_own_test(self, keys):
        """`if config.get("use_mel", False): ... else: config["use_mel"] = False`: returns the keys of which the declared value,
        taken as it is, keeps the program from setting them."""
        guards = {
            key: [_own_test(key, s) for s in self._writers[key]] for key in keys if None not in self._writers[key]
        }
        guards = {key: tests for key, tests in guards.items() if None not in tests}
        for key in guards:
            self.written["args"].discard(key)
            self.written["file"].discard(key)
        if guards:
            self.values.forget()
        kept = [
            key
            for key, tests in guards.items()
            if all(self.values.truth(test) is (not inside) for test, inside in tests)
        ]
        for key in guards:
            self.written["args"].add(key)
            self.written["file"].add(key)
        return kept

    def _set_once(self, key):
        """Returns (True, value) for a key that no file declares and one statement sets to a constant."""
        statements = self._writers.get(key, ())
        return (
            literal(statements[0].value)
            if len(statements) == 1 and isinstance(statements[0], ast.Assign)
            else (False, None)
        )

    def _merges(self, call):
        name = dotted(call.func) or ""
        last = name.rsplit(".", 1)[-1] or getattr(call.func, "attr", "")
        if name == "setattr" and len(call.args) > 1:
            known, key = literal(call.args[1])
            if known:
                self._wrote(str(key))
            elif (dotted(call.args[0]) or "").rsplit(".", 1)[-1] in LOOSE:
                self.merged = True
        elif last == "set_defaults" and any(k.arg is None for k in call.keywords):
            self.merged = True
        elif last in ("update", "merge_with", "merge", "merge_from_dict", "update_config") and isinstance(
            call.func, ast.Attribute
        ):
            text = ast.dump(call)
            if re.search(r"id='vars'|attr='__dict__'|id='(args|opt|opts)'|cfg_options", text):
                self.merged = True
        elif (
            last in ("Namespace", "SimpleNamespace", "dict", "EasyDict")
            and len([k for k in call.keywords if k.arg is None]) > 1
        ):
            self.merged = True
        elif last == "parse_args" and any(k.arg == "namespace" for k in call.keywords):
            self.merged = True

    # Configuration files

    def add_tree(self, text, format, documents, prefix=()):
        anchors = {}
        for document in documents:
            for path, line, begin, node in leaves(document):
                where = prefix + path
                keys = [p for p in where if not p.startswith("[")]
                if where[-1].startswith("[") or where[0] == "defaults" and len(where) > 1:  # hydra's own list
                    continue
                span = [begin if begin is not None else node.begin, node.end if node.end is not None else begin]
                value = None
                if node.kind == "scalar" and node.begin is not None:
                    value = {
                        "bytes": [node.begin, node.end],
                        "line": text.line_of(node.begin),
                        "text": text.data[node.begin : node.end].decode("utf-8", "replace")[:400],
                        "type": type_name(node.value),
                    }
                    if plain(node.value):
                        value["literal"] = node.value
                elif node.kind in ("map", "list"):
                    value = {
                        "bytes": [node.begin, node.end] if node.end is not None else None,
                        "line": node.line,
                        "text": "",
                        "type": "dict" if node.kind == "map" else "list",
                    }
                declaration = Declaration(
                    format, ".".join(where), where[-1], "file", tuple(keys), text.file, line, span, value
                )
                declaration.leaf = node.kind != "map" or not node.members
                declaration.more["keys"] = list(path)
                if node.anchor:
                    anchors[node.anchor] = declaration
                    declaration.more["anchor"] = node.anchor
                if node.kind == "alias":
                    declaration.more["alias"] = node.value
                self.add(declaration)

    def read_overrides(self):
        """Reads keys that the command sets: hydra's `a.b=c`, yacs' pairs `A.B c`."""
        words = self.project.command.arguments
        for index, word in enumerate(words):
            match = re.match(r"^(?:--|\+\+|\+|~)?([A-Za-z_][\w./-]*)=(.*)$", word, re.S)
            if match:
                path, text = tuple(match.group(1).replace("/", ".").split(".")), match.group(2)
            elif "." in word and index + 1 < len(words) and not word.startswith("-"):
                path, text = tuple(word.split(".")), words[index + 1]
            else:
                continue
            for declaration in self.by_path.get(("file", path[-1]), ()):
                if declaration.path == path and (match and not word.startswith("--") or len(path) > 1):
                    declaration.more["given"] = {"index": index if match else index + 1, "text": text}

    # Answers

    def find(self, root, path):
        """Returns declarations that a read of this path may mean. Sections may be flattened, so a
        tail is enough."""
        if not path:
            return []
        out = []
        for declaration in self.by_path.get((root, path[-1]), ()):
            if matches(declaration.path, path):
                out.append(declaration)
        if self.merged:
            for declaration in self.by_path.get(("file" if root == "args" else "args", path[-1]), ()):
                if matches(declaration.path, path):
                    out.append(declaration)
        exact = [d for d in out if d.path == path]
        return exact or out

    def resolved(self, root, path):
        """Returns the path that a section refers to: `critic: ${double_q}`."""
        for _ in range(5):
            found = [d for d in self.by_path.get((root, path[-1]), ()) if d.path == path] if path else []
            text = (found[0].value or {}).get("literal") if len(found) == 1 else None
            if not (isinstance(text, str) and re.match(r"^\$\{[\w.]+\}$", text)):
                break
            path = tuple(text[2:-1].split("."))
        return path

    def given(self, root, path, name):
        """Returns the path of the key in a section that sets a parameter, or None."""
        section = self.resolved(root, path)
        for where in (section + (name,), section + ("params", name)):  # the latter: hydra before 1.0
            if self.find(root, where):
                return where
        return None

    def constant(self, root, path, depth=0):
        """Returns (True, value) if the effective value is known: given in the command or declared,
        and never written."""
        if not path or "?" in path:
            return False, None
        found = self.find(root, path)
        if path[-1] in self.written[root]:
            return (False, None) if found else self._set_once(path[-1])
        files = [d for d in found if d.kind in ("yaml", "json", "toml")]
        files = [d for d in files if d.file in self.named] or files
        found = files or found
        answers = []
        for declaration in found:
            known, value = self._value(declaration)
            if known and isinstance(value, str) and value.startswith("${") and value.endswith("}") and depth < 5:
                known, value = self.constant("file", tuple(value[2:-1].split(".")), depth + 1)
            if not known:
                return False, None
            answers.append(value)
        if not answers:
            return False, None
        first = answers[0]
        return (True, first) if all(type(a) is type(first) and a == first for a in answers) else (False, None)

    @staticmethod
    def _value(declaration):
        value = declaration.value
        if declaration.kind == "option":
            given = declaration.more.get("given")
            action = declaration.more.get("action")
            if given is not None:
                if action == "store_true":
                    return True, True
                if action == "store_false":
                    return True, False
                kind = declaration.more.get("option_type")
                try:
                    if kind == "int":
                        return True, int(given["text"])
                    if kind == "float":
                        return True, float(given["text"])
                except ValueError:
                    return False, None
                return (True, given["text"]) if kind in (None, "str") else (False, None)
            if value is None:
                if action == "store_true":
                    return True, False
                if action == "store_false":
                    return True, True
                return (False, None) if declaration.more.get("required") else (True, None)
        elif declaration.more.get("given") is not None:
            return True, scalar(declaration.more["given"]["text"])
        if value is None or "literal" not in value:
            return False, None
        text = value["literal"]
        if (
            isinstance(text, str)
            and "${" in text
            and not (text.startswith("${") and text.count("${") == 1 and ":" not in text and text.endswith("}"))
        ):
            return False, None
        return True, value["literal"]


def _own_test(key, statement):
    """Returns (condition, whether the statement is in its first branch) of the nearest `if` around a statement that asks for
    this key, or None."""
    child = statement
    for up in ancestors(statement):
        if (
            isinstance(up, ast.If)
            and child is not up.test
            and any(
                isinstance(n, ast.Constant) and n.value == key or isinstance(n, ast.Attribute) and n.attr == key
                for n in ast.walk(up.test)
            )
        ):
            return up.test, child.block is up.body
        if isinstance(up, FUNCTIONS):
            break
        child = up
    return None


def matches(declared, read):
    """Returns whether a read path can mean a declared one: the shorter is the tail of the longer;
    '?' is any key."""
    for one, other in zip(reversed(declared), reversed(read)):
        if one != other and other != "?":
            return False
    return True
