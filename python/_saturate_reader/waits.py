# SPDX-License-Identifier: Apache-2.0
"""Places in a training step, or in functions called from it, where the host waits for the device."""

import ast
import re

from .conditions import READS, in_condition, is_evaluation, name_evaluates, reads, receives, tensor_guard
from .literals import literal
from .scopes import FUNCTIONS, LOOPS, ancestors, dotted
from .tensors import formatted
from .wait_guards import Guards
from .wait_uses import WaitUses

DEEPEST = 7
METRIC = re.compile(r"score|acc(uracy)?\b|accuracy|iou|dice|psnr|ssim|metric|auc|precision|recall|f1|mae\b|rmse", re.I)
SEVERITY = {"step": 3, "branch": 2, "interval": 1, "rare": 1, "evaluation": 0}


class Wait:
    def __init__(self, node, what, kind, when, value, loop, path, certainty, interval=None):
        self.node = node
        self.what = what
        self.kind = kind
        self.when = when
        self.value = value
        self.loop = loop
        self.path = path
        self.certainty = certainty
        self.interval = interval
        self.use = "unknown"


class Context:
    """How often the current code runs, and how it was reached. `vague`: it is one of many functions
    that a call may mean."""

    __slots__ = ("when", "path", "interval", "depth", "vague")

    def __init__(self, when="step", path=(), interval=None, depth=0, vague=False):
        self.vague = vague
        self.when = when
        self.path = path
        self.interval = interval
        self.depth = depth

    def but(self, when, interval=None):
        if SEVERITY[when] >= SEVERITY[self.when]:
            return self
        return Context(when, self.path, interval or self.interval, self.depth, self.vague)


