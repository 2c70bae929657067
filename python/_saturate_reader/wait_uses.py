# SPDX-License-Identifier: Apache-2.0
"""The purpose of a value that the host reads: a log, a decision, or nothing (a part of Waits)."""

import ast
import re

from .conditions import log_name, nested
from .scopes import LOOPS, ancestors, function_of, statement_of

LOGGERS = {
    "info",
    "debug",
    "warning",
    "error",
    "log",
    "print",
    "write",
    "add_scalar",
    "add_scalars",
    "set_postfix",
    "set_description",
    "set_postfix_str",
    "set_description_str",
    "update",
    "append",
    "add",
    "log_metrics",
    "log_scalar",
    "report_scalar",
    "track",
    "log_dict",
    "log_metric",
    "format",
    "extend",
    "add_loss",
    "record",
    "write_log",
    "progress_bar",
    "put",
    "insert",
    "add_value",
    "join",
    "report",
    "scalar",
    "logkv",
    "logkv_mean",
    "update_state",
}


# What a number given to these decides: the shape of a tensor, or how often something is done.
SHAPES = {
    "expand",
    "view",
    "repeat",
    "repeat_interleave",
    "arange",
    "zeros",
    "ones",
    "full",
    "empty",
    "new_zeros",
    "range",
    "narrow",
    "split",
    "chunk",
    "unfold",
    "pad",
    "interpolate",
    "islice",
}
SUMS = re.compile(
    r"Error|R2Score|CorrCoef|Mean|Sum|Variance"
)  # of torchmetrics: they check no labels, so they read nothing


