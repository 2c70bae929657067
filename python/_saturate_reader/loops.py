# SPDX-License-Identifier: Apache-2.0
"""Finds the training step: the loop with backward and the optimizer's step, or the function that a
framework calls."""

import ast
import re

from . import names
from .reach import HOOKS
from .scopes import FUNCTIONS, LOOPS, ancestors, dotted, function_of

NOT_OPTIMIZERS = re.compile(
    r"sched|lr_|_lr|warm|ema|prof|env|timer|meter|loss|policy_step|swa|agent|sim|game|bar|clock|criterion", re.I
)
OPTIMIZER_NAME = re.compile(r"opt|solver|trainer_[gd]$", re.I)
OPTIMIZER_MODULE = re.compile(r"(^|\.)optim(izers?)?($|\.)")
OPTIMIZER_CLASS = re.compile(
    r"(%s)\w{0,4}$" % "|".join(names.OPTIMIZERS | names.OPTIMIZERS_ELSEWHERE)
)  # DecoupledAdamW, AdamW8bit
OTHER_LIBRARIES = (
    "torch.",
    "tensorflow.",
    "keras.",
    "paddle.",
    "mindspore.",
    "mxnet.",
    "jittor.",
    "oneflow.",
    "chainer.",
)


class Loop:
    def __init__(self, node, kind, scope, certainty):
        self.id = None
        self.node = node
        self.kind = kind
        self.scope = scope
        self.certainty = certainty
        self.epochs = []
        self.body = node.body if isinstance(node.body, list) else [node.body]
        self.calls = []
        self.functions = {}
        self.loader = None


