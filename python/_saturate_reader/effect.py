# SPDX-License-Identifier: Apache-2.0
"""Settings that are declared but do nothing. Reported only if the source shows no way to an effect.
A setting that is not reported may still have none."""

import ast
import re

from . import names
from .effect_boxes import Boxes
from .effect_flags import Flags
from .effect_types import Types
from .effect_unread import Unread
from .effect_unused import Unused
from .effect_words import Words
from .scopes import FUNCTIONS, ancestors, dotted, function_of, is_main, statement_of

SEEDS = {"seed", "manual_seed", "manual_seed_all", "seed_everything", "set_seed", "set_float32_matmul_precision"}


class Effect(Unread, Unused, Boxes, Flags, Types, Words):
    def __init__(self, project, values, settings, reads, reach, calls, configs, holders):
        self.configs = configs
        self.holders = holders
        self.project = project
        self.values = values
        self.settings = settings
        self.reads = reads
        self.reach = reach
        self.calls = calls
        self.found = []
        self._away = None
        self._said = None
        self._made = None
        self._spreads = {}
        self._closes = {}
        self._uncalled = {}
        self._modules = {}
        self._text_calls = None
        self._read_attributes = None

    def find(self):
        self._wrong_types()
        self._always_on()
        self._untyped_numbers()
        self._compared_words()
        self._never_read()
        self._read_for_nothing()
        self._unused_locals()
        self._unasked_keys()
        self._overwritten()
        self._branches()
        self._wrong_words()
        self._text_only()
        self._never_called()
        self._unknown_flags()
        seen, out = set(), []
        for entry in self.found:
            key = (entry["file"], entry["line"], entry["setting"])
            if key not in seen:
                seen.add(key)
                out.append(entry)
        return sorted(out, key=lambda e: (e["file"], e["line"]))

    def _say(self, declaration, kind, why, instead=None, at=None, certainty="certain", setting=None):
        entry = declaration.place()
        entry.update(
            {
                "declaration": declaration.id,
                "setting": setting or declaration.setting,
                "kind": kind,
                "why": why,
                "instead": instead,
                "at": at,
                "certainty": certainty,
            }
        )
        self.found.append(entry)

    # Overwritten

    def _overwritten(self):
        for declaration in self.settings.all:
            stores = self.reads.nodes.get((declaration, "writes"), ())
            if (
                declaration.kind not in ("option", "yaml", "json", "toml", "yacs", "attribute")
                or not stores
                or not declaration.reads
            ):
                continue
            if (
                declaration.kind == "attribute"
                and not self._one_holder(declaration)
                or declaration.kind == "yacs"
                and declaration.node.scope.parent is not None
            ):
                continue
            for target, expr, statement in stores:
                way = self._way_to(statement)
                if (
                    expr is None
                    or not way
                    or self._reads_itself(declaration, statement)
                    or self._read_before(declaration, way)
                ):
                    continue
                if declaration.root == "file" and _is_filled_later(target, statement):
                    continue  # only a default: the file overrides it
                self._say(
                    declaration,
                    "overwritten",
                    "%s:%d sets it before anything reads it" % (statement.src.file, statement.lineno),
                    instead=statement.src.text(expr, 100),
                    at=statement.src.place(statement),
                )
                break

    def _one_holder(self, declaration):
        """Returns whether the field's class is used as it is or makes only one object, and no other
        field is computed from it."""
        scope = declaration.scope
        made = sum(
            1 for source in self.project.order if source.index is not None for _ in source.index.calls_named(scope.name)
        )
        return made < 2 and not any(
            load.scope is scope and load.id == declaration.key for load in scope.source.index.loads
        )

    def _way_to(self, statement, depth=0):
        """Returns the statement and the calls that lead to it, innermost first, if it runs once and
        unconditionally. Else returns an empty list."""
        for up in ancestors(statement):
            if isinstance(up, ast.If):
                test = up.test
                if is_main(test):
                    continue
                if (
                    isinstance(test, ast.Call)
                    and dotted(test.func) == "torch.cuda.is_available"
                    and statement in up.body
                ):
                    continue  # true on every machine that matters here
                return []
            if isinstance(up, FUNCTIONS):
                if self._parses(up.inner):
                    return [statement]
                callers = [
                    call
                    for call, _ in self.values.callers.get(up.inner, ())
                    if self.reach.runs(function_of(call)) and not self.reach.off(call)
                ]
                way = self._way_to(callers[0], depth + 1) if len(callers) == 1 and depth < 4 else []
                return [statement] + way if way else []
            if isinstance(up, ast.stmt) and not isinstance(up, ast.With) and up is not statement_of(statement):
                return []
        return [statement] if statement.src is self.project.entry else []

    def _parses(self, scope):
        """Returns whether this function parses the options."""
        return scope in self.values.hydra or any(self._parse_call(c, 0) for c in scope.calls)

    def _parse_call(self, call, depth):
        if getattr(call.func, "attr", "") in names.PARSE_CALLS:
            return True
        return depth < 2 and any(
            self._parse_call(c, depth + 1) for inner, _ in self.values.callees.get(call, ()) for c in inner.calls
        )

    def _reads_itself(self, declaration, statement):
        return any(any(up is statement for up in ancestors(n)) for n in self.reads.nodes.get(declaration, ()))

    def _read_before(self, declaration, way):
        """Returns whether functions on the way, or functions that they call, read the setting
        earlier than that."""
        here = {function_of(node): node for node in way}
        elsewhere = set()
        for node in self.reads.nodes.get(declaration, ()):
            scope = function_of(node)
            if scope in here:
                if node.lineno <= here[scope].lineno:
                    return True
            elif scope.parent is None:
                return True  # at the top of another module, which ran when imported
            else:
                elsewhere.add(scope)
        queue = [
            call
            for scope, node in here.items()
            for call in scope.calls
            if call is not node and call.lineno <= node.lineno
        ]
        seen = set(here)
        while queue:
            for other, _ in self.values.callees.get(queue.pop(), ()):
                if other in elsewhere:
                    return True
                if other not in seen:
                    seen.add(other)
                    queue.extend(other.calls)
        return False

    # Never called

    def _never_called(self):
        found = []
        words = set()
        for source in self.project.order:
            if source.index is None:
                continue
            for load in source.index.loads:
                words.add(load.id)
            for node in source.index.attributes:
                words.add(node.attr)
            words |= source.index.strings
            for module, attr, _, _ in source.index.imports:
                if attr and source.index.top.names.get(attr) is None:
                    words.add(attr)
        for source in self.project.order:
            for scope in source.index.scopes if source.index is not None else ():
                if (
                    scope.is_function
                    and not isinstance(scope.node, ast.Lambda)
                    and scope.name not in words
                    and not scope.node.decorator_list
                ):
                    if self._applies(scope) and (scope.owner is None or not self.values.lineage(scope.owner)[1]):
                        found.append(scope)
        elsewhere = self.project.scan_others({s.name for s in found})
        for scope in found:
            if scope.name in elsewhere or scope.name.startswith("__") or scope.name in ("main", "setUp"):
                continue
            source = scope.source
            entry = source.place(scope.node)
            entry["bytes"] = source.span(scope.node)
            entry.update(
                {
                    "declaration": None,
                    "setting": scope.name,
                    "kind": "never called",
                    "certainty": "certain",
                    "at": None,
                    "instead": None,
                    "why": "%s() applies settings (%s) and nothing calls it" % (scope.name, self._applies(scope)),
                }
            )
            self.found.append(entry)

    def _applies(self, scope):
        """What of PyTorch's settings a function is there to set; empty when none."""
        if scope.returns:
            return ""  # it computes something
        for target, expr, statement in scope.source.index.stores:
            if target.scope is scope and isinstance(target, ast.Attribute):
                name = dotted(target) or ""
                if re.search(r"(backends\.)?(cudnn|cuda\.matmul)\.(benchmark|deterministic|allow_tf32|enabled)$", name):
                    return name
        for call in scope.calls:
            last = getattr(call.func, "attr", getattr(call.func, "id", ""))
            if last in SEEDS:
                return dotted(call.func) or last
        return ""


def _is_filled_later(target, statement):
    """Returns whether a later call fills the object:
    `args.workers = 1; vars(args).update(yaml.safe_load(file))`"""
    root = (dotted(target.value) or "").split(".")[0]
    for call in statement.scope.calls if root else ():
        last = getattr(call.func, "attr", "")
        if (
            call.lineno > statement.lineno
            and last.startswith(("merge", "update"))
            and any(isinstance(n, ast.Name) and n.id == root for n in ast.walk(call.func))
        ):
            return True
    return False
