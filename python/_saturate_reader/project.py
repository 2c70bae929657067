# SPDX-License-Identifier: Apache-2.0
"""The sources of a project: the program and its imports in the project's folder. Never
reads site-packages."""

import ast
import os
import re

from .scopes import Index, dotted
from .source import Problem, Source, Text

SKIPPED = {
    "site-packages",
    "dist-packages",
    "node_modules",
    "__pycache__",
    ".git",
    ".hg",
    ".svn",
    "venv",
    ".venv",
    ".tox",
    ".eggs",
    ".mypy_cache",
    ".ipynb_checkpoints",
    "wandb",
    "mlruns",
}
PARSED_MOST = 3 << 20  # bytes of Python to parse at most; `limits` names the rest
LISTED_MOST = 20000  # files of a project to list at most
SCANNED_MOST = 64 << 20  # bytes to search for words at most


class Project:
    def __init__(self, folder, command, kept=None):
        self.folder = os.path.realpath(folder)
        self.command = command
        self.kept = {} if kept is None else kept  # real path -> Source from an earlier reading
        self.sources = {}  # real path -> Source
        self.order = []
        self._followed = 0
        self.limits = []
        self.where = self.folder  # the folder that the program runs in
        self.is_partly_read = False  # modules are imported whose names only the run knows
        self.roots = []
        self.entry = None
        self.parsed = 0
        self.modules = {}  # (directory of the importer, level, name) -> Source or None
        self._dirs = {}
        self._reals = {}
        self._insides = {}
        self._others = None
        self.computed = {}  # import of a computed name -> the Sources it may mean

    # Paths

    def relative(self, path):
        path = os.path.abspath(path)
        if path.startswith(self.folder + os.sep):
            return path[len(self.folder) + 1 :].replace(os.sep, "/")
        real = self._real(path)
        return real[len(self.folder) + 1 :].replace(os.sep, "/") if real.startswith(self.folder + os.sep) else path

    def _real(self, path):
        """Like realpath, but caches the path of the folder, which is the slow part."""
        folder, name = os.path.split(os.path.abspath(path))
        real = self._reals.get(folder)
        if real is None:
            real = self._reals[folder] = os.path.realpath(folder)
        whole = os.path.join(real, name)
        return os.path.realpath(whole) if os.path.islink(whole) else whole

    def _inside(self, path):
        found = self._insides.get(path)
        if found is None:
            found = self._insides[path] = self._is_inside(path)
        return found

    def _is_inside(self, path):
        real = self._real(path)
        if any(part in SKIPPED for part in real.split(os.sep)):
            return False
        return any(real == top or real.startswith(top + os.sep) for top in self.tops)

    def _listing(self, folder):
        names = self._dirs.get(folder)
        if names is None:
            try:
                names = set(os.listdir(folder))
            except OSError:
                names = set()
            self._dirs[folder] = names
        return names

    # Loading

    def load_program(self):
        command = self.command
        self.tops = [self.folder]
        self.where = os.path.normpath(os.path.join(self.folder, command.where))
        if not (self.where + os.sep).startswith(self.folder + os.sep):
            command.problem = "%s changes to %s: start saturate there" % (
                command.shell or "the command",
                os.path.relpath(self.where, self.folder),
            )
            command.kind = "unknown"
            return
        if command.script:
            path = os.path.join(self.where, command.script)
            is_folder = os.path.isdir(path)
            if is_folder:
                path = os.path.join(path, "__main__.py")
            if not os.path.isfile(path):
                command.problem = (
                    "%s: a folder without __main__.py; name the script in it" if is_folder else "%s: no such file"
                ) % command.script
                return
            here = os.path.dirname(os.path.realpath(path))
            self.roots = [here]
            if not (here + os.sep).startswith(self.folder + os.sep):
                self.tops.append(here)
        elif command.module:
            tried = (
                [self.where]
                + [os.path.normpath(os.path.join(self.where, path)) for path in command.paths]
                + [os.path.join(self.where, "src")]
            )
            path = next(
                (found for found in (self._find_module(root, command.module.split(".")) for root in tried) if found),
                None,
            )
            self.roots = [root for root in tried if self._inside(root)] or [self.where]
            if path and os.path.isdir(path):
                path = os.path.join(path, "__main__.py")
            elif path and path.endswith("__init__.py"):
                path = os.path.join(os.path.dirname(path), "__main__.py")
            if not path or not os.path.isfile(path):
                command.problem = "%s: no such module below this folder" % command.module
                return
            command.script = self.relative(path)
        else:
            return
        # Programs in subfolders are also started with PYTHONPATH=. or from an installed package.
        parent = self.roots[0]
        while parent.startswith(self.folder + os.sep):
            parent = os.path.dirname(parent)
            self.roots.append(parent)
        for name in ("src", "lib", "code"):
            path_of = os.path.join(self.folder, name)
            if os.path.isdir(path_of) and path_of not in self.roots:
                self.roots.append(path_of)
        for added in command.paths:
            root = os.path.normpath(os.path.join(self.where, added))
            if root not in self.roots and self._inside(root):
                self.roots.append(root)
        command.script = self.relative(path if command.module else os.path.join(self.where, command.script))
        self.entry = self.load(path, "script")
        if self.entry.problem:
            line = self.entry.problem.line
            command.problem = "%s: %s" % (
                self.entry.file if line is None else "%s:%d" % (self.entry.file, line),
                self.entry.problem.text,
            )
        self.follow()

    def load(self, path, role="imported", parse=True):
        real = self._real(path)
        source = self.sources.get(real)
        if source is not None:
            return source
        if self.parsed > PARSED_MOST and role != "script":
            source = Text(path, self.relative(path), Problem("not read: the project is larger than what is parsed"))
            source.tree, source.index, source.role = None, None, role
            if not any("larger" in text for text in self.limits):
                self.limits.append(
                    "the project is larger than the %d MiB of Python that are parsed" % (PARSED_MOST >> 20)
                )
        else:
            source = self.kept.get(real)
            is_new = source is None
            if is_new:
                source = self.kept[real] = Source(path, self.relative(path))
            source.role, source.places = role, {}
            self.parsed += len(source.data)
            if is_new and source.tree is not None:
                try:
                    source.index = Index(source)
                except (RecursionError, MemoryError):
                    source.tree = None
                    source.problem = Problem("cannot be read: nested too deeply")
        source.folder = os.path.dirname(os.path.abspath(path))
        self.sources[real] = source
        self.order.append(source)
        return source

    def follow(self):
        """Loads the imports of all sources not looked at yet."""
        while self._followed < len(self.order):
            source = self.order[self._followed]
            self._followed += 1
            if source.index is None:
                continue
            self._paths(source)
            for module, attr, level, _ in source.index.imports:
                found = self.find(source, module, level)
                if attr and attr != "*" and (found is None or os.path.basename(found.path) == "__init__.py"):
                    self.find(source, (module + "." if module else "") + attr, level)
            for call in source.index.calls_named("import_module", "__import__"):
                if dotted(call.func) and call.args:
                    self._by_name(source, call)

    def _paths(self, source):
        """Adds folders of the project from sys.path.append('lib') and sys.path.insert(0, ...)."""
        for call in source.index.calls_named("append", "insert"):
            if dotted(call.func) not in ("sys.path.append", "sys.path.insert") or not call.args:
                continue
            argument = call.args[-1]
            here = os.path.dirname(source.path)
            candidates = []
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                candidates = [os.path.join(self.folder, argument.value), os.path.join(here, argument.value)]
            elif isinstance(argument, ast.Name):  # `def add_path(path)`, with folders joined elsewhere in the file
                for join in source.index.calls_named("join"):
                    if (
                        dotted(join.func)
                        and len(join.args) > 1
                        and isinstance(join.func, ast.Attribute)
                        and all(isinstance(a, ast.Constant) and isinstance(a.value, str) for a in join.args[1:])
                    ):
                        candidates.append(os.path.join(here, *[a.value for a in join.args[1:]]))
            else:
                words = [
                    n.value for n in ast.walk(argument) if isinstance(n, ast.Constant) and isinstance(n.value, str)
                ]
                ups = sum(
                    1 for n in ast.walk(argument) if (isinstance(n, ast.Attribute) and n.attr in ("dirname", "parent"))
                )
                base = here if ups <= 1 else os.path.normpath(os.path.join(here, *[".."] * (ups - 1)))
                if not ups and any(isinstance(n, ast.Name) and n.id == "__file__" for n in ast.walk(argument)):
                    base = source.path  # join(__file__, "..", "..")
                candidates = [os.path.normpath(os.path.join(base, *words))]
            for path in candidates:
                path = os.path.realpath(path)
                if self.folder.startswith(path + os.sep) and self._in_repository(path):
                    self.tops.append(path)  # the source says that the command runs in a folder of a larger project
                    self._insides.clear()
                if os.path.isdir(path) and self._inside(path) and path not in self.roots:
                    self.roots.append(path)
                    self.modules.clear()
                    self._followed = 0  # earlier imports may be found now

    def _in_repository(self, path):
        """Returns whether a folder is in the same git repository as the command's folder, at or
        above it."""
        folder = self.folder
        while not os.path.exists(os.path.join(folder, ".git")):
            folder, last = os.path.dirname(folder), folder
            if folder == last:
                return False
        return path == folder or path.startswith(folder + os.sep)

    def _by_name(self, source, call):
        argument = call.args[0]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            level = len(argument.value) - len(argument.value.lstrip("."))
            self.find(source, argument.value.lstrip("."), level)
            return
        text = self._named(argument)
        found = self.find(source, text, 0) if text else None
        if found is not None:
            self.computed[call] = [found]
            return
        prefix = _prefix(argument)
        if _names_own_package(argument, call):  # '.'.join([__name__, name]) in the package's __init__.py
            self._whole_folder(call, source.folder)
            return
        package = self.find(source, prefix.rstrip("."), 0) if prefix.endswith(".") else None
        folder = None
        if package is not None:
            folder = os.path.dirname(package.path)
        elif prefix.endswith("."):
            for root in self.roots:
                path = os.path.join(root, *prefix.rstrip(".").split("."))
                if os.path.isdir(path):
                    folder = path
                    break
        if folder is None:
            self.is_partly_read = True
            limit = "%s:%d: imports a module by a computed name" % (source.file, call.lineno)
            if limit not in self.limits:
                self.limits.append(limit)
            return
        self._whole_folder(call, folder)

    def _named(self, node):
        """The text of "models." + args.model, with what the command gives for the option, or its default; None: not known."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Attribute):
            return self._option(node.attr)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            parts = [self._named(node.left), self._named(node.right)]
        elif isinstance(node, ast.JoinedStr):
            parts = [self._named(part.value if isinstance(part, ast.FormattedValue) else part) for part in node.values]
        else:
            return None
        return "".join(parts) if all(part is not None for part in parts) else None

    def _option(self, key):
        """What the command gives for an option, or its default."""
        for source in self.order:
            for call in source.index.calls_named("add_argument") if source.index is not None else ():
                flags = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
                if not any(flag.lstrip("-").replace("-", "_") == key for flag in flags):
                    continue
                words = self.command.arguments
                given = [words[n + 1] for n, word in enumerate(words[:-1]) if word in flags] + [
                    w.split("=", 1)[1] for w in words if w.split("=", 1)[0] in flags and "=" in w
                ]
                default = [
                    k.value.value
                    for k in call.keywords
                    if k.arg == "default" and isinstance(k.value, ast.Constant) and isinstance(k.value.value, str)
                ]
                return (given or default or [None])[-1 if given else 0]
        return None

    def _whole_folder(self, call, folder):
        names = sorted(n for n in self._listing(folder) if n.endswith(".py") and n != "__init__.py")
        self.computed[call] = [self.load(os.path.join(folder, name)) for name in names[:80]]

    # Modules

    def _find_module(self, root, parts):
        """Returns the file of a module, its package's __init__.py, or the folder of a package
        without one."""
        folder = root
        for number, part in enumerate(parts):
            names = self._listing(folder)
            last = number == len(parts) - 1
            inside = os.path.join(folder, part)
            is_folder = part in names and os.path.isdir(inside)
            if is_folder and last and "__init__.py" in self._listing(inside):
                return os.path.join(inside, "__init__.py")
            if last and part + ".py" in names:  # before a folder that is no package: data.py beside data/
                return inside + ".py"
            if not is_folder:
                return None
            folder = inside
        return folder

    def has_module(self, folder, name):
        """Returns whether a folder of the project that is not yet a root has this module."""
        return (
            folder not in self.roots and self._inside(folder) and self._find_module(folder, name.split(".")) is not None
        )

    def find(self, importer, name, level):
        """Returns the project's Source of a module, or None (not in this project, or a package
        without __init__)."""
        here = importer.folder
        if not level and name == os.path.basename(here) and os.path.basename(importer.path) == "__init__.py":
            beside = os.path.join(
                here, name + ".py"
            )  # Python 2: `from config import *` in config/__init__.py means config/config.py
            if os.path.isfile(beside):
                return self.load(beside)
        key = (here if level else None, level, name)
        if key in self.modules:
            return self.modules[key]
        found = None
        if level:
            base = here
            for _ in range(level - 1):
                base = os.path.dirname(base)
            roots = [base]
        else:
            roots = self.roots + ([here] if here not in self.roots else [])
        parts = [p for p in name.split(".") if p]
        for root in roots:
            if not self._inside(root):
                continue
            path = (
                self._find_module(root, parts)
                if parts
                else (os.path.join(root, "__init__.py") if "__init__.py" in self._listing(root) else None)
            )
            if path is None:
                continue
            if os.path.isfile(path) and self._inside(path):
                folder = root
                for part in parts[:-1]:  # packages on the way run first
                    folder = os.path.join(folder, part)
                    if "__init__.py" in self._listing(folder):
                        self.load(os.path.join(folder, "__init__.py"))
                found = self.load(path)
                break
            if os.path.isdir(path):
                break
        self.modules[key] = found
        return found

    # The project's other files

    def others(self):
        """Returns Python files of the project that the program does not import, or that could not
        be parsed."""
        if self._others is None:
            self._others = []
            seen = 0
            known = set()
            for top in self.tops:
                for folder, folders, names in os.walk(top, followlinks=False):
                    folders[:] = sorted(f for f in folders if f not in SKIPPED and not f.startswith("."))
                    for name in sorted(names):
                        seen += 1
                        if name.endswith((".py", ".ipynb", ".sh")):
                            path = os.path.join(folder, name)
                            real = os.path.realpath(path)
                            loaded = self.sources.get(real)
                            if (loaded is None or loaded.tree is None) and real not in known:
                                known.add(real)
                                self._others.append(path)
                    if seen > LISTED_MOST:
                        self.limits.append("the project has more than %d files: not all were looked at" % LISTED_MOST)
                        return self._others
        return self._others

    def scan_others(self, words):
        """Returns word -> [path] for those words that occur as an identifier or in a string in a
        file that was not parsed."""
        found = {}
        if not words:
            return found
        pattern = re.compile(
            rb"(?<![A-Za-z0-9_])("
            + b"|".join(re.escape(w.encode()) for w in sorted(words, key=len, reverse=True))
            + rb")(?![A-Za-z0-9_])"
        )
        read = 0
        for path in self.others():
            try:
                if os.path.getsize(path) > 4 << 20:
                    continue
                with open(path, "rb") as file:
                    data = file.read()
            except OSError:
                continue
            read += len(data)
            if read > SCANNED_MOST:
                self.limits.append("not all files of the project were searched")
                break
            for word in set(pattern.findall(data)):
                found.setdefault(word.decode(), []).append(path)
        return found


def _names_own_package(node, call):
    """Returns whether a computed name begins with `__name__`, or with a dot and
    `package=__package__`."""
    first = node
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "join"
        and node.args
        and isinstance(node.args[0], (ast.List, ast.Tuple))
    ):
        first = node.args[0].elts[0] if node.args[0].elts else node
    while isinstance(first, ast.BinOp) and isinstance(first.op, ast.Add):
        first = first.left
    if isinstance(first, ast.JoinedStr) and first.values:
        first = first.values[0].value if isinstance(first.values[0], ast.FormattedValue) else first.values[0]
    if isinstance(first, ast.Name) and first.id in ("__name__", "__package__"):
        return True
    package = [
        a
        for a in call.args[1:2] + [k.value for k in call.keywords if k.arg == "package"]
        if isinstance(a, ast.Name) and a.id in ("__name__", "__package__")
    ]
    return bool(package) and isinstance(first, ast.Constant) and first.value == "."


def _prefix(node):
    """Returns the constant text that a computed string starts with."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left = node
        while isinstance(left, ast.BinOp) and isinstance(left.op, ast.Add):
            left = left.left
        return _prefix(left)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return _prefix(node.left).split("%")[0]
    if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
        return str(node.values[0].value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return _prefix(node.func.value).split("{")[0]
    return ""
