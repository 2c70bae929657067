# SPDX-License-Identifier: Apache-2.0
"""Places that edits need: after the imports, around forward pass and loss, after the model, and the
uses of sums and lists of losses."""

import ast
import re

from .conditions import is_interval
from .scopes import FUNCTIONS, LOOPS, ancestors, dotted, statement_of

MODEL_NAME = re.compile(
    r"(^|[._])(model|net|network|module|backbone|generator|discriminator|encoder|decoder|[a-z0-9]*net[0-9gd]*|model_[a-z0-9]+)$",
    re.I,
)
LOGGED = re.compile(r"log|print|disp|report|verbose|freq|interval|every|show|summary|tensorboard|plot|vis|write", re.I)
COUNTED = re.compile(r"accum|eval|val|test|save|check|ckpt|snapshot|update|sync", re.I)
STATEMENTS = {
    ast.Expr: "expression",
    ast.Assign: "assign",
    ast.AnnAssign: "assign",
    ast.AugAssign: "augmented",
    ast.Return: "return",
    ast.If: "condition",
    ast.While: "condition",
}
DEEPEST = 4


class Edits:
    def __init__(self, project, values, loops, calls, tensors):
        self.project = project
        self.values = values
        self.loops = loops
        self.calls = calls
        self.tensors = tensors

    def add(self, facts, found, waits):
        """Adds the places to files (as Source.places), loops and waits."""
        for source in self.project.order:
            source.places = self.file(source)
        for loop, entry in zip(found, facts["loops"]):
            entry.update(self._loop(loop))
        for wait, entry in zip(waits, facts["waits"]):
            statement = statement_of(wait.node)
            entry["statement_kind"] = STATEMENTS.get(type(statement), "other")
            entry["into"] = self._into(wait, statement)
            entry["every"] = self._every(wait) if wait.when in ("step", "branch") else None

    # Files

    def file(self, source):
        """Returns the name of torch in a file, and the last of its leading imports."""
        if source.index is None:
            return {"torch": None, "after_imports": None}
        last = None
        for statement in source.tree.body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef) + LOOPS):
                break
            if isinstance(statement, ast.If) and not _only_imports(statement):
                break
            if isinstance(statement, (ast.Import, ast.ImportFrom)) or _only_imports(statement):
                last = statement
        name = None
        for text, bindings in source.index.top.names.items():
            for binding in bindings:
                if (
                    binding.kind == "import"
                    and binding.module == "torch"
                    and binding.attr is None
                    and binding.node.up is source.tree
                ):
                    name = text
        span = None
        if last is not None and self._alone(source, last):
            span = source.span(last)
        return {"torch": name, "after_imports": span}

    @staticmethod
    def _alone(source, statement):
        line = source.starts[statement.end_lineno - 1]
        end = source.starts[statement.end_lineno] if statement.end_lineno < len(source.starts) else len(source.data)
        rest = source.data[source.span(statement)[1] : end].strip()
        return line <= end and (not rest or rest.startswith(b"#"))

    # Loops

    def _loop(self, loop):
        out = {"compute": None, "compute_why": None, "loss": None, "optimizer": None, "forward": None, "model": None}
        out["optimizer"], out["model"] = self._model(loop)
        if loop.kind not in ("for", "while", "engine", "function", "closure"):
            return out
        backward = [call for call in loop.scope.calls if self.loops.is_backward(call) and self._inside(call, loop)]
        if len(backward) != 1:
            out["compute_why"] = (
                "backward() is called at %d places in the step" % len(backward)
                if backward
                else ("backward() is called in another function")
            )
            return out
        call = backward[0]
        loss = call.func.value if isinstance(call.func, ast.Attribute) else None
        if loss is None or call.func.attr != "backward":
            out["compute_why"] = "backward() is not called on the loss itself"
            return out
        out["loss"] = loss.src.text(loss)
        region = self._region(loop, statement_of(call), loss)
        if isinstance(region, str):
            out["compute_why"] = region
            return out
        first, last, forward = region
        source = loop.node.src
        out["compute"] = [source.span(first)[0], source.span(last)[1]]
        out["forward"] = source.place(forward)
        return out

    def _inside(self, node, loop):
        return any(up is loop.node for up in ancestors(node))

    def _region(self, loop, backward, loss):
        """Returns (first statement, last statement, forward call), or the reason
        why there is none."""
        block, end = block_of(backward)
        names = {dotted(n) for n in ast.walk(loss) if isinstance(n, (ast.Name, ast.Attribute))} - {None}
        last = None
        for index in range(end - 1, -1, -1):
            if names & self._bound(block[index]):
                last = index
                break
        if last is None:
            return "the loss is not made in the block that calls backward()"
        first = forward = None
        for index in range(last, -1, -1):
            call = self._forward_in(block[index])
            if call is not None:
                first, forward = index, call
        if first is None:
            return "the forward pass is not in the block that calls backward()"
        for statement in block[first : last + 1]:
            for node in ast.walk(statement):
                if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom, ast.FunctionDef)):
                    return "forward pass and loss are mixed with a return"
                if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in (
                    "backward",
                    "step",
                    "numpy",
                    "tolist",
                ):
                    return "forward pass and loss are mixed with %s()" % node.func.attr
        if self._goes_to_numpy(loop):
            return "outputs of the step go to NumPy, which has no bf16"
        return block[first], block[last], forward

    def _goes_to_numpy(self, loop):
        scopes = [scope for scope, when in loop.functions.items() if when != "evaluation"]
        for scope in [loop.scope] + scopes:
            for call in scope.calls:
                if scope is loop.scope and not self._inside(call, loop):
                    continue
                if getattr(call.func, "attr", "") != "numpy" or call.args:
                    continue
                chain = [
                    n.func.attr
                    for n in ast.walk(call.func)
                    if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
                ]
                if "float" not in chain and "double" not in chain:
                    return True
        return False

    @staticmethod
    def _bound(statement):
        out = set()
        for node in ast.walk(statement):
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
                out.add(dotted(node))
            elif isinstance(node, ast.AugAssign):
                out.add(dotted(node.target))
        return out - {None}

    def _forward_in(self, statement):
        """Returns the statement's first call that runs a module, directly or through functions of
        the project."""
        calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
        for call in sorted(calls, key=lambda c: (c.lineno, c.col_offset)):
            if self._runs_module(call, 0, set()):
                return call
        return None

    def _runs_module(self, call, depth, seen):
        name = dotted(call.func) or ""
        last = name.rsplit(".", 1)[-1] or getattr(call.func, "attr", "")
        if last in (
            "to",
            "cuda",
            "zero_grad",
            "train",
            "eval",
            "parameters",
            "step",
            "item",
            "cpu",
            "update",
            "size",
            "backward",
        ):
            return False
        values = self.values.of(call.func)
        if any(self.tensors.is_module(value) for value in values):
            return not any("Loss" in str(value[1]) for value in values)
        if not values and MODEL_NAME.search(name):
            return True
        if isinstance(call.func, ast.Attribute) and last in ("forward", "training_step", "compute_loss", "calc_loss"):
            if any(self.tensors.is_module(value) for value in self.values.of(call.func.value)):
                return True
        if depth >= DEEPEST:
            return False
        for scope, _ in self.values.callees.get(call, ()):
            if scope in seen or scope.name in ("__init__", "forward"):
                continue
            seen.add(scope)
            if any(self._runs_module(inner, depth + 1, seen) for inner in scope.calls):
                return True
        return False

    def _model(self, loop):
        """Finds the optimizer that the loop steps, and the last statement that binds or moves its model."""
        made = [
            node
            for node, entry in self.calls.by_node.items()
            if entry["kind"] == "optimizer" and isinstance(node, ast.Call) and node.args
        ]
        owner = loop.scope.owner
        near = [node for node in made if node.scope is loop.scope] or [
            node for node in made if owner is not None and node.scope.owner is owner
        ]
        for node in near or made:  # prefers those next to the loop
            entry = self.calls.by_node[node]
            owner = next(
                (
                    n.func.value
                    for n in ast.walk(node.args[0])
                    if isinstance(n, ast.Call) and getattr(n.func, "attr", "") == "parameters"
                ),
                None,
            )
            target = dotted(owner) if owner is not None else None
            if target is None:
                continue
            if not self._is_called(owner):
                return entry["id"], None
            block, end = block_of(statement_of(node))
            for index in range(end - 1, -1, -1):
                statement = block[index]
                if target in self._bound(statement) or self._moves(statement, target):
                    source = node.src
                    return entry["id"], dict(target=target, statement=source.span(statement), **source.place(statement))
            return entry["id"], None
        return None, None

    def _is_called(self, model):
        """Compiled is what model(x) runs: of a model that is only used by its methods, nothing is."""
        classes = {value[1] for value in self.values.of(model) if value[0] == "inst"}
        if not classes:
            return True  # of a library, or not followed
        return any(
            value[0] == "inst"
            and any(
                value[1] in self.values.lineage(one)[0] or one in self.values.lineage(value[1])[0] for one in classes
            )
            for source in self.project.order
            if source.index is not None
            for call in source.index.calls
            for value in self.values.of(call.func)
        )

    @staticmethod
    def _moves(statement, target):
        for node in ast.walk(statement):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("cuda", "to")
                and dotted(node.func.value) == target
            ):
                return True
        return False

    # Sums and lists of losses

    def _into(self, wait, statement):
        """`total += loss.item()`, `losses.append(loss.item())`: returns every use of the sum or
        list, or None if some cannot be seen."""
        target, holds = _collects(statement)
        if target is None:
            return None
        name, scope, source = target.id, target.scope, statement.src
        if (
            name in scope.outer
            or not scope.is_function
            and (source is not self.project.entry or scope.parent is not None or source.index.rewrites)
        ):
            return None
        number = "same" if holds == "list" and statement.value.args[0] is wait.node else _number(wait.value)
        block, position = block_of(wait.loop.node)
        before, behind = block[:position], block[position + 1 :]
        begins, ends = [], []
        for binding in scope.names.get(name, ()):
            start = binding.expr
            if (
                binding.path
                and isinstance(start, ast.Tuple)
                and len(binding.path) == 1
                and isinstance(binding.path[0], int)
            ):  # total, n = 0, 0
                start = start.elts[binding.path[0]]
            if binding.kind == "value" and _starts(start, holds):
                begins.append(binding.node)
            elif binding.node is statement:
                continue
            elif (
                isinstance(binding.node, ast.AugAssign)
                and holds == "sum"
                and number != "int"
                and binding.node in behind
            ):
                continue  # total /= steps
            elif binding.kind == "value" and not binding.path and binding.node in behind:
                ends.append(binding.node)  # losses = np.mean(losses): from here on the name means something else
            else:
                return None
        if len(ends) > 1 or ends and not any(begin in before for begin in begins):
            return None
        uses = []
        for node in source.index.loads:
            if node.id != name or node is target:
                continue
            if node.scope is not scope:
                if _sees(node.scope, scope):
                    return None
                continue
            if ends and node.lineno > ends[0].end_lineno:
                continue
            if holds == "list":
                up = node.up
                if isinstance(up, ast.Call) and getattr(up.func, "id", "") == "len":
                    continue
                if isinstance(up, (ast.Attribute, ast.Subscript)):
                    return None  # its values may be changed or read one by one
            uses.append(dict(when="step" if wait.path else self._when(node, wait.loop), **source.place(node)))
        return {"name": name, "holds": holds, "number": number, "uses": uses}

    def _every(self, wait):
        """`if step % every == 0:` around it, where every is 1; whether its name says that it is about a log."""
        for up in ancestors(wait.node):
            if up is wait.loop.node or isinstance(up, FUNCTIONS):
                return None
            if isinstance(up, ast.If) and is_interval(up.test):
                found = self.calls.interval(wait.node)
                return (
                    dict(found, is_log=bool(LOGGED.search(found["text"])) and not COUNTED.search(found["text"]))
                    if found
                    else None
                )
        return None

    def _when(self, node, loop):
        for up in ancestors(node):
            if up is loop.node:
                return "step"
            if isinstance(up, ast.If) and any(isinstance(n, ast.Mod) for n in ast.walk(up.test)):
                return "interval"
        return "epoch"