class Loops:
    def __init__(self, project, values, reach):
        self.project = project
        self.values = values
        self.reach = reach
        self._effects = {}
        self.found = []

    # What a call does

    def is_backward(self, call):
        name = getattr(call.func, "attr", "")
        if name in ("backward", "manual_backward"):
            owner = function_of(call)
            return not (owner is not None and owner.name == "backward")
        return False

    def is_step(self, call):
        """Returns whether a call is an optimizer's step."""
        func = call.func
        if (
            isinstance(func, ast.Attribute)
            and func.attr in ("add_", "sub_")
            and any(  # p.data.add_(p.grad, alpha=-lr): a manual update
                isinstance(n, ast.Attribute) and n.attr == "grad" for a in call.args for n in ast.walk(a)
            )
        ):
            return True
        if not isinstance(func, ast.Attribute) or func.attr not in ("step", "step_and_update_lr", "optimizer_step"):
            return False
        text = dotted(func.value) or ""
        last = text.rsplit(".", 1)[-1]
        for value in self.values.of(func.value):
            if value[0] == "made":
                if is_optimizer(value[1]) or "GradScaler" in value[1]:
                    return True
                if "lr_scheduler" in value[1]:
                    return False
            elif value[0] == "inst":
                outside = self.values.lineage(value[1])[1]
                if any(is_optimizer(base) or base.endswith("Optimizer") for base in outside):
                    return True
                if any("lr_scheduler" in base or "Scheduler" in base for base in outside):
                    return False
        if OPTIMIZER_NAME.search(last) or "scaler" in last.lower():
            return not NOT_OPTIMIZERS.search(last)
        if call.args and any(OPTIMIZER_NAME.search(dotted(a) or "") for a in call.args[:1]):
            return True  # xm.optimizer_step(optimizer), scaler.step(optimizer)
        if isinstance(func.value, ast.Subscript):  # optimizers['G'].step()
            return bool(OPTIMIZER_NAME.search(dotted(func.value.value) or ""))
        return False

    def effects(self, scope, depth=0):
        """Returns which of backward and step happen in a function, including the
        functions that it calls."""
        found = self._effects.get(scope)
        if found is not None:
            return found
        self._effects[scope] = frozenset()
        out = set()
        if depth < 8:
            for call in scope.calls:
                out |= self.of_call(call, depth)
                if len(out) == 2:
                    break
        self._effects[scope] = frozenset(out)
        return self._effects[scope]

    def of_call(self, call, depth=0):
        out = set()
        if self.is_backward(call):
            out.add("backward")
        if self.is_step(call):
            out.add("step")
            for argument in call.args[:1]:  # optimizer.step(closure)
                for value in self.values.of(argument):
                    if value[0] == "fn":
                        out |= self.effects(value[1], depth + 1)
        for value in self.values.of(call.func):
            if value[0] == "made" and value[1].rsplit(".", 1)[-1] in ("NativeScaler", "ApexScaler"):
                out |= {"backward", "step"}
        for scope, _ in self.values.callees.get(call, ()):
            out |= self.effects(scope, depth + 1)
        return out

    # Loops

    def find(self):
        ignite = any(
            module.startswith("ignite")
            for source in self.project.order
            if source.index is not None
            for module, _, _, _ in source.index.imports
        )
        for source in self.project.order:
            if source.index is None:
                continue
            for node in source.index.loops:
                self._loop(node)
            for scope in source.index.scopes:
                if scope.is_class:
                    self._lightning(scope)
            for call in source.index.calls if ignite else ():
                self._engine(call)
        certain = [l for l in self.found if l.certainty == "certain"]
        if certain:
            self.found = certain
        if not self.found:
            self._functions()
        for number, loop in enumerate(self.found):
            loop.id = number
        return self.found

    def _calls_in(self, node):
        for call in node.scope.calls:
            if any(up is node for up in ancestors(call)) and not (
                isinstance(node, (ast.For, ast.AsyncFor)) and _within(call, node.iter)
            ):
                yield call

    def _loop(self, node):
        scope = function_of(node)
        certainty = self.reach.runs(scope)
        if certainty is None or self.reach.off(node):
            return
        if scope.is_function and scope not in self.values.callers and scope.name in HOOKS:
            certainty = "likely"  # runs only because its class is made, as far as is known
        direct, inner = set(), set()
        for call in self._calls_in(node):
            if self.reach.off(call):
                continue
            done = self.of_call(call)
            if not done:
                continue
            nested = any(isinstance(up, LOOPS) for up in _between(call, node)) or self._loops_inside(call)
            if nested:
                inner |= done
                if {"backward", "step"} <= done:
                    inner.add("both")
            else:
                direct |= done
        # Closures defined in the loop run in it.
        for scope in node.scope.children:
            if scope.is_function and any(up is node for up in ancestors(scope.node)):
                direct |= {e for e in self.effects(scope) if e == "backward"}
        if not {"backward", "step"} <= direct | inner:
            return
        if {"backward", "step"} <= direct:
            pass
        elif self._nested_both(node) or "both" in inner:
            return  # an epoch loop: the step is in an inner loop
        self.found.append(Loop(node, "while" if isinstance(node, ast.While) else "for", function_of(node), certainty))
        self._drop_inside(node)

    def _loops_inside(self, call):
        """Returns whether a called function has a loop with the step."""
        for scope, _ in self.values.callees.get(call, ()):
            if self._has_loop(scope, 0, set()):
                return True
        return False

    def _has_loop(self, scope, depth, seen):
        if scope in seen or depth > 6:
            return False
        seen.add(scope)
        for node in scope.loops:
            done = set()
            for call in self._calls_in(node):
                done |= self.of_call(call)
            if {"backward", "step"} <= done:
                return True
        for call in scope.calls:
            for other, _ in self.values.callees.get(call, ()):
                if {"backward", "step"} <= self.effects(other) and self._has_loop(other, depth + 1, seen):
                    return True
        return False

    def _nested_both(self, node):
        for other in node.scope.loops:
            if other is not node and any(up is node for up in ancestors(other)):
                done = set()
                for call in self._calls_in(other):
                    done |= self.of_call(call)
                if {"backward", "step"} <= done:
                    return True
        return False

    def _drop_inside(self, node):
        """Drops loops inside another step loop: they belong to its step."""
        self.found = [l for l in self.found if l.node is node or not any(up is node for up in ancestors(l.node))]
        if any(any(up is l.node for up in ancestors(node)) for l in self.found if l.node is not node):
            self.found = [l for l in self.found if l.node is not node]

    def _lightning(self, scope):
        step = scope.method("training_step")
        if step is None:
            return
        outside = self.values.lineage(scope)[1]
        if not any(
            "ightning" in base or base.startswith("pl.") or base.endswith("LightningModule") for base in outside
        ):
            return
        made = any(scope is one or scope in self.values.lineage(one)[0] for one in self.reach.classes)
        if made or not self.reach.classes:
            self.found.append(Loop(step.node, "training_step", step, "certain" if made else "likely"))

    def _engine(self, call):
        """Finds ignite's Engine(function) and similar calls."""
        for value in self.values.of(call.func):
            if value[0] == "ext" and value[1].startswith("ignite.engine") and value[1].endswith("Engine") and call.args:
                if self.reach.off(call) or self.reach.runs(function_of(call)) is None:
                    return
                for inner in self.values.of(call.args[0]):
                    if inner[0] in ("fn", "bound") and {"backward", "step"} <= self.effects(inner[1]):
                        self.found.append(Loop(inner[1].node, "engine", inner[1], "certain"))
                        for name, _, _ in inner[1].params[1:2]:
                            self.values.batches[(inner[1], name)] = None
                            self.values.drop_answers()

    def _functions(self):
        """Used if no loop was found: finds functions with a whole step, called from code that could
        not be followed."""
        for source in self.project.order:
            if source.index is None:
                continue
            for scope in source.index.scopes:
                if not scope.is_function or isinstance(scope.node, ast.Lambda) or self.reach.runs(scope) is None:
                    continue
                direct = set()
                for call in scope.calls:
                    if self.is_backward(call):
                        direct.add("backward")
                    if self.is_step(call):
                        direct.add("step")
                if {"backward", "step"} <= direct:
                    self.found.append(Loop(scope.node, "function", scope, "likely"))

    # Around a loop

    def counter(self, loop):
        """Returns the name that counts the steps: from enumerate, range, or
        `step += 1` in the body."""
        node = loop.node
        made = node.iter if isinstance(node, (ast.For, ast.AsyncFor)) else None
        if isinstance(made, ast.Name):  # bar = tqdm(enumerate(loader))
            bound = self.values.lookup(made) or ()
            made = bound[0].expr if len(bound) == 1 and bound[0].kind == "value" and not bound[0].path else None
        if isinstance(made, ast.Call):
            target = node.target
            if (
                (dotted(made.func) or "").rsplit(".", 1)[-1] in names.LOOKAHEAD
                and made.args
                and isinstance(made.args[0], ast.Call)
            ):
                made = made.args[0]  # tqdm(enumerate(loader)), tqdm(range(1000))
            last = (dotted(made.func) or "").rsplit(".", 1)[-1]
            if (
                last == "enumerate"
                and isinstance(target, ast.Tuple)
                and target.elts
                and isinstance(target.elts[0], ast.Name)
            ):
                return target.elts[0].id
            if last in ("range", "trange") and isinstance(target, ast.Name):
                return target.id
        if isinstance(node, FUNCTIONS):
            return next(
                (name for name, _, _ in loop.scope.params if name in ("batch_idx", "batch_index", "batch_nb")), None
            )
        for statement in loop.body:
            if (
                isinstance(statement, ast.AugAssign)
                and isinstance(statement.op, ast.Add)
                and isinstance(statement.value, ast.Constant)
                and (statement.value.value == 1)
                and not _begins_anew(loop, dotted(statement.target))
            ):
                return dotted(statement.target)
        return None

    def epochs(self, loop):
        """Returns the loops around the step loop, also in functions that call
        it, innermost first."""
        out, seen = [], set()

        def up(node, depth):
            for one in ancestors(node):
                if isinstance(one, LOOPS):
                    if one not in out:
                        out.append(one)
                if isinstance(one, FUNCTIONS):
                    scope = one.inner
                    if scope in seen or depth > 4:
                        return
                    seen.add(scope)
                    for call, _ in self.values.callers.get(scope, ())[:6]:
                        if self.reach.runs(function_of(call)) and not self.reach.off(call):
                            up(call, depth + 1)
                    return

        if loop.kind in ("for", "while"):
            up(loop.node, 0)
        return out


