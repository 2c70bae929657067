# SPDX-License-Identifier: Apache-2.0
"""Loaders: which one feeds the training steps, and what each is for (a part of Calls)."""

import ast
import re

from . import names
from .call_text import below
from .conditions import no_gradients
from .literals import argument_of, literal
from .scopes import FUNCTIONS, ancestors, dotted, function_of, statement_of

EVALUATION = re.compile(r"val|test|eval|dev|query|gallery|predict|infer")
TRAINING = re.compile(r"train|trn|tng|_tr\b")  # tng_dataloader: Lightning's early name for train_dataloader


class LoaderCalls:
    def _training_loaders(self):
        found = set()
        handed = list(self._handed()) + list(self._hooked())
        for loop in self.loops.found:
            nodes = handed if isinstance(loop.node, FUNCTIONS) else []
            if isinstance(loop.node, (ast.For, ast.AsyncFor)):
                nodes.append(loop.node.iter)
            inner = [
                call
                for scope, when in loop.functions.items()
                if when in ("step", "branch")
                for call in scope.calls
                if dotted(call.func) == "next"
            ]
            for call in list(loop.node.scope.calls) + inner:
                if no_gradients(call):
                    continue
                if dotted(call.func) == "next" and call.args:
                    nodes.append(call.args[0])
                elif getattr(call.func, "attr", "") == "next" and not call.args:  # next() of a prefetcher
                    nodes.append(call.func.value)
            loaders = [one for node in nodes for one in self.loaders_of(node, 0) if one is not None]
            found.update(loaders)
            # If one function does training and evaluation, the names of the
            # loaders tell them apart.
            mine = [one for one in loaders if not _for_evaluation(one)] or loaders
            mine = [one for one in mine if self.reach.runs(function_of(one))] or mine
            loop.loader = loop.loader or (mine[0] if mine else None)
        return found

    def _handed(self):
        """Yields loaders that are passed to a framework: engine.run(loader),
        trainer.fit(model, loader)."""
        for source in self.project.order:
            for call in source.index.calls_named("run", "fit") if source.index is not None else ():
                last = getattr(call.func, "attr", "")
                if not last or self.reach.off(call):
                    continue
                values = self.values.of(call.func.value)
                if (
                    last == "run"
                    and call.args
                    and any(v[0] == "made" and v[1].startswith("ignite.engine") and self._steps(v[2]) for v in values)
                ):
                    yield call.args[0]
                elif last == "fit" and any(v[0] == "made" and v[1].endswith("Trainer") for v in values):
                    node = argument_of(call, "train_dataloaders", 1) or argument_of(call, "train_dataloader", 1)
                    if node is not None:
                        yield node

    def _hooked(self):
        """Yields what train_dataloader() of a Lightning class returns."""
        for scope in sorted(self.reach.classes, key=lambda one: (one.source.file, one.node.lineno)):
            if any("ightning" in base for base in self.values.lineage(scope)[1]):
                for name in ("train_dataloader", "tng_dataloader"):
                    method = self.values.find_method(scope, name)
                    for one in [method] if method is not None else self.values.set_methods(scope, name):
                        yield from one.returns

    def _steps(self, engine):
        """Returns whether the function that an Engine is made with is a training step."""
        steps = {loop.scope for loop in self.loops.found}
        return any(v[0] in ("fn", "bound") and v[1] in steps for a in engine.args[:1] for v in self.values.of(a))

    def loaders_of(self, node, depth):
        if depth > 5 or node is None:
            return
        if isinstance(node, ast.Call):
            last = (dotted(node.func) or getattr(node.func, "attr", "")).rsplit(".", 1)[-1]
            if last in names.LOOKAHEAD | {
                "enumerate",
                "zip",
                "next",
                "log_every",
                "tqdm",
                "skip_first_batches",
                "infinite",
                "cycle",
                "sample_data",
                "get_data_iterator",
                "infinite_iter",
                "inf_loop",
                "inf_train_gen",
            }:
                for argument in node.args:
                    yield from self.loaders_of(argument, depth + 1)
                return
        if isinstance(node, (ast.Tuple, ast.List)):  # a generator that yields x, y
            for element in node.elts:
                yield from self.loaders_of(element, depth + 1)
            return
        for value in self.values.of(node):
            if value[0] == "made" and value[1] in names.LOADERS:
                yield value[2]
            elif (
                value[0] == "made"
                and value[2].args
                and (value[1].startswith("builtins.") or value[1].rsplit(".", 1)[-1] in names.LOOKAHEAD)
            ):
                yield from self.loaders_of(value[2].args[0], depth + 1)
            elif value[0] == "batch":
                yield value[1]
            elif value[0] == "gen":
                for one in value[1].yields:
                    yield from self.loaders_of(one, depth + 1)
            elif value[0] == "inst":
                init = self.values.find_method(value[1], "__init__")
                for scope in self.values.lineage(value[1])[0]:
                    own = scope.method("__init__")
                    if own is not None and any(base in names.LOADERS for base in self.values.bases(scope)):
                        for call in own.calls:
                            if getattr(call.func, "attr", "") == "__init__":
                                yield call
                        return
                if init is not None:  # a wrapper around a loader
                    for binding in [b for bs in init.names.values() for b in bs if b.kind == "param"]:
                        for inner in self.values.binding(binding):
                            if inner[0] == "made" and inner[1] in names.LOADERS:
                                yield inner[2]

    def _loader(self, call, callee, entry):
        entry["role"] = self._role(call)
        for name, position in (("sampler", 3), ("batch_sampler", 4), ("collate_fn", 6), ("worker_init_fn", 10)):
            node = argument_of(call, name, position)
            short = {"collate_fn": "collate", "worker_init_fn": "worker_init"}.get(name, name)
            entry[short] = (
                None
                if node is None or literal(node) == (True, None)
                else {"text": call.src.text(node), "bytes": call.src.span(node)}
            )

    def _role(self, call):
        if isinstance(call.up, ast.Call) and (dotted(call.up.func) or "").endswith("Loader.like"):
            return "unknown"  # saturate_gpu's loader replaces this one, so nothing is read through it
        if call in self.training:
            if _for_evaluation(call) and not all(_for_evaluation(other) for other in self.training):
                return "evaluation"
            return self._branch_role(call) or "train"
        words = _names_of(call)
        scope = function_of(call)
        words += [scope.name] if scope is not None and scope.is_function else []
        dataset = argument_of(call, "dataset", 0)
        if dataset is not None:
            words.append(call.src.text(dataset))
        role = role_of_words(words)
        if role is not None:
            return role if role == "evaluation" or not self.training else "unknown"
        shuffle = argument_of(call, "shuffle", 2)
        if shuffle is not None and literal(shuffle) == (True, True):
            return "train" if not self.training else "unknown"
        return "unknown"

    def _branch_role(self, call):
        """Tells by its branch what a loader is for, if one function makes both:
        `if train: ... else: ...`."""
        if sum(1 for other in self.training if other.scope is call.scope) < 2:
            return None
        child = call
        for up in ancestors(call):
            if isinstance(up, ast.If):
                text = call.src.text(up.test).lower()
                inside = getattr(child, "block", None) is up.body
                if re.search(r"train", text) and not re.search(r"not |!=|is false", text):
                    return "train" if inside else "evaluation"
                if re.search(r"val|test|eval", text) and inside:
                    return "evaluation"
            if isinstance(up, ast.FunctionDef):
                return None
            child = up
        return None


def role_of_words(words):
    """Returns what the names around a loader say it is for, or None if they say nothing or both."""
    for text in words:
        low = text.lower()
        evaluation, training = EVALUATION.search(low), TRAINING.search(low)
        if bool(evaluation) != bool(training):
            return "evaluation" if evaluation else "train"
    return None


def _for_evaluation(call):
    """Returns whether the name that the loader is kept under says evaluation."""
    return role_of_words(_names_of(call)) == "evaluation"


def _names_of(call):
    """Returns the names that a loader is kept under: the key in a dict, then what the statement assigns to."""
    words = [
        call.src.text(key)
        for up in ancestors(call)
        if isinstance(up, ast.Dict)  # {'train': DataLoader(...), 'val': ...}
        for key, value in zip(up.keys, up.values)
        if key is not None and below(call, value)
    ]
    statement = statement_of(call)
    targets = (
        statement.targets
        if isinstance(statement, ast.Assign)
        else [statement.target]
        if isinstance(statement, ast.AnnAssign)
        else []
    )
    return words + [call.src.text(target) for target in targets]
