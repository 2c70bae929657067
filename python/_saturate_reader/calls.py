# SPDX-License-Identifier: Apache-2.0
"""Calls that matter for speed, with the bytes of each argument and the place where
one can be added."""

import ast
import re

from . import names
from .call_loaders import LoaderCalls
from .call_optimizers import OptimizerCalls
from .call_spreads import Spreads
from .call_targets import Targets
from .call_text import below, insert_place, not_training, root_of
from .conditions import is_evaluation, is_interval, runs_once
from .declarations import type_name
from .literals import literal
from .loops import is_optimizer
from .scopes import FUNCTIONS, ancestors, dotted, function_of, is_main, statement_of

EVALUATION = re.compile(r"(^|_)(eval|evaluate|evaluation|valid|validate|validation|val|vali|test|dev)(_|$)", re.I)


class Calls(LoaderCalls, OptimizerCalls, Spreads, Targets):
    def __init__(self, project, values, settings, flow, reach, loops, tensors):
        self.project = project
        self.values = values
        self.settings = settings
        self.flow = flow
        self.reach = reach
        self.loops = loops
        self.tensors = tensors
        self.entries = []
        self.alternatives = []  # calls that other settings would make
        self.by_node = {}
        self.training = self._training_loaders()
        self.step_scopes = {}
        for loop in loops.found:
            for scope, when in loop.functions.items():
                if when != "evaluation":
                    self.step_scopes.setdefault(scope, (loop, when))

    def find(self):
        for source in self.project.order:
            if source.index is None:
                continue
            for call in source.index.calls:
                certainty = self.reach.runs(function_of(call))
                if certainty is None or certainty == "likely" and self._left_out(function_of(call).owner):
                    continue
                if self.reach.off(call):
                    self._alternative(call)
                    continue
                if self._step_of(call) is not None and not_training(call):
                    continue
                kind = self._kind(call)
                if kind:
                    self._add(call, kind, certainty)
            self._flags(source)
        self._targets()
        self.entries.sort(key=lambda e: (e["file"], e["line"], e["bytes"][0]))
        for number, entry in enumerate(self.entries):
            entry["id"] = number
        return self.entries

    def _left_out(self, owner):
        """A class that is only named where the settings of this command do not lead: its methods are not the ones that are called by their names."""
        if owner is None or any(owner in self.values.lineage(made)[0] for made in self.reach.classes):
            return False
        named = [
            load
            for source in self.project.order
            if source.index is not None
            for load in source.index.loads
            if load.id == owner.name
            and not isinstance(load.up, ast.ClassDef)
            and not any(up is owner.node for up in ancestors(load))
        ]
        return bool(named) and all(self.reach.off(load) for load in named)

    def _alternative(self, call):
        """Adds a call that this command's settings leave out: `if args.optimizer == 'sgd'`,
        `if args.amp: with autocast():`"""
        if any(isinstance(up, ast.If) and is_main(up.test) for up in ancestors(call)):
            return
        for value in self.values.of(call.func):
            name = value[1] if value[0] == "ext" else None
            kind = (
                None
                if name is None
                else "loader"
                if name in names.LOADERS
                else "optimizer"
                if is_optimizer(name)
                else names.SWITCHED.get(name)
            )
            if kind:
                self.alternatives.append(
                    dict(
                        call.src.place(call),
                        kind=kind,
                        callee=name,
                        role=self._role(call) if kind == "loader" else None,
                        switch=self._switch(call),
                    )
                )
                return

    def _switch(self, call):
        """Returns the id of the one setting that leaves the call out by being false, or None."""
        child = call
        for up in ancestors(call):
            if isinstance(up, (ast.If, ast.IfExp)) and child is not up.test and self.values.truth(up.test) is False:
                parts = (
                    up.test.values if isinstance(up.test, ast.BoolOp) else [up.test]
                )  # args.amp and torch.cuda.is_available()
                found = [
                    d.id
                    for part in parts
                    if self.values.truth(part) is False
                    for value in self.values.of(part)
                    if value[0] == "cfg"
                    for d in self.settings.find(value[1], value[2])
                ]
                inside = child in up.body if isinstance(up.body, list) else child is up.body
                return found[0] if inside and len(found) == 1 else None
            if isinstance(up, FUNCTIONS):
                return None
            child = up
        return None

    # Which calls

    def _kind(self, call):
        func = call.func
        last = getattr(func, "attr", getattr(func, "id", ""))
        for value in self.values.of(func):
            name = value[1] if value[0] == "ext" else None
            if name is None:
                if value[0] == "partial" and value[1][0] == "ext" and value[1][1] in names.LOADERS:
                    return None  # the partial itself is the place to edit
                if value[0] == "partial" and value[1][0] == "ext" and is_optimizer(value[1][1]):
                    return None
                for base in self.values.lineage(value[1])[1] if value[0] == "cls" else ():
                    if base.endswith("Trainer") and base.split(".")[0] in (
                        "transformers",
                        "pytorch_lightning",
                        "lightning",
                        "trl",
                    ):
                        return ("trainer", base if base.startswith("transformers.") else value[1].name, "certain")
                base = self.values.plain_loader(value[1]) if value[0] == "cls" else None
                if base is not None:  # one that iterates in a way of its own is another loader
                    own = self.values.find_method(value[1], "__iter__")
                    return (
                        "loader",
                        base
                        if own is None or any(getattr(c.func, "attr", "") == "__iter__" for c in own.calls)
                        else value[1].name,
                        "certain",
                    )
                if value[0] == "cls" and any("lr_scheduler" in b for b in self.values.lineage(value[1])[1]):
                    return ("scheduler", value[1].name, "likely")
                if value[0] == "cls" and any(
                    is_optimizer(b) or b.endswith("optim.Optimizer") or b.endswith("optimizer.Optimizer")
                    for b in self.values.lineage(value[1])[1]
                ):
                    return ("optimizer", value[1].name, "likely")
                continue
            if name in names.LOADERS:
                return ("loader", name, "certain")
            if is_optimizer(name):
                return ("optimizer", name, "certain") if not self._not_picked(call) else None
            found = self._library(name, last, call)
            if found:
                return found
        if last == "partial" and call.args:
            for value in self.values.of(call.args[0]):
                if value[0] == "ext" and value[1] in names.LOADERS:
                    return ("loader", value[1], "certain")
                if value[0] == "ext" and is_optimizer(value[1]):
                    return ("optimizer", value[1], "certain")
        if last == "__init__" and isinstance(func, ast.Attribute):
            owner = call.scope.owner if call.scope.is_function else None
            if owner is not None and call.scope.name == "__init__":
                for base in self.values.bases(owner):
                    if base in names.LOADERS:
                        return ("loader", base, "certain")
        for scope, _ in self.values.callees.get(call, ()):
            if (
                EVALUATION.search(scope.name)
                and not (scope.owner is not None and scope.name == "eval")
                and self._evaluates(scope, 0)
                and (self.in_epoch(call) or self._step_of(call) is not None)
            ):
                return ("evaluation", scope.qualified(), "certain")
        return self._method(call, last)

    def _evaluates(self, scope, depth):
        """Returns whether this function, or one that it calls, sets evaluation mode."""
        if is_evaluation(scope):
            return True
        return depth < 2 and any(
            self._evaluates(inner, depth + 1)
            for c in scope.calls
            for inner, _ in self.values.callees.get(c, ())
            if inner is not scope
        )

    def _library(self, name, last, call):
        if name in names.SWITCHED:
            return (names.SWITCHED[name], name, "certain")
        if name in (
            "torch.set_float32_matmul_precision",
            "torch.use_deterministic_algorithms",
            "torch.autograd.set_detect_anomaly",
            "torch.autograd.detect_anomaly",
            "torch.set_deterministic",
            "torch.set_num_threads",
        ):
            return ("flag", name, "certain")
        if name in (
            "torch.nn.DataParallel",
            "torch.nn.parallel.DataParallel",
            "torch.nn.parallel.DistributedDataParallel",
            "torch.nn.parallel.distributed.DistributedDataParallel",
        ):
            return ("parallel", name, "certain")
        if name == "torch.cuda.empty_cache":
            return ("empty_cache", name, "certain")
        if name == "torch.save":
            return ("checkpoint", name, "certain")
        if name == "torch.load":
            return ("resume", name, "likely")
        if name.startswith("torch.optim.lr_scheduler.") and last[:1].isupper():
            return ("scheduler", name, "certain")
        if name.startswith("transformers.") and last.startswith("get_") and last.endswith(("_schedule", "_warmup")):
            return ("scheduler", name, "certain")
        if name in names.TRACKERS:
            return ("tracker", name, "certain")
        if (
            name.startswith("torch.nn.")
            and last.endswith("Loss")
            and last[:1].isupper()
            or name in ("torch.nn.functional.binary_cross_entropy",)
        ):
            return ("criterion", name, "certain")
        if (
            name.endswith(".Trainer")
            and name.split(".")[0] in ("pytorch_lightning", "lightning")
            or name.startswith("transformers.")
            and last.endswith("Trainer")
        ):
            return ("trainer", name, "certain")
        if name.startswith("transformers.") and last.endswith("TrainingArguments"):
            return ("arguments", name, "certain")
        if name.startswith("accelerate") and last == "Accelerator":
            return ("accelerator", name, "certain")
        if name.startswith("ignite.engine") and last in ("Engine", "create_supervised_trainer"):
            return ("engine", name, "certain")
        if name.startswith("trl.") and last.endswith(("Trainer", "Config")):
            return ("trainer" if last.endswith("Trainer") else "arguments", name, "certain")
        return None

    def _method(self, call, last):
        if not isinstance(call.func, ast.Attribute):
            return None
        if last == "zero_grad":
            return ("zero_grad", dotted(call.func), "certain")
        if last == "eval" and not call.args and self._evaluates_here(call):
            return ("evaluation", dotted(call.func), "certain")
        if self.loops.is_backward(call):
            return ("backward", dotted(call.func), "certain")
        if self.loops.is_step(call):
            return ("step", dotted(call.func), "certain")
        if last in ("cuda", "to") and self._step_of(call) is not None:
            if last == "to" and self.tensors.kind(call) != "gpu":
                return None
            if any(v[0] in ("mod", "ext") for v in self.values.of(call.func.value)):
                return None
            if any(self.tensors.is_module(v) for v in self.values.of(call.func.value)):
                return None
            return ("copy", dotted(call.func), "certain")
        return None

    def _evaluates_here(self, call):
        """model.eval() between the epochs in the same function: the evaluation follows in place."""
        loops = {id(n) for loop in self.loops.found for n in self.loops.epochs(loop)[:1]}
        for up in ancestors(call):
            if id(up) in loops:
                return self._step_of(call) is None
            if getattr(up, "inner", None) is not None and up.inner.is_function:
                return False
        return False

    # Where

    def _step_of(self, call):
        """Returns the step loop that a call belongs to."""
        for loop in self.loops.found:
            if call.src is loop.node.src and any(up is loop.node for up in ancestors(call)):
                if isinstance(loop.node, (ast.For, ast.AsyncFor)) and below(call, loop.node.iter):
                    continue
                return loop
        return self.step_scopes.get(function_of(call), (None,))[0]

    def in_epoch(self, call):
        """Made anew in each epoch: it stands in a loop around a step loop, or in a function that is called there."""
        loops = {id(n) for loop in self.loops.found for n in self.loops.epochs(loop)[:1]}
        seen = set()

        def up(node, depth):
            child = node
            for one in ancestors(node):
                if id(one) in loops:
                    return True
                if isinstance(one, ast.If) and child is not one.test and runs_once(one):
                    return False
                child = one
                inner = getattr(one, "inner", None)
                if inner is not None and inner.is_function:
                    if inner in seen or depth > 3:
                        return False
                    seen.add(inner)
                    callers = self.values.callers.get(inner, ())
                    return bool(callers) and all(up(c, depth + 1) for c, _ in callers[:6])
            return False

        return up(call, 0)

    def _add(self, call, kind, certainty):
        kind, callee, sure = kind
        source = call.src
        loop = self._step_of(call)
        in_epoch = self.in_epoch(call)
        entry = {
            "id": None,
            "kind": kind,
            "callee": callee,
            "certainty": "certain" if sure == certainty == "certain" else "likely",
        }
        entry.update(source.place(call))
        entry.update(
            {
                "arguments": self.arguments(call, kind, callee),
                "spreads": self.spreads(call),
                "insert": insert_place(source, call),
                "scope": call.scope.qualified(),
                "statement": source.span(statement_of(call)),
                "in_step": loop.id if loop is not None else None,
                "in_epoch": in_epoch,
                "when": self._when(call, loop, in_epoch),
            }
        )
        more = getattr(self, "_" + kind, None)
        if more:
            more(call, callee, entry)
        self.entries.append(entry)
        self.by_node[call] = entry

    def _when(self, call, loop, in_epoch):
        interval = any(
            isinstance(up, ast.If) and is_interval(up.test) for up in ancestors(call) if not isinstance(up, ast.Module)
        )
        if loop is not None:
            when = self.step_scopes.get(function_of(call), (None, "step"))[1]
            return "interval" if interval or when == "interval" else "step"
        if in_epoch:
            return "interval" if interval else "epoch"
        return "once"

    # Arguments

    def arguments(self, call, kind, callee):
        out = []
        source = call.src
        last = (callee or "").rsplit(".", 1)[-1]
        known = {"loader": names.LOADER_POSITIONS, "optimizer": names.OPTIMIZER_POSITIONS.get(last, ["params"])}.get(
            kind, []
        )
        given = list(call.args)
        shift = 1 if (dotted(call.func) or "").rsplit(".", 1)[-1] == "partial" else 0
        for position, node in enumerate(given):
            if isinstance(node, ast.Starred):
                break
            if position < shift:
                continue
            index = position - shift
            out.append(self._argument(source, node, known[index] if index < len(known) else None, index))
        for keyword in call.keywords:
            if keyword.arg is not None:
                out.append(self._argument(source, keyword.value, keyword.arg, None))
        return out

    def _argument(self, source, node, name, position):
        is_literal, value = literal(node)
        entry = {
            "name": name,
            "position": position,
            "bytes": source.span(node),
            "line": node.lineno,
            "text": source.text(node),
            "type": type_name(value) if is_literal else "expression",
            "sources": [] if is_literal else self.flow.sources(node),
        }
        if is_literal and isinstance(value, (bool, int, float, str, type(None))):
            entry["literal"] = value
        elif not is_literal:
            known, value = self.values.constant(node)
            if known and isinstance(value, (bool, int, float, str, type(None))):
                entry["in_force"] = value
        return entry

    # Further facts by kind

    def _copy(self, call, callee, entry):
        receiver = call.func.value
        entry["of"] = call.src.text(receiver)
        entry["from_loader"] = self.tensors.kind(receiver) == "cpu" and any(
            v[0] == "batch" for v in self.values.of(root_of(receiver))
        )
        root = root_of(receiver)
        made = False
        if isinstance(root, ast.Call):
            made = any(v[0] == "ext" and v[1] in names.MADE_ON_CPU for v in self.values.of(root.func))
        elif isinstance(root, ast.Name):
            for value in self.values.of(root):
                made |= value[0] == "made" and value[1] in names.MADE_ON_CPU
        entry["made_here"] = made and not entry["from_loader"]

    def _scheduler(self, call, callee, entry):
        per = set()
        for source in self.project.order:
            for other in source.index.calls_named("step") if source.index is not None else ():
                if not isinstance(other.func, ast.Attribute) or not self.reach.runs(function_of(other)):
                    continue
                if any(
                    v[0] == "made" and v[2] is call or v[0] == "inst" and v in self.values.of(call)
                    for v in self.values.of(other.func.value)
                ):
                    loop = self._step_of(other)
                    if loop is None or loop.kind == "training_step":
                        per.add("epoch")
                    else:
                        per.add(self._when(other, loop, False))
        entry["per"] = per.pop() if len(per) == 1 else "unknown"

    def _evaluation(self, call, callee, entry):
        self._checkpoint(call, callee, entry)

    def _checkpoint(self, call, callee, entry):
        entry["interval"] = self.interval(call)
        entry["every"] = "interval" if entry["interval"] else entry["when"]

    def interval(self, call):
        """`if step % every == 0:` around it: what counts, and where its value comes from."""
        for up in ancestors(call):
            if isinstance(up, ast.If):
                for node in ast.walk(up.test):
                    if (
                        isinstance(node, ast.BinOp)
                        and isinstance(node.op, ast.Mod)
                        and not isinstance(node.left, ast.Constant)
                    ):
                        known, value = literal(node.right)
                        return {
                            "text": call.src.text(node.right),
                            "bytes": call.src.span(node.right),
                            "line": node.right.lineno,
                            "file": call.src.file,
                            "literal": value if known else None,
                            "sources": self.flow.sources(node.right),
                            "test": call.src.text(up.test),
                        }
            if isinstance(up, ast.FunctionDef):
                return None
        return None
