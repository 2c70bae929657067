# SPDX-License-Identifier: Apache-2.0
"""Finds what would make a change wrong or useless in this project, each with its place and the
changes it rules out."""

import ast
import re

from .conditions import tensor_guard
from .literals import argument_of, literal
from .scopes import FUNCTIONS, LOOPS, ancestors, dotted, function_of
from .traps_loader import LoaderTraps
from .traps_run import RunTraps
from .traps_step import StepTraps

LABELS = re.compile(r"label|target|\by\b|truth|\bgts?\b|annot|class", re.I)


def _elements(loop):
    """Returns x and y of `for x, y in loader`, also after enumerate; empty if the
    batch has one name."""
    target = getattr(loop, "target", None)
    if isinstance(target, ast.Tuple) and isinstance(loop.iter, ast.Call) and dotted(loop.iter.func) == "enumerate":
        target = target.elts[-1]
    return {e.id for e in target.elts if isinstance(e, ast.Name)} if isinstance(target, ast.Tuple) else set()


class Traps(StepTraps, LoaderTraps, RunTraps):
    def __init__(self, project, values, reach, loops, calls, datasets, waits, tensors):
        self.project = project
        self.values = values
        self.reach = reach
        self.loops = loops
        self.calls = calls
        self.datasets = datasets
        self.waits = waits
        self.tensors = tensors
        self.found = []
        self.is_forking = None  # None: not known yet

    def _add(self, kind, source, node, why, forbids, ids=()):
        self._at(kind, source.place(node), why, forbids, ids)

    def _at(self, kind, place, why, forbids, ids=()):
        entry = {
            "kind": kind,
            "file": place["file"],
            "line": place["line"],
            "bytes": place["bytes"],
            "why": why,
            "forbids": list(forbids),
            "calls": list(ids),
        }
        for other in self.found:
            if (other["kind"], other["file"], other["bytes"]) == (kind, entry["file"], entry["bytes"]):
                other["calls"] = sorted(set(other["calls"]) | set(entry["calls"]))
                return
        self.found.append(entry)

    def find(self):
        for loop in self.loops.found:
            self._swallows(loop)
            self._rates(loop)
            self._batches(loop)
            self._logarithms(loop)
            self._distributions(loop)
            self._same_types(loop)
            self._on_cpu(loop)
            self._on_apple(loop)
            self._limited_workers(loop)
        for node, entry in self.calls.by_node.items():
            handler = getattr(self, "_" + entry["kind"], None)
            if handler:
                handler(node, entry)
        self._no_guard()
        self._buckets()
        self._early_stopping()
        self._logs()
        for wait in self.waits:
            if wait.use == "control" and wait.when in ("step", "branch") and wait.kind != "sync_implicit":
                self._add(
                    "control_read", wait.node.src, wait.node, "the value read here decides what happens next", ["reads"]
                )
        self.found.sort(key=lambda e: (e["file"], e["line"]))
        return self.found

    # The step

    def _swallows(self, loop):
        loop.swallows = None
        for call in self._step_calls(loop):
            child = call
            inside = True
            for up in ancestors(call):
                if up is loop.node:
                    inside = False
                if isinstance(up, ast.Try) and getattr(child, "block", None) is up.body:
                    handler = _goes_on(up)
                    if handler is not None:
                        source = up.src
                        if inside and loop.kind in ("for", "while"):
                            loop.swallows = loop.swallows or source.place(up)
                            self._add(
                                "swallowed_step",
                                source,
                                handler,
                                "an error in the step is caught and training continues: a change that breaks every "
                                "step would look fast",
                                [],
                            )
                        elif not inside:
                            self._add(
                                "swallowed_run",
                                source,
                                handler,
                                "an error in training is caught and the program exits with status 0",
                                [],
                            )
                if isinstance(up, FUNCTIONS):
                    break
                child = up
        self._swallowed_above(loop)

    def _swallowed_above(self, loop):
        """Finds a `try` around a call that leads to the loop, in the functions above it."""
        queue, seen = [loop.scope], set()
        while queue and len(seen) < 50:
            scope = queue.pop()
            if scope in seen:
                continue
            seen.add(scope)
            for call, _ in self.values.callers.get(scope, ()):
                queue.append(function_of(call))
                child = call
                for up in ancestors(call):
                    handler = (
                        _goes_on(up) if isinstance(up, ast.Try) and getattr(child, "block", None) is up.body else None
                    )
                    if handler is not None and not self.reach.off(call):
                        self._add(
                            "swallowed_run",
                            up.src,
                            handler,
                            "an error in training is caught and the program exits with status 0",
                            [],
                        )
                    if isinstance(up, FUNCTIONS):
                        break
                    child = up

    def _step_calls(self, loop):
        for call in loop.node.scope.calls if not isinstance(loop.node, FUNCTIONS) else loop.scope.calls:
            if isinstance(loop.node, LOOPS) and not any(up is loop.node for up in ancestors(call)):
                continue
            if self.loops.of_call(call):
                yield call

    def _rates(self, loop):
        """Finds param_group['lr'] = ... inside the step: a schedule by steps."""
        scopes = [loop.scope] + list(loop.functions)
        for scope in scopes:
            for target, _, statement in scope.source.index.stores:
                if (
                    target.scope is not scope
                    or not isinstance(target, ast.Subscript)
                    or literal(target.slice) != (True, "lr")
                    or not (self._is_group(target.value))
                ):
                    continue
                if (
                    scope is loop.scope
                    and isinstance(loop.node, LOOPS)
                    and not any(up is loop.node for up in ancestors(target))
                ):
                    continue
                self._add(
                    "step_schedule",
                    scope.source,
                    statement,
                    "the learning rate is set in every step: another batch size changes its course",
                    ["batch_size"],
                )

    def _is_group(self, node):
        """Returns whether this is one of an optimizer's param_groups; a dict of numbers for a log may have a key "lr" too."""
        bound = self.values.lookup(node) or () if isinstance(node, ast.Name) else ()
        from_groups = [node] + [b.expr for b in bound if b.expr is not None]
        return any(
            getattr(one, "attr", "") == "param_groups" for expr in from_groups for one in ast.walk(expr)
        ) or "group" in getattr(node, "id", "")

    def _batches(self, loop):
        """Examines what the step does with a batch before it learns from it."""
        entry = self.calls.by_node.get(loop.loader)
        ids = [entry["id"]] if entry else []
        one = loop.loader is not None and self.values.constant(
            argument_of(loop.loader, "batch_size", 1) or ast.Constant(1)
        ) == (True, 1)
        elements = _elements(loop.node) if one else set()
        for node in ast.walk(loop.node) if elements else ():
            if (
                isinstance(node, ast.Subscript)
                and isinstance(node.value, ast.Name)
                and node.value.id in elements
                and literal(node.slice) == (True, 0)
            ):
                self._add(
                    "ready_batches",
                    loop.scope.source,
                    node,
                    "the loader's batch of one is a ready batch (its first dimension is dropped here): the batch "
                    "size is in the data",
                    ["batch_size"],
                    ids,
                )
        for scope in [loop.scope] + list(loop.functions):
            drawn = any(
                (dotted(c.func) or "").startswith(("random.", "np.random.", "numpy.random.")) for c in scope.calls
            )
            for call in scope.calls:
                if (
                    scope is loop.scope
                    and isinstance(loop.node, LOOPS)
                    and not any(up is loop.node for up in ancestors(call))
                ):
                    continue
                last = (dotted(call.func) or getattr(call.func, "attr", "")).rsplit(".", 1)[-1]
                if (
                    last in ("from_numpy", "as_tensor", "tensor", "FloatTensor", "LongTensor")
                    and call.args
                    and self._is_batch(call.args[0])
                    and not (tensor_guard(call) or self._copies_batch(loop))
                ):
                    self._add(
                        "numpy_batches",
                        call.src,
                        call,
                        "the step turns its batches into tensors: they arrive as numpy arrays or lists, and pinned "
                        "memory does nothing for them",
                        ["pin_memory"],
                        ids,
                    )
                elif (
                    last == "squeeze"
                    and one
                    and self._is_batch(call.func.value)
                    and [literal(a) for a in call.args] == [(True, 0)]
                ):
                    self._add(
                        "ready_batches",
                        call.src,
                        call,
                        "the loader's batch of one is a ready batch (its first dimension is dropped here): the batch size "
                        "is in the data",
                        ["batch_size"],
                        ids,
                    )
                elif (
                    last in ("interpolate", "upsample", "resize")
                    and drawn
                    and call.args
                    and self._is_batch(call.args[0])
                ):
                    self._add(
                        "variable_shapes",
                        call.src,
                        call,
                        "batches are resized to a random size: shapes change from step to step",
                        ["compile", "cudnn_benchmark"],
                        ids,
                    )

    def _copies_batch(self, loop):
        """Returns whether the step moves a part of the batch as it came, other than the labels: that part is a tensor."""
        return any(
            getattr(call.func, "attr", "") in ("to", "cuda")
            and not isinstance(call.func.value, ast.Call)
            and self._is_batch(call.func.value)
            and not LABELS.search(call.src.text(call.func.value))
            for call in self._calls_of_step(loop)
        )

    def _is_batch(self, node):
        return any(v[0] == "batch" for v in self.values.of(node))


def _goes_on(node):
    """Returns the handler of a try that catches nearly everything and does not
    raise again, or None."""
    for handler in node.handlers:
        caught = handler.type
        broad = caught is None or (dotted(caught) or "").rsplit(".", 1)[-1] in (
            "Exception",
            "BaseException",
            "RuntimeError",
            "ValueError",
        )
        if isinstance(caught, ast.Tuple):
            broad = any((dotted(c) or "") in ("Exception", "RuntimeError", "BaseException") for c in caught.elts)
        if broad and not any(
            isinstance(n, ast.Raise)
            or isinstance(n, ast.Call)
            and (dotted(n.func) or "") in ("sys.exit", "exit", "quit", "os._exit")
            for s in handler.body
            for n in ast.walk(s)
        ):
            return handler
    return None