class Waits(WaitUses, Guards):
    def __init__(self, values, tensors, reach, loops):
        self.values = values
        self.tensors = tensors
        self.reach = reach
        self.loops = loops
        self.found = {}
        self.visited = {}
        self.loop = None
        self.guards = {}  # text of a condition -> its truth in a training step

    def find(self, all_loops):
        for loop in all_loops:
            self.loop = loop
            self.visited = {}
            self.guards = self._guards(loop)
            if loop.kind in ("training_step",):
                for name, _, _ in loop.scope.params[1:2]:
                    self.tensors.on_device.add((loop.scope, name))
                self.tensors.memo.clear()
            if isinstance(loop.node, ast.While):
                self._expression(loop.node.test, Context())
            self._block(loop.body, Context())
        entered = {call for wait in self.found.values() if wait.kind == "sync" for call in wait.path}
        self.found = {
            key: wait for key, wait in self.found.items() if wait.kind != "metric_step" or wait.node not in entered
        }  # else report its reads
        for wait in self.found.values():
            self._classify(wait)
        return sorted(self.found.values(), key=lambda w: (w.node.src.file, w.node.lineno, w.node.col_offset))

    def _equality(self, test):
        """Returns what a test compares, the constant that it compares with, and whether they must be equal: `phase == TRAIN`."""
        if (
            isinstance(test, ast.Compare)
            and len(test.ops) == 1
            and isinstance(test.ops[0], (ast.Eq, ast.NotEq))
            and isinstance(test.left, (ast.Name, ast.Attribute))
        ):
            known, value = self.values.constant(test.comparators[0])
            if known and isinstance(value, (str, int)):
                return ast.dump(test.left), value, isinstance(test.ops[0], ast.Eq)
        return None, None, None

    def _guarded(self, test):
        """Returns what a test is in every training step, as the conditions around backward() tell, or None."""
        found = self.guards.get(ast.dump(test))
        if found is not None:
            return found
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self._guarded(test.operand)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            parts = [self._guarded(value) for value in test.values]
            stops = isinstance(test.op, ast.Or)
            return stops if stops in parts else None if None in parts else not stops
        name, value, equal = self._equality(test)
        if name is not None and ("==", name) in self.guards:
            return (self.guards["==", name] == value) is equal
        return None

    # Statements

    def _block(self, statements, context):
        for statement in statements:
            if isinstance(statement, ast.If) and self._leaves_rest(statement):
                self._statement(statement, context)
                # `if step % 10: continue`: the rest runs at an interval.
                if self._is_interval(statement.test):
                    context = context.but("interval", statement.test)
                continue
            self._statement(statement, context)

    @staticmethod
    def _leaves_rest(statement):
        return bool(statement.body) and isinstance(statement.body[-1], ast.Continue) and not statement.orelse

    def _statement(self, node, context):
        if isinstance(node, ast.If):
            self._if(node, context)
        elif isinstance(node, LOOPS):
            if isinstance(node, ast.While):
                self._expression(node.test, context)
            else:
                self._expression(node.iter, context)
            self._block(
                node.body,
                context.but("evaluation")
                if self._evaluates(node)
                else context.but("rare")
                if receives(node)
                else context,
            )
            self._block(node.orelse, context)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                self._expression(item.context_expr, context)
            self._block(node.body, context)
        elif isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
            self._block(node.body, context)
            for handler in node.handlers:
                self._block(handler.body, context.but("rare"))
            self._block(node.orelse, context)
            self._block(node.finalbody, context)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
            return
        elif type(node).__name__ == "Match":
            self._expression(node.subject, context)
            for case in node.cases:
                self._block(case.body, context.but("branch"))
        else:
            if isinstance(node, ast.Assert):
                self._condition(node.test, context)
                self._expression(node.test, context)
                if node.msg is not None:
                    self._expression(node.msg, context.but("rare"))
                return
            if isinstance(node, ast.Raise):
                context = context.but("rare")
            self._expression(node, context)

    def _by_path(self, test, path):
        """`if profile:` in forward(x, profile=False), which the step calls without it: returns what a test of parameters is in the
        calls that lead here, or None."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self._by_path(test.operand, path)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            parts = [self._by_path(value, path) for value in test.values]
            stops = isinstance(test.op, ast.Or)
            return stops if stops in parts else None if None in parts else not stops
        if (
            isinstance(test, ast.Compare)
            and len(test.ops) == 1
            and isinstance(test.ops[0], (ast.Is, ast.IsNot))
            and literal(test.comparators[0]) == (True, None)
        ):
            known, value = self._here(test.left, path, 0)
            return (value is None) is isinstance(test.ops[0], ast.Is) if known else None
        known, value = self._here(test, path, 0)
        return bool(value) if known else None

    def _here(self, node, path, depth):
        """Returns (True, value) if the node is a constant, or a parameter that has one in the calls that lead here."""
        if not isinstance(node, ast.Name) or not path or depth > 4:
            return literal(node)
        bindings = node.scope.names.get(node.id, ())
        if len(bindings) != 1 or bindings[0].kind != "param" or isinstance(bindings[0].path[0], str):
            return False, None
        found = []
        for scope, shift in self.values.callees.get(path[-1], ()):
            if scope is node.scope:
                if any(k.arg is None for k in path[-1].keywords) or any(
                    isinstance(a, ast.Starred) for a in path[-1].args
                ):
                    return False, None
                given = self.values.argument(path[-1], shift, node.id, bindings[0].path[0])
                found.append(
                    self._here(given, path[:-1], depth + 1)
                    if given is not None
                    else literal(bindings[0].expr)
                    if bindings[0].expr is not None
                    else (False, None)
                )
        return found[0] if len(found) == 1 else (False, None)

    # Expressions

    def _expression(self, top, context):
        stack = [top]
        while stack:
            node = stack.pop()
            if isinstance(node, FUNCTIONS):
                continue
            if isinstance(node, ast.IfExp):
                truth = self.values.truth(node.test)
                stack.append(node.test)
                if truth is not False:
                    stack.append(node.body)
                if truth is not True:
                    stack.append(node.orelse)
                continue
            if isinstance(node, ast.Call):
                self._call(node, context)
            elif isinstance(node, ast.Subscript):
                self._old_item(node, context)
            elif isinstance(node, ast.FormattedValue):
                if self.tensors.kind(node.value) == "gpu":
                    self._add(node.value, "format", "sync_implicit", context, node.value, "likely")
            elif isinstance(node, ast.BinOp) and formatted(node):
                for value in node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]:
                    if self.tensors.kind(value) == "gpu" and not reads(value):
                        self._add(value, "format", "sync_implicit", context, value, "likely")
            stack.extend(ast.iter_child_nodes(node))

    def _old_item(self, node, context):
        """Notes `loss.data[0]`, the way to read a loss before item() existed."""
        if not (
            isinstance(node.value, ast.Attribute)
            and node.value.attr == "data"
            and isinstance(node.ctx, ast.Load)
            and literal(node.slice) == (True, 0)
        ):
            return
        base = dotted(node.value.value)
        if (
            base
            and any(self.loops.is_backward(c) and dotted(c.func.value) == base for c in node.scope.calls)
            and self.tensors.kind(node.value.value) in ("gpu", None)
        ):
            self._add(node, "index", "sync", context, node.value.value, "likely")

    def _call(self, node, context):
        func = node.func
        last = getattr(func, "attr", getattr(func, "id", ""))
        if isinstance(func, ast.Attribute) and last in READS and not (node.args and last in ("item", "tolist")):
            self._read(node, last, func.value, context)
            return
        if (
            last == "to"
            and isinstance(func, ast.Attribute)
            and self.tensors.kind(node) == "cpu"
            and self.tensors.kind(func.value) == "gpu"
        ):
            self._read(node, "cpu", func.value, context)  # x.to("cpu")
            return
        name = dotted(func) or ""
        if name in ("float", "int", "bool") and len(node.args) == 1:
            if self.tensors.kind(node.args[0]) == "gpu":
                self._add(node, name, "sync", context, node.args[0], "certain")
            return
        if (
            name.startswith("torch.")
            and last in ("tensor", "Tensor", "FloatTensor", "LongTensor", "as_tensor")
            and node.args
            and isinstance(node.args[0], (ast.List, ast.Tuple, ast.ListComp))
            and self._holds_tensors(node.args[0])
        ):
            self._add(node, "tolist", "sync", context, node.args[0], "certain")  # each number is read from the device
            return
        if name.endswith("cuda.synchronize"):
            self._add(node, "synchronize", "sync", context, None, "certain")
            return
        if (
            last in ("isnan", "isinf", "isfinite")
            and node.args
            and self.tensors.kind(node.args[0]) == "gpu"
            and not (isinstance(node.up, ast.Attribute) and node.up.attr in READS)
        ):
            if name.startswith(("math.", "np.", "numpy.")) or in_condition(node):
                self._add(node, "bool", "sync_control", context, node.args[0], "certain")
                return
        if last in (
            "print",
            "add_scalar",
            "info",
            "debug",
            "warning",
            "set_postfix",
            "log_metrics",
            "add_scalars",
            "write",
            "log_scalar",
        ):
            if not self._lightning_log(node):
                for argument in list(node.args) + [k.value for k in node.keywords]:
                    if (
                        not isinstance(argument, (ast.JoinedStr, ast.Constant))
                        and self.tensors.kind(argument) == "gpu"
                        and not reads(argument)
                    ):
                        self._add(
                            argument,
                            "print" if last == "print" else "bar" if last.startswith("set_") else "logger",
                            "sync_implicit",
                            context,
                            argument,
                            "likely",
                        )
        if (
            self._is_metric(func, name or last)
            and context.when in ("step", "branch")
            and any(self.tensors.kind(a) == "gpu" for a in node.args)
            and (self._unlearned(node) or self._only_shown(node))
        ):
            self._add(self._named_by(func), "metric", "metric_step", context, None, "certain")
        self._follow(node, context)

    def _holds_tensors(self, node):
        """Returns whether a list is made of numbers that are tensors on the device."""
        elements = [node.elt] if isinstance(node, ast.ListComp) else node.elts
        return any(self.tensors.kind(one) == "gpu" for one in elements)

    def _is_metric(self, func, name):
        """Returns whether a function is a metric, by its name or by the class of its object."""
        return bool(METRIC.search(name)) or any(v[0] == "made" and METRIC.search(v[1]) for v in self.values.of(func))

    def _named_by(self, func):
        """Returns the node that names a called function: `for name, metric in metrics.items()`
        calls several, so the loop names them."""
        for binding in (self.values.lookup(func) or ()) if isinstance(func, ast.Name) else ():
            if binding.kind == "iter" and isinstance(binding.node, ast.For):
                return binding.expr
        return func.up

    @staticmethod
    def _unlearned(node):
        """Returns whether the node is inside `with torch.no_grad()` in the step,
        where nothing learns."""
        for up in ancestors(node):
            if isinstance(up, (ast.With, ast.AsyncWith)) and any(
                "no_grad" in (dotted(getattr(i.context_expr, "func", i.context_expr)) or "") for i in up.items
            ):
                return True
            if isinstance(up, FUNCTIONS + LOOPS):
                return False
        return False

    @staticmethod
    def _lightning_log(node):
        return (dotted(node.func) or "") in ("self.log", "self.log_dict")

    def _read(self, node, last, receiver, context):
        kind = self.tensors.kind(receiver)
        inner = receiver
        # x.cpu().numpy() is one wait, at the innermost read.
        while isinstance(inner, ast.Attribute) or isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
            if isinstance(inner, ast.Call):
                if (
                    inner.func.attr in READS
                    and not inner.args
                    or inner.func.attr == "to"
                    and self.tensors.kind(inner) == "cpu"
                ):
                    return
                inner = inner.func.value
            else:
                inner = inner.value
        if kind in ("cpu", "host") or last == "numpy":
            return
        if kind is None:
            if last == "tolist" or tensor_guard(node):
                return
            certainty = "likely"
        else:
            certainty = "certain"
        self._add(node, last, "sync", context, receiver, certainty)

    def _follow(self, node, context):
        """Follows the call into functions of the project."""
        if context.depth >= DEEPEST:
            return
        entered = self._entered(node)
        for scope in entered:
            if isinstance(scope.node, ast.Lambda):
                continue
            inner = context
            if name_evaluates(scope) and is_evaluation(scope):
                inner = context.but("evaluation")
            seen = self.visited.get(scope)
            if seen is not None and SEVERITY[seen] >= SEVERITY[inner.when]:
                continue
            self.visited[scope] = inner.when
            self.loop.functions[scope] = inner.when
            many = len(entered) > 2
            deeper = Context(inner.when, inner.path + (node,), inner.interval, context.depth + 1, context.vague or many)
            self._block(scope.node.body, deeper)
        for argument in node.args[:1]:
            if getattr(node.func, "attr", "") == "step":
                for value in self.values.of(argument):
                    if value[0] == "fn" and not isinstance(value[1].node, ast.Lambda) and value[1] not in self.visited:
                        self.visited[value[1]] = context.when
                        self._block(
                            value[1].node.body,
                            Context(context.when, context.path + (node,), context.interval, context.depth + 1),
                        )

    def _entered(self, call):
        """Returns the functions that a call enters. If several classes have the method, only those
        of classes that the program makes."""
        scopes = list(dict.fromkeys(scope for scope, _ in self.values.callees.get(call, ())))
        if len(scopes) > 1:
            made = {v[1] for v in self.values.of(call.func) if v[0] == "bound" and v[2] in self.reach.classes}
            return [scope for scope in scopes if scope in made] or scopes
        return scopes

    def _add(self, node, what, kind, context, value, certainty):
        key = (node, kind == "sync_implicit")
        old = self.found.get(key)
        if old is not None and SEVERITY[old.when] >= SEVERITY[context.when]:
            return
        self.found[key] = Wait(
            node,
            what,
            kind,
            context.when,
            value,
            self.loop,
            context.path,
            "unknown" if context.vague else certainty,
            context.interval,
        )
