# SPDX-License-Identifier: Apache-2.0
"""Judges by its form how often a condition or block runs, and what a value is used for."""

import ast
import re

from . import names
from .scopes import FUNCTIONS, ancestors, dotted

READS = {"item", "tolist", "cpu", "numpy"}  # numpy() alone never waits: it raises for a tensor on the device
STEPS = {
    "i",
    "step",
    "idx",
    "batch_idx",
    "iteration",
    "it",
    "global_step",
    "iter",
    "batch_i",
    "batch",
    "n_iter",
    "itr",
    "batch_id",
    "iter_num",
    "steps",
    "count",
    "counter",
    "bi",
    "nb",
    "train_step",
    "current_iter",
    "total_steps",
}  # names that count steps
INTERVAL = re.compile(
    r"(freq|interval|every|_per_|period|should_|do_log|do_eval|do_save|log_step|print_step|_now$|is_log|time_to|eval_step|save_step|log_this)",
    re.I,
)
RANKS = re.compile(
    r"(rank|main_process|is_main|is_primary|is_chief|is_master|master_process|local_rank|is_local)", re.I
)


def nested(scope, outer):
    while scope is not None:
        if scope is outer:
            return True
        scope = scope.parent
    return False


def conditions(test):
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from conditions(value)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from conditions(test.operand)
    else:
        yield test


def is_interval(test):
    """Returns whether a test is not true in every step: step % 10 == 0, step == 1,
    should_log, ..."""
    for node in ast.walk(test):
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Mod)
            and not isinstance(node.left, (ast.Constant, ast.JoinedStr))
        ):
            return True
        if isinstance(node, (ast.Name, ast.Attribute)):
            text = node.id if isinstance(node, ast.Name) else node.attr
            if INTERVAL.search(text) and not isinstance(node.up, ast.Compare):
                return True
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.In)):
            text = (dotted(node.left) or "").rsplit(".", 1)[-1].lower()
            if text in STEPS or (
                isinstance(node.ops[0], ast.Eq)
                and isinstance(node.comparators[0], ast.BinOp)
                and has_len(node.comparators[0])
            ):
                return True
    return False


def first_steps(test):
    """`batch_idx < 20`: returns whether a test is true in the first few steps only."""
    return (
        isinstance(test, ast.Compare)
        and len(test.ops) == 1
        and isinstance(test.ops[0], (ast.Lt, ast.LtE))
        and (
            (dotted(test.left) or "").rsplit(".", 1)[-1].lower() in STEPS
            and isinstance(test.comparators[0], ast.Constant)
            and type(test.comparators[0].value) is int
            and test.comparators[0].value <= 100
        )
    )


def receives(loop):
    """`while viewer.conn: viewer.receive()`: returns whether a loop talks with another program, for as long as there is one."""
    return isinstance(loop, ast.While) and any(
        isinstance(n, ast.Call) and getattr(n.func, "attr", "") in ("receive", "recv", "recvfrom", "accept")
        for n in ast.walk(loop)
    )


def runs_once(node):
    """Returns whether a branch runs once: it sets the flag it tests
    (`if not done and epoch >= 50: done = True`), or tests for one epoch."""
    asked = {n.id for n in ast.walk(node.test) if isinstance(n, ast.Name)}
    for statement in node.body:
        for target in statement.targets if isinstance(statement, ast.Assign) else ():
            if isinstance(target, ast.Name) and target.id in asked and isinstance(statement.value, ast.Constant):
                return True
    test = node.test
    return (
        isinstance(test, ast.Compare)
        and len(test.ops) == 1
        and isinstance(test.ops[0], ast.Eq)
        and "epoch" in (dotted(test.left) or "").lower()
    )


def has_len(node):
    return any(isinstance(n, ast.Call) and dotted(n.func) == "len" for n in ast.walk(node))


def ends(body):
    last = body[-1] if body else None
    if isinstance(last, (ast.Raise, ast.Return, ast.Break)):
        return True
    if isinstance(last, ast.Continue):
        return True
    return (
        isinstance(last, ast.Expr)
        and isinstance(last.value, ast.Call)
        and (dotted(last.value.func) or "") in ("sys.exit", "exit", "quit", "os._exit")
    )


def is_rank(test):
    return any(
        RANKS.search(n.id if isinstance(n, ast.Name) else n.attr)
        for n in ast.walk(test)
        if isinstance(n, (ast.Name, ast.Attribute))
    )


def is_device(test):
    return any(
        (n.attr if isinstance(n, ast.Attribute) else n.id)
        in ("is_available", "device_count", "use_cuda", "use_gpu", "cuda", "gpu")
        for n in ast.walk(test)
        if isinstance(n, (ast.Name, ast.Attribute))
    )


def in_condition(node):
    child = node
    for up in ancestors(node):
        if isinstance(up, (ast.If, ast.While, ast.IfExp)):
            return child is up.test
        if isinstance(up, ast.Assert):
            return True
        if isinstance(up, ast.stmt):
            return False
        child = up
    return False


def reads(node):
    return any(
        isinstance(n, ast.Call) and getattr(n.func, "attr", getattr(n.func, "id", "")) in READS | {"float", "int"}
        for n in ast.walk(node)
    )


def tensor_guard(node):
    """Returns whether the node is under `if isinstance(v, torch.Tensor)`: the code expects other
    types too."""
    for up in ancestors(node):
        if isinstance(up, (ast.If, ast.IfExp)):
            for call in ast.walk(up.test):
                if isinstance(call, ast.Call) and dotted(call.func) in (
                    "isinstance",
                    "hasattr",
                    "torch.is_tensor",
                    "is_tensor",
                    "type",
                ):
                    return True
        if isinstance(up, FUNCTIONS):
            return False
    return False


def asks_tensor(test):
    """Returns whether a test is `isinstance(v, torch.Tensor)`: true whenever a tensor comes here."""
    if not isinstance(test, ast.Call):
        return False
    return (
        dotted(test.func) in ("torch.is_tensor", "is_tensor")
        or dotted(test.func) == "isinstance"
        and len(test.args) > 1
        and any(
            (dotted(one) or "").rsplit(".", 1)[-1] == "Tensor" for one in getattr(test.args[1], "elts", [test.args[1]])
        )
    )


def is_evaluation(scope):
    """Returns whether a function puts the model into evaluation mode or loops over data
    without gradients."""
    called = [getattr(c.func, "attr", getattr(c.func, "id", "")) for c in scope.calls]
    if "eval" in called:
        return True
    for decorator in getattr(scope.node, "decorator_list", ()):
        name = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator) or ""
        if "no_grad" in name or "inference_mode" in name:
            return bool(scope.loops)
    return "no_grad" in called and bool(scope.loops) or "inference_mode" in called or "set_grad_enabled" in called


def name_evaluates(scope):
    low = scope.name.lower()
    return any(word in low for word in names.EVALUATES)


def log_name(last):
    return bool(
        re.search(
            r"log|print|write|meter|record|report|track|update|add_|progress|plot|display|show|metric", last, re.I
        )
    )


def no_gradients(node):
    """Returns whether the node is inside `with torch.no_grad()`, where nothing learns."""
    for up in ancestors(node):
        if isinstance(up, (ast.With, ast.AsyncWith)):
            for item in up.items:
                name = dotted(getattr(item.context_expr, "func", item.context_expr)) or ""
                if "no_grad" in name or "inference_mode" in name:
                    return True
    return False