class WaitUses:
    def _classify(self, wait):
        if wait.kind == "metric_step":
            wait.use = "log"
            return
        if wait.kind in ("sync_implicit", "sync_control"):
            wait.use = "control" if wait.what in ("if", "bool") else "log"
            return
        self.loop = wait.loop
        wait.use = self._use(wait.node, 0, set())
        in_metric = wait.what in ("cpu", "numpy", "tolist") and wait.use != "control" and wait.path
        if wait.use == "control":
            wait.kind = "sync_control"
        elif wait.use == "nobody":
            wait.kind = "sync_dead"
        elif in_metric:
            wait.kind = "metric_cpu"
        else:
            wait.kind = "sync_log"

    def _use(self, node, depth, seen):
        """Returns log, control, nobody or unknown: where a read value goes."""
        if depth > 4 or node in seen:
            return "unknown"
        seen.add(node)
        child, held = node, None  # held: its place in a tuple that goes on, "deep" further inside
        for up in ancestors(node):
            if isinstance(up, (ast.If, ast.While, ast.IfExp)) and child is up.test or isinstance(up, ast.Assert):
                return (
                    "control" if self._in_step(up) else "log"
                )  # the best model of an epoch: the step goes on as it is
            if isinstance(up, ast.Slice):
                return "control"
            if isinstance(up, ast.Attribute) and up.attr in ("shape", "dtype", "device", "ndim"):
                return "unknown"  # not the value
            if isinstance(up, ast.Call) and child is not up.func:
                last = getattr(up.func, "attr", getattr(up.func, "id", ""))
                if last in SHAPES:
                    return "control"
                if last == "append" and isinstance(up.func, ast.Attribute):
                    return self._list_use(up, depth, seen)
                if last in LOGGERS or last in ("isnan", "isfinite", "isinf"):
                    if last.startswith("is"):
                        child = up
                        continue
                    return "log"
                if last in (
                    "float",
                    "int",
                    "round",
                    "max",
                    "min",
                    "sum",
                    "abs",
                    "str",
                    "mean",
                    "sqrt",
                    "exp",
                    "log10",
                    "array",
                    "reshape",
                    "any",
                    "all",
                    "bool",
                ):
                    child = up
                    continue
                return "log" if log_name(last) else "unknown"
            if isinstance(up, ast.Tuple):
                held = up.elts.index(child) if held is None and child in up.elts else "deep"
            elif isinstance(up, (ast.List, ast.Dict)):
                held = "deep"
            if isinstance(up, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                return self._assigned(up, depth, seen, held)
            if isinstance(up, ast.Return):
                return self._returned(up, depth, seen, held)
            if isinstance(up, ast.Expr):
                return "nobody"
            if isinstance(up, ast.stmt):
                return "unknown"
            child = up
        return "unknown"

    def _in_step(self, node):
        """Returns whether code is part of the step, and not of what is around it."""
        scope = function_of(node)
        if scope is self.loop.scope:
            return not isinstance(self.loop.node, LOOPS) or any(up is self.loop.node for up in ancestors(node))
        return scope in self.loop.functions

    def _assigned(self, statement, depth, seen, held=None):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if isinstance(held, int):
            targets = [t.elts[held] if isinstance(t, ast.Tuple) and held < len(t.elts) else t for t in targets]
        uses = set()
        for target in targets:
            for one in ast.walk(target):
                if isinstance(one, ast.Name):
                    uses |= self._name_uses(one, statement, depth, seen)
                elif isinstance(one, (ast.Attribute, ast.Subscript)) and one is target:
                    uses.add("log")
        if "control" in uses:
            return "control"
        if uses and uses <= {"nobody"}:
            return "nobody"
        return "log" if "log" in uses or not uses else "unknown"

    def _name_uses(self, target, statement, depth, seen):
        scope = target.scope
        if target.id in scope.outer:
            return {"log"}
        uses = set()
        for load in scope.source.index.loads:
            if load.id != target.id or load.scope is not scope and not nested(load.scope, scope):
                continue
            inside = statement_of(load)
            if inside is statement:
                continue
            bindings = self.values.lookup(load) or ()
            if not any(b.node is statement for b in bindings):
                continue
            uses.add(self._use(load, depth + 1, seen))
        return uses or {"nobody"}

    def _only_shown(self, call):
        """psnr = metric(output, target): returns whether the result is only read on the host or
        logged, so that nothing learns from it."""
        statement = call.up
        if isinstance(statement, ast.Expr):  # self.train_acc(output, target): counted in the object
            return any(
                v[0] in ("made", "ext") and v[1].startswith("torchmetrics.") and not SUMS.search(v[1])
                for v in self.values.of(call.func)
            )
        if (
            not isinstance(statement, ast.Assign)
            or len(statement.targets) != 1
            or not isinstance(statement.targets[0], ast.Name)
        ):
            return False
        target = statement.targets[0]
        loads = [
            load
            for load in target.scope.source.index.loads
            if load.id == target.id
            and load.scope is target.scope
            and any(b.node is statement for b in self.values.lookup(load) or ())
        ]
        return bool(loads) and all(_shown(load) for load in loads)

    def _list_use(self, call, depth, seen):
        """values.append(x.item()): nobody reads the value if the list is only appended to."""
        base = call.func.value
        if not isinstance(base, ast.Name):
            return "log"
        scope = base.scope
        for load in scope.source.index.loads:
            if load.id == base.id and (load.scope is scope or nested(load.scope, scope)):
                up = load.up
                if not (isinstance(up, ast.Attribute) and up.attr == "append"):
                    return "log"
        found = scope.names.get(base.id, ())
        if not found or any(b.kind == "param" for b in found) or scope.parent is None:
            return "log"
        return "nobody"

    def _returned(self, statement, depth, seen, held=None):
        scope = function_of(statement)
        if scope is None or not scope.is_function:
            return "unknown"
        uses = set()
        for call, _ in self.values.callers.get(scope, ())[:8]:
            if held is None:
                uses.add(self._use(call, depth + 1, seen))
            elif (
                isinstance(held, int) and isinstance(call.up, ast.Assign) and isinstance(call.up.targets[0], ast.Tuple)
            ):
                uses.add(self._assigned(call.up, depth + 1, seen, held))
            else:
                uses.add("unknown")
        if "control" in uses:
            return "control"
        if uses == {"nobody"}:
            return "nobody"
        return "log" if "log" in uses or not uses else "unknown"


def _shown(node):
    """Returns whether a value is read on the host, formatted, or passed to a log."""
    up = node.up
    if isinstance(up, ast.Attribute) and up.attr in ("item", "detach", "cpu", "tolist"):
        return True
    if isinstance(up, (ast.keyword, ast.Dict)):
        up = up.up
    if isinstance(up, ast.FormattedValue):
        return True
    if isinstance(up, ast.Call) and up.func is not node:
        last = getattr(up.func, "attr", getattr(up.func, "id", ""))
        return last in LOGGERS or last in ("float", "int")
    return False