def is_optimizer(name):
    module, _, last = name.rpartition(".")
    if name in names.OTHER_OPTIMIZERS:
        return True
    if module.startswith("torch.optim") and "lr_scheduler" not in name and "swa_utils" not in name:
        return last in names.OPTIMIZERS or last == "*"
    if module.startswith(("transformers", "apex.optimizers", "torch_optimizer")):
        return last in names.OPTIMIZERS | names.OPTIMIZERS_ELSEWHERE
    # Other libraries have theirs in a module of that name: timm.optim, composer.optim,
    # colossalai.nn.optimizer.
    return (
        not name.startswith(OTHER_LIBRARIES)
        and bool(OPTIMIZER_MODULE.search(module))
        and bool(OPTIMIZER_CLASS.search(last))
    )


def _begins_anew(loop, name):
    """Returns whether the body sets the name: `collected = 0` after each step of the optimizer."""
    return name is None or any(
        isinstance(node, (ast.Name, ast.Attribute))
        and isinstance(node.ctx, ast.Store)
        and dotted(node) == name
        and not isinstance(node.up, ast.AugAssign)
        for statement in loop.body
        for node in ast.walk(statement)
    )


def _within(node, top):
    while node is not None:
        if node is top:
            return True
        node = node.up
    return False


def _between(node, top):
    for up in ancestors(node):
        if up is top:
            return
        yield up
