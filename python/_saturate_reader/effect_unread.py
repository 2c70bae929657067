# SPDX-License-Identifier: Apache-2.0
"""Settings that nothing reads, after ruling out every unseen reader (a part of Effect)."""

import ast
import os
import re

from . import names
from .conditions import nested
from .effect_elsewhere import Elsewhere
from .effect_unused import SETTING
from .effect_whole import Whole
from .literals import literal
from .scopes import function_of

HYDRA_OWN = {
    "_target_",
    "_partial_",
    "_recursive_",
    "_convert_",
    "defaults",
    "hydra",
    "class_path",
    "init_args",
    "_self_",
    "_args_",
    "_name_",
    "_group_",
}

FAIR = 6  # so many keys are read by the program that opens a file: it is its own configuration

# Names of files that are a configuration.
CONFIGURES = re.compile(r"conf|cfg|param|setting|option", re.I)


class Unread(Whole, Elsewhere):
    def _candidates(self):
        for declaration in self.settings.all:
            if (
                declaration.reads
                and not self._read_in_vain(declaration)
                or not declaration.leaf
                or declaration.key in HYDRA_OWN
                or declaration.key.startswith("_")
                or any(p in HYDRA_OWN for p in declaration.path[:-1])
            ):
                continue
            if declaration.kind == "option":
                if not self.reads.loads["args"] or declaration.root is None or declaration.key == "local_rank":
                    continue  # torch.distributed.launch passes --local_rank to every program
            elif declaration.kind in ("yaml", "json", "toml"):
                if not self.reads.loads["file"] or self._under_target(declaration) or declaration.more.get("anchor"):
                    continue
                if (
                    self._how(declaration) == "opened"
                    and declaration.kind == "json"
                    and not CONFIGURES.search(os.path.basename(declaration.file))
                ):
                    continue  # data perhaps
                if not declaration.path or any(p.startswith("[") for p in declaration.setting.split(".")):
                    continue
            elif declaration.kind == "yacs":
                if (
                    not self.reads.loads["file"]
                    or self._is_preset(declaration)
                    or any(
                        d.path == declaration.path and d.kind != "yacs"
                        for d in self.settings.by_path[("file", declaration.key)]
                    )
                ):
                    continue  # or reported at the configuration file that sets it
            elif declaration.kind == "dataclass":
                if declaration.value is None:
                    continue  # the code that makes the object gives the value
                if any("TrainingArguments" in b for b in self.values.lineage(declaration.scope)[1]):
                    if declaration.key in names.TRAINING_ARGUMENTS or declaration.key in self._words():
                        continue
                elif "_target_" in declaration.scope.names or not any(
                    d.reads for d in self.settings.all if d.scope is declaration.scope
                ):
                    continue  # with _target_, the object that hydra makes takes the field
                spread = self._spread_class(declaration.scope)
                if spread == "gone" or spread and declaration.key in self._words():
                    continue
            elif declaration.kind == "attribute":
                if declaration.key.startswith("__") or (declaration.value or {}).get("type") in (None, "expression"):
                    continue
                if declaration.key in self._words() and (
                    not self._closed(declaration.scope) or self._named_inside(declaration)
                ):
                    continue
                if not self._in_use(declaration.scope):
                    continue
            elif declaration.kind in ("constant", "variable"):
                if (
                    declaration.key in self._words()
                    or declaration.scope.source.index.rewrites
                    or declaration.scope.parent is not None
                ):
                    continue
                if declaration.file == self.project.entry.file:
                    if not SETTING.search(declaration.key) or (declaration.value or {}).get("type") not in (
                        "int",
                        "float",
                        "bool",
                    ):
                        continue
                elif (
                    not self._config_module(declaration.scope.source)
                    or len(declaration.scope.names[declaration.key]) > 1
                ):
                    continue
            else:
                continue
            yield declaration

    def _read_in_vain(self, declaration):
        """Returns whether every read stands in a function that nothing calls."""
        nodes = self.reads.nodes.get(declaration, ())
        return len(nodes) == len(declaration.reads) and all(self._never_runs(node) for node in nodes)

    def _never_runs(self, node):
        """Returns whether a node stands in a function of a module that no code of the project calls or names."""
        scope = function_of(node)
        while scope.parent is not None and scope.parent.parent is not None:
            scope = scope.parent
        if scope not in self._uncalled:
            self._uncalled[scope] = (
                scope.is_function
                and scope not in self.values.callers
                and self.reach.runs(scope) is None
                and (
                    not scope.node.decorator_list
                    and scope.name != "main"
                    and scope.name not in self._words()
                    and not self._called_by_text()
                    and not self.project.scan_others({scope.name})
                )
            )
        return self._uncalled[scope]

    def _called_by_text(self):
        """Returns whether the program finds functions by computed names: eval(), import_module(), getattr(module, name)."""
        if self._text_calls is None:
            self._text_calls = any(
                call.func.id != "getattr"
                or len(call.args) > 1
                and not literal(call.args[1])[0]
                and any(v[0] in ("mod", "mods") for v in self.values.of(call.args[0]))
                for source in self.project.order
                if source.index is not None
                for call in source.index.calls_named("eval", "exec", "globals", "__import__", "getattr")
                if isinstance(call.func, ast.Name)
            ) or any(
                source.index.calls_named("import_module") for source in self.project.order if source.index is not None
            )
        return self._text_calls

    def _config_module(self, source):
        """Returns whether a module is there for its constants, most of which are read, and is only asked for them by name."""
        if source not in self._modules:
            own = [d for d in self.settings.all if d.scope is source.index.top and d.kind in ("constant", "variable")]
            self._modules[source] = (
                bool(CONFIGURES.search(os.path.basename(source.file)))
                and 2 * sum(1 for d in own if d.reads or d.key in self._words()) > len(own)
                and not any(
                    not isinstance(load.up, ast.Attribute) and ("mod", source) in self.values.of(load)
                    for other in self.project.order
                    if other.index is not None
                    for load in other.index.loads
                )
            )
        return self._modules[source]

    def _in_use(self, scope):
        """Returns whether running code reads a field of this class."""
        return any(
            self.reach.runs(function_of(node))
            for d in self.reads.fields_of(scope)
            for node in self.reads.nodes.get(d, ())
        )

    def _closed(self, scope):
        """Returns whether every use of this class and of its objects is followed: a field that is not seen to be read is not read."""
        if scope not in self._closes:
            outside = [base for base in self.values.lineage(scope)[1] if base not in ("object", "builtins.object")]
            self._closes[scope] = (
                not outside
                and not self.values.dynamic(scope)
                and self._spread_class(scope) != "gone"
                and all(
                    self._use_followed(load)
                    for source in self.project.order
                    if source.index is not None
                    for load in source.index.loads
                    if any(
                        v[0] in ("cls", "inst") and scope in self.values.lineage(v[1])[0] for v in self.values.of(load)
                    )
                )
            )
        return self._closes[scope]

    def _use_followed(self, load):
        up = load.up
        if (
            isinstance(up, (ast.Attribute, ast.Return, ast.arguments, ast.Compare))
            or isinstance(up, ast.Assign)
            and up.value is load
        ):
            return True  # a read of one field, or another name for the object
        if isinstance(up, ast.Call):
            return True  # it makes an object, or gives one to a function: _given_away has what is not followed
        return isinstance(up, ast.keyword) and up.arg is not None

    def _named_inside(self, declaration):
        """Returns whether the body of the class computes another field from this one."""
        return any(
            load.id == declaration.key and nested(load.scope, declaration.scope)
            for load in declaration.scope.source.index.loads
        )

    def _words(self):
        """Returns every word that some code of the program reads, calls or names."""
        if self._said is None:
            self._said = set()
            for source in self.project.order:
                if source.index is None:
                    continue
                self._said.update(load.id for load in source.index.loads)
                self._said.update(node.attr for node in source.index.attributes)
                self._said.update(attr for _, attr, _, _ in source.index.imports if attr)
                self._said.update(k.arg for call in source.index.calls for k in call.keywords if k.arg)
                self._said |= source.index.strings
        return self._said

    def _is_preset(self, declaration):
        """Returns whether a function makes this default, other than the one that makes an object of a configuration class."""
        scope = declaration.node.scope
        if scope.parent is None or declaration.node.src in self.settings.python_files:
            return False
        return scope.owner is None or scope.name != "__init__" or self.reach.runs(scope) != "certain"

    def _how(self, declaration):
        for entry in self.configs.found.values():
            if entry["text"].file == declaration.file:
                return entry["how"]
        return None

    def _never_read(self):
        candidates = []
        followed = self._followed()
        gone = self._filled_gone()
        for declaration in self._candidates():
            if not followed.get(declaration.file if declaration.root == "file" else None, True):
                declaration.escapes = "how the program uses this configuration could not be followed"
                continue
            if self._dropped(declaration):
                continue
            why = self.reads.escape_of(declaration) or (gone if declaration.root == "file" else None)
            unknown = [node for node in self.reads.unknown_reads(declaration) if not self._never_runs(node)]
            if why:
                declaration.escapes = why
            elif unknown:
                declaration.escapes = "may be read at %s:%d" % (unknown[0].src.file, unknown[0].lineno)
            elif self._mentioned(declaration):
                declaration.escapes = "its name appears as a string at %s:%d" % (
                    self._mentioned(declaration).src.file,
                    self._mentioned(declaration).lineno,
                )
            elif self.project.limits and any("larger" in t or "more than" in t for t in self.project.limits):
                declaration.escapes = "not all of the project was read"
            else:
                candidates.append(declaration)
        elsewhere = self.project.scan_others({d.key for d in candidates})
        for declaration in candidates:
            other = self._read_elsewhere(declaration, elsewhere.get(declaration.key, ()))
            if other:
                declaration.escapes = "another program of the project reads it: %s" % other
                continue
            self._say_never(declaration)

    def _filled_gone(self):
        """Returns why code that was not followed may read the attributes of an object filled from a
        configuration, or None."""
        for scope in self.reads.filled & self._given_away() if self.reads.filled else ():
            return "an object of %s is given to other code" % scope.name
        for source in self.project.order if self.reads.filled else ():
            for call in (
                source.index.calls_named("items", "values", "keys", "vars", "asdict", "getattr")
                if source.index is not None
                else ()
            ):
                if call.scope.owner in self.reads.filled:
                    continue
                base = call.func.value if isinstance(call.func, ast.Attribute) else call.args[0] if call.args else None
                if base is not None and any(v[0] == "inst" and v[1] in self.reads.filled for v in self.values.of(base)):
                    return "%s:%d goes over all of it" % (source.file, call.lineno)
        return None

    def _followed(self):
        """Returns for each configuration file whether a fair part of it is seen to be read, by this program or by name in
        another one of the project. About the others nothing can be said."""
        total, read, other = {}, {}, {}
        for declaration in self.settings.all:
            if (
                declaration.root
                and declaration.leaf
                and declaration.kind in ("yaml", "json", "toml", "option", "yacs")
                and ".[" not in declaration.setting
            ):
                key = declaration.file if declaration.root == "file" else None
                total[key] = total.get(key, 0) + 1
                if any(
                    r["certainty"] == "certain" or self.reads.filled for r in declaration.reads
                ) or self.reads.escape_of(declaration):
                    read[key] = read.get(key, 0) + 1
                else:
                    other.setdefault(key, []).append(declaration)
        for key, declarations in other.items():
            # A file that some module opens may be another program's alone.
            if (
                key is not None
                and 0 < read.get(key, 0) * 3 < total[key]
                and (self._how(declarations[0]) != "opened" or read[key] >= FAIR)
            ):
                elsewhere = self.project.scan_others({d.key for d in declarations})
                read[key] += sum(1 for d in declarations if self._read_elsewhere(d, elsewhere.get(d.key, ())))
        return {key: read.get(key, 0) * 3 >= count for key, count in total.items()}

    def _dropped(self, declaration):
        """Reports a key whose class takes only the fields it has, and has none of
        this name. Returns whether it did."""
        if declaration.root != "file":
            return False
        for scope, call in self.holders.guarded.items():
            path, fields = self.values.holders.get(scope, (None, None))
            if path is None or declaration.path[:-1] != path or fields is None or declaration.key in fields:
                continue
            asked = self.reads.missing.get((scope, declaration.key))
            default = _default_of(asked)
            self._say(
                declaration,
                "dropped",
                "%s has no field of this name: %s:%d copies only those it has"
                % (scope.name, call.src.file, call.lineno),
                instead="the default at %s:%d is in effect: %s"
                % (asked.src.file, asked.lineno, asked.src.text(default, 80))
                if default is not None
                else None,
                at=call.src.place(call),
            )
            return True
        return False


def _default_of(node):
    """Returns what config.get(key, default) or getattr(config, key, default) gives for a missing
    key; None: no default."""
    if not isinstance(node, ast.Call):
        return None
    behind = 2 if isinstance(node.func, ast.Name) else 1  # getattr has the object as its first argument
    named = [k.value for k in node.keywords if k.arg == "default"]
    return node.args[behind] if len(node.args) > behind else named[0] if named else None
