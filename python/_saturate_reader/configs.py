# SPDX-License-Identifier: Apache-2.0
"""Finds the configuration files that a program reads: named in its command, in an option's default,
opened by the source, or by hydra."""

import ast
import os
import re

from . import names
from .literals import argument_of, literal
from .scopes import dotted
from .source import Problem, Text
from .toml_tree import read_toml
from .tree import TreeError
from .yaml_tree import read_json, read_yaml

FORMATS = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".toml": "toml"}
OPENERS = (
    "open",
    "load",
    "merge_from_file",
    "fromfile",
    "safe_load",
    "load_config",
    "parse_file",
    "read_text",
    "Path",
    "from_yaml",
    "from_yaml_file",
    "from_json",
    "from_json_file",
    "load_yaml",
    "read_yaml",
    "HParam",
    "get_config",
    "read_config",
    "parse_config",
    "load_cfg",
    "get_hparams_from_file",
    "load_yaml_config",
)
NAMES_CLASS = re.compile(r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$")
JSON_MOST = 1 << 20  # larger ones are data


class Configs:
    def __init__(self, project, values, settings):
        self.project = project
        self.values = values
        self.settings = settings
        self.found = {}  # real path -> entry
        self.texts = {}
        self.packages = True  # hydra puts the files of a group under the group's name

    def discover(self, named):
        for name in named:
            self._add(os.path.join(self.project.folder, name), "command", None, "certain")
        self._from_command()
        for declaration in list(self.settings.all):
            if declaration.kind == "option" and not declaration.more.get("given") and declaration.value:
                text = declaration.value.get("literal")
                if isinstance(text, str):
                    self._try(text, None, "default", declaration.place(), "likely")
        for source in self.project.order:
            if source.index is not None:
                self._opened(source)
                self._hydra(source)
        self._targets()

    def _targets(self):
        """Loads classes that a configuration names as text: `_target_: src.model.Net`."""
        by_name = any(
            source.index.calls_named("import_module", "__import__", "locate")
            for source in self.project.order
            if source.index is not None
        )
        for declaration in list(self.settings.all):
            text = (declaration.value or {}).get("literal")
            if (
                (by_name or declaration.key in names.TARGETS or declaration.key == "class_path")
                and isinstance(text, str)
                and NAMES_CLASS.match(text)
            ):
                self._load(text.rsplit(".", 1)[0], os.path.join(self.project.folder, os.path.dirname(declaration.file)))
        self.project.follow()

    def _load(self, module, beside):
        """Loads a module that a configuration names, from the program's folders or from the
        configuration's folder (sys.path.append(config.parent))."""
        project = self.project
        if project.find(project.entry, module, 0) is None and project.has_module(beside, module):
            project.roots.append(beside)
            project.modules.clear()
            project.find(project.entry, module, 0)

    def _from_command(self):
        for word in self.project.command.arguments:
            text = word.split("=", 1)[1] if word.startswith("--") and "=" in word else word
            if text.endswith(".py") and not self._try(text, None, "command", None, "certain"):
                self._python(os.path.join(self.project.where, text))
            else:
                self._try(text, None, "command", None, "certain")

    def _try(self, text, source, how, at, certainty):
        if os.path.splitext(text)[1].lower() not in FORMATS or len(text) > 300 or "\0" in text:
            return False
        bases = (
            [self.project.where]
            + ([os.path.dirname(source.path)] if source is not None else [])
            + self.project.roots[:1]
        )
        for base in bases:
            path = os.path.join(base, text)
            if os.path.isfile(path):
                self._add(path, how, at, certainty)
                return True
        return False

    def _opened(self, source):
        """Adds existing files that are named by constants or by arguments of
        calls that open files."""
        for call in source.index.calls if source.index.names_config else source.index.calls_named(*OPENERS):
            for argument in call.args[:2]:  # Config('training.yml')
                if (
                    isinstance(argument, ast.Constant)
                    and isinstance(argument.value, str)
                    and argument.value.endswith((".yaml", ".yml", ".toml"))
                ):
                    self._try(argument.value, source, "opened", source.place(call), "likely")
            name = dotted(call.func) or ""
            last = name.rsplit(".", 1)[-1] or getattr(call.func, "attr", "")
            if last in OPENERS:
                for argument in list(call.args[:2]) + [k.value for k in call.keywords[:3]]:
                    known, text = self.values.constant(argument)
                    if known and isinstance(text, str):
                        self._try(text, source, "opened", source.place(call), "likely")

    def _hydra(self, source):
        for scope in source.index.scopes:
            for decorator in getattr(scope.node, "decorator_list", ()):
                if not isinstance(decorator, ast.Call) or not (dotted(decorator.func) or "").endswith("hydra.main"):
                    continue
                self.values.hydra.add(scope)
                known_path, folder = literal(argument_of(decorator, "config_path", 0) or ast.Constant(None))
                known_name, name = literal(argument_of(decorator, "config_name", 1) or ast.Constant(None))
                words = self.project.command.arguments
                for index, word in enumerate(words):
                    if word in ("--config-name", "-cn") and index + 1 < len(words):
                        name, known_name = words[index + 1], True
                    elif word.startswith("--config-name="):
                        name, known_name = word.split("=", 1)[1], True
                    elif word in ("--config-path", "-cp", "--config-dir", "-cd") and index + 1 < len(words):
                        folder, known_path = words[index + 1], True
                folder = folder.replace("\\", "/") if isinstance(folder, str) else folder  # as written on Windows
                if known_path and isinstance(folder, str) and folder.endswith((".yaml", ".yml")) and not name:
                    folder, name = os.path.split(folder)  # hydra before 1.0: a group's files name their section
                    self.packages = False
                if known_path and known_name and isinstance(name, str):
                    base = os.path.normpath(os.path.join(os.path.dirname(source.path), folder or "."))
                    self._compose(base, name, (), source.place(decorator), 0)

    def _compose(self, base, name, prefix, at, depth):
        """Adds a hydra configuration and those in its defaults list."""
        path = os.path.join(base, name if name.endswith((".yaml", ".yml")) else name + ".yaml")
        if depth > 8 or not os.path.isfile(path):
            return
        documents = self._add(path, "hydra", at, "certain", prefix)
        for document in documents or ():
            defaults = document.find("defaults")
            if defaults is None or defaults.kind != "list":
                continue
            for item in defaults.items:
                if item.kind == "scalar" and isinstance(item.value, str) and item.value != "_self_":
                    group = os.path.dirname(os.path.relpath(path, base))
                    self._compose(base, os.path.join(group, item.value), prefix, at, depth + 1)
                elif item.kind == "map":
                    for key, _, _, value in item.members:
                        self._group(base, path, key, value, at, depth, prefix)

    def _group(self, base, path, key, value, at, depth, prefix):
        words = key.split()
        if "override" in words[:-1] and words[-1].lstrip("/").startswith("hydra/"):
            return
        group, _, package = words[-1].partition("@")
        choice = value.value if value.kind == "scalar" else None
        for word in self.project.command.arguments:
            if word.startswith(group.lstrip("/") + "="):
                choice = word.split("=", 1)[1]
        if not isinstance(choice, str):
            return
        if group.startswith("/"):
            group = group.lstrip("/")
        else:
            group = os.path.join(os.path.dirname(os.path.relpath(path, base)), group)
        where = prefix + tuple(
            p for p in (package or group.replace(os.sep, "/")).replace("/", ".").split(".") if p and p != "_global_"
        )
        if package == "_global_" or not self.packages:
            where = ()
        self._compose(base, os.path.join(group, choice), where, at, depth + 1)

    def _add(self, path, how, at, certainty, prefix=()):
        real = os.path.realpath(path)
        if real in self.found:
            return self.found[real].get("documents")
        format = FORMATS.get(os.path.splitext(path)[1].lower())
        if format is None:
            if path.endswith(".py"):
                self._python(path)
                return None
            format = "yaml"
        text = Text(path, self.project.relative(path))
        entry = {"how": how, "at": at, "certainty": certainty, "format": format, "text": text, "prefix": prefix}
        if format == "json" and len(text.data) > JSON_MOST:
            if how == "opened":
                return None
            text.problem = text.problem or Problem("too large for a configuration: treated as data")
        if format == "yaml" and len(text.data) > JSON_MOST * 4:
            text.problem = text.problem or Problem("too large for a configuration: treated as data")
        self.found[real] = entry
        if how == "command":
            self.settings.named.add(text.file)
        if text.problem is None:
            text.encoding = "utf-8"
            try:
                text.data.decode("utf-8")
                reader = {"yaml": read_yaml, "json": read_json, "toml": read_toml}[format]
                entry["documents"] = reader(text.data)
                if b"# @package _global_" in text.data[:2000]:
                    prefix = entry["prefix"] = ()
                self.settings.add_tree(text, format, entry["documents"], prefix)
            except UnicodeDecodeError:
                text.encoding = None
                text.problem = Problem("not UTF-8")
            except TreeError as error:
                text.problem = Problem(error.text, error.line)
            except RecursionError:
                text.problem = Problem("nested too deeply")
        return entry.get("documents")

    def _python(self, path):
        """Reads a configuration that is a Python file (mmcv, LazyConfig): its assignments
        are declarations."""
        if not os.path.isfile(path) or os.path.realpath(path) in self.found:
            return
        source = self.project.load(path)
        self._imported(source)
        self.found[os.path.realpath(path)] = {
            "how": "command",
            "at": None,
            "certainty": "certain",
            "format": "python",
            "text": source,
        }

    def _imported(self, source):
        """A Python configuration, and the project's files that it takes its defaults from."""
        if source in self.settings.python_files or source.index is None:
            return
        self.settings.python_files.add(source)
        for module, _, level, _ in source.index.imports:
            found = self.project.find(source, module, level)
            if found is not None:
                self._imported(found)

    def json(self):
        return [
            entry["text"].describe(
                how=entry["how"],
                at=entry["at"],
                certainty=entry["certainty"],
                format=entry["format"],
                keys=entry.get("keys", []),
            )
            for entry in self.found.values()
        ]