def _collects(statement):
    """Returns the name in `total += x` or `values.append(x)`, and whether it is a sum or a list."""
    if (
        isinstance(statement, ast.AugAssign)
        and isinstance(statement.op, ast.Add)
        and isinstance(statement.target, ast.Name)
    ):
        return statement.target, "sum"
    call = statement.value if isinstance(statement, ast.Expr) else None
    if (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "append"
        and isinstance(call.func.value, ast.Name)
        and len(call.args) == 1
        and not call.keywords
    ):
        return call.func.value, "list"
    return None, None


def _starts(start, holds):
    """Returns whether a sum or a list starts with this expression."""
    if holds == "list":
        return (
            isinstance(start, ast.List)
            and not start.elts
            or isinstance(start, ast.Call)
            and getattr(start.func, "id", "") == "list"
            and not start.args
        )
    return isinstance(start, ast.Constant) and isinstance(start.value, (int, float))


def block_of(statement):
    """Returns the list of statements that contains this one, and its index."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(statement.up, field, None)
        if isinstance(block, list) and any(other is statement for other in block):
            return block, next(index for index, other in enumerate(block) if other is statement)
    return [], 0


def _only_imports(statement):
    """Returns whether a block only imports: try: import a; except ImportError: a = None"""
    if not isinstance(statement, (ast.Try, ast.If)):
        return False
    inner = list(statement.body) + list(statement.orelse)
    return bool(inner) and all(isinstance(one, (ast.Import, ast.ImportFrom)) for one in inner)


def _sees(scope, outer):
    while scope is not None:
        if scope is outer:
            return True
        scope = scope.parent
    return False


def _number(value):
    """Returns int for a count of hits, float for anything else."""
    if isinstance(value, ast.Call) and getattr(value.func, "attr", "") == "sum" and not value.args:
        inner = value.func.value
        if (
            isinstance(inner, ast.Compare)
            or isinstance(inner, ast.Call)
            and getattr(inner.func, "attr", "") in ("eq", "ne", "gt", "lt", "ge", "le")
        ):
            return "int"
    return "float"
