# SPDX-License-Identifier: Apache-2.0
"""What a data set, its loader and its workers do that a change would break (a part of Traps)."""

import ast
import re
import sys

from .literals import argument_of, literal
from .scopes import LOOPS, ancestors, dotted, function_of

SEEDS = {"seed", "manual_seed", "manual_seed_all", "set_seed", "seed_everything"}
GRAPHS = re.compile(r"edge|graph|num_nodes|offset|cumsum|ragged|nested", re.I)
PADS = re.compile(r"^pad(_|$)|_pad(ded)?$|^collate_(pad|variable)", re.I)
ALLOCATES = {
    "zeros",
    "new_zeros",
    "full",
    "ones",
    "new_full",
    "empty",
    "LongTensor",
    "FloatTensor",
    "Tensor",
    "IntTensor",
}
SPAWNS = re.compile(rb"""["'](spawn|forkserver)["']""")


class LoaderTraps:
    def _loader(self, node, entry):
        source = node.src
        ids = [entry["id"]]
        for scope in self.datasets.classes(argument_of(node, "dataset", 0)):
            place = self.datasets.gpu_place(scope)
            if place:
                self._at(
                    "gpu_dataset",
                    place,
                    "the data set %s gives tensors on the GPU: workers and pinned memory would raise an error"
                    % scope.name,
                    ["num_workers", "pin_memory"],
                    ids,
                )
        dataset = entry.get("dataset") or {}
        if dataset.get("handle"):
            place = dataset["handle"]
            self._at(
                "handle_in_init",
                place,
                "%s is opened in __init__ and shared by all workers" % place["what"],
                ["num_workers"],
                ids,
            )
        for place in dataset.get("changed_by") or ():
            self._at(
                "dataset_changes",
                place,
                "%s changes the data set between epochs: workers that stay alive would keep the old one"
                % place["what"],
                ["persistent_workers"],
                ids,
            )
        if entry["in_epoch"]:
            self._add(
                "loader_each_epoch",
                source,
                node,
                "the loader is created anew in every epoch, so workers cannot stay alive",
                ["persistent_workers"],
                ids,
            )
        if entry.get("batch_sampler"):
            self._add(
                "batch_in_sampler",
                source,
                node,
                "the batch sampler sets the batch size, not the loader",
                ["batch_size"],
                ids,
            )
        sampler, size = argument_of(node, "sampler", 3), argument_of(node, "batch_size", 1)
        if isinstance(sampler, ast.Name):
            sampler = next((b.expr for b in self.values.lookup(sampler) or () if b.kind == "value"), None)
        if isinstance(sampler, ast.Call) and size is not None and not isinstance(size, ast.Constant):
            if any(ast.dump(a) == ast.dump(size) for a in list(sampler.args) + [k.value for k in sampler.keywords]):
                self._add(
                    "batch_in_sampler",
                    sampler.src,
                    sampler,
                    "the sampler builds its batches with the same batch size",
                    ["batch_size"],
                    ids,
                )
        if literal(argument_of(node, "batch_size", 1) or ast.Name("x")) == (True, None):
            self._add(
                "ready_batches",
                source,
                node,
                "the data set gives ready batches: the batch size is in the data",
                ["batch_size"],
                ids,
            )
            entry["dataset"] = dict(dataset, ready_batches=True) if dataset else entry.get("dataset")
        if entry.get("role") == "train" and literal(argument_of(node, "batch_size", 1) or ast.Name("x")) == (True, 1):
            self._add(
                "variable_shapes",
                source,
                node,
                "batches of one sample usually differ in shape from step to step",
                ["compile", "cudnn_benchmark"],
                ids,
            )
        for call in self._running("cycle"):
            if (
                call.args
                and self._gives(call.args[0], node)
                and any(v == ("ext", "itertools.cycle") for v in self.values.of(call.func))
            ):
                self._add(
                    "cycled",
                    call.src,
                    call,
                    "itertools.cycle() keeps all batches of the first round: pinned, they would all stay locked in memory",
                    ["pin_memory"],
                    ids,
                )
        if self.datasets.is_in_memory(argument_of(node, "dataset", 0)):
            self._add(
                "in_memory",
                source,
                node,
                "the data set is tensors in memory: workers would only copy them",
                ["num_workers"],
                ids,
            )
        started = self._started_once(node)
        if started is not None:
            self._add(
                "iterated_once",
                started.src,
                started,
                "its iterator is made once, so its workers stay alive until training ends",
                ["persistent_workers"],
                ids,
            )
        if entry["callee"].startswith(("torch_geometric.", "dgl.")):
            self._add(
                "variable_shapes",
                source,
                node,
                "graphs differ in size: shapes change from step to step",
                ["compile", "cudnn_benchmark"],
                ids,
            )
        self._worker_init(node, source, ids)
        self._collate(node, source, ids, entry)

    def _started_once(self, loader):
        """batches = iter(loader) before all loops, and next(batches) in the step: the call of iter()."""
        loops = [loop for loop in self.loops.found if loop.loader is loader]
        if not loops or any(
            isinstance(loop.node, (ast.For, ast.AsyncFor)) and loader in self.calls.loaders_of(loop.node.iter, 0)
            for loop in loops
        ):
            return None
        calls = [call for call in self._running("iter") if call.args and self._gives(call.args[0], loader)]
        once = not any(
            self.calls.in_epoch(call) or any(isinstance(up, LOOPS + (ast.Try,)) for up in ancestors(call))
            for call in calls
        )
        return calls[0] if calls and once else None

    def _running(self, name):
        """Calls of a plain name in code that this program runs."""
        return [
            call
            for source in self.project.order
            if source.index is not None
            for call in source.index.calls_named(name)
            if dotted(call.func) == name and self.reach.runs(function_of(call)) and not self.reach.off(call)
        ]

    def _gives(self, node, loader):
        return any(value[0] == "made" and value[2] is loader for value in self.values.of(node))

    def _worker_init(self, node, source, ids):
        function = argument_of(node, "worker_init_fn", 10)
        for value in self.values.of(function) if function is not None else ():
            if value[0] not in ("fn", "bound", "partial"):
                continue
            scope = value[1] if value[0] != "partial" else (value[1][1] if value[1][0] == "fn" else None)
            if scope is None:
                continue
            is_local = scope.parent is not None and scope.parent.is_function or isinstance(scope.node, ast.Lambda)
            if is_local and not self._forks():
                self._add(
                    "local_function",
                    source,
                    function,
                    "worker_init_fn is a local function: it cannot be sent to spawned workers",
                    ["num_workers"],
                    ids,
                )
            for call in scope.calls:
                last = getattr(call.func, "attr", getattr(call.func, "id", ""))
                if last in SEEDS and call.args and not self._varies(call.args[0], scope):
                    self._add(
                        "constant_seed",
                        scope.source,
                        call,
                        "each worker starts from the same seed in every epoch: workers that stay alive would draw "
                        "other random numbers from the second epoch on",
                        ["persistent_workers"],
                        ids,
                    )
                    break

    def _varies(self, node, scope):
        """Returns whether the expression depends on a seed that PyTorch changes in each epoch."""
        for one in ast.walk(node):
            if isinstance(one, ast.Call) and (dotted(one.func) or "").rsplit(".", 1)[-1] in (
                "initial_seed",
                "get_worker_info",
                "time",
                "randint",
                "get_state",
                "urandom",
            ):
                return True
            if (
                isinstance(one, ast.Attribute)
                and one.attr in ("seed", "epoch")
                and not any(v[0] == "cfg" for v in self.values.of(one))
                and "worker" in (dotted(one.value) or "")
            ):
                return True
            if isinstance(one, ast.Name):
                for binding in scope.names.get(one.id, ()):
                    if (
                        binding.kind == "value"
                        and binding.expr is not None
                        and binding.expr is not node
                        and self._varies(binding.expr, scope)
                    ):
                        return True
        return False

    def _collate(self, node, source, ids, entry):
        function = argument_of(node, "collate_fn", 6)
        for value in self.values.of(function) if function is not None else ():
            if value[0] not in ("fn", "bound", "inst"):
                continue
            scope = value[1] if value[0] != "inst" else self.values.find_method(value[1], "__call__")
            if scope is None:
                continue
            is_local = isinstance(scope.node, ast.Lambda) or scope.parent is not None and scope.parent.is_function
            if is_local and not self._forks():
                self._add(
                    "local_function",
                    source,
                    function,
                    "collate_fn is a local function: it cannot be sent to spawned workers",
                    ["num_workers"],
                    ids,
                )
            called = self._called(scope, 0)
            if any(PADS.search(name) for name in called) or "max" in called and called & ALLOCATES:
                self._add(
                    "variable_shapes",
                    scope.source,
                    scope.node,
                    "batches are padded to their longest sample: shapes change from step to step",
                    ["compile", "cudnn_benchmark"],
                    ids,
                )
            elif "cat" in called and GRAPHS.search(scope.source.text(scope.node)):
                self._add(
                    "variable_shapes",
                    scope.source,
                    scope.node,
                    "graphs differ in size: shapes change from step to step",
                    ["compile", "cudnn_benchmark"],
                    ids,
                )
            kinds = [self.values.of(r) for r in scope.returns]
            flat = [v for vs in kinds for v in vs]
            if flat and all(v[0] == "made" and v[1].startswith("numpy.") for v in flat):
                self._add(
                    "numpy_batches",
                    scope.source,
                    scope.node,
                    "batches are numpy arrays: pinned memory does nothing",
                    ["pin_memory"],
                    ids,
                )
                if entry.get("dataset"):
                    entry["dataset"]["numpy_batches"] = True
            if any(self.tensors.kind(r) == "gpu" for r in scope.returns):
                self._add(
                    "gpu_dataset",
                    scope.source,
                    scope.node,
                    "batches are put on the GPU while they are collated: workers and pinned memory would raise an error",
                    ["num_workers", "pin_memory"],
                    ids,
                )

    def _called(self, scope, depth):
        """Returns the last names of the functions that a function calls, including
        those called by them."""
        found = {getattr(c.func, "attr", getattr(c.func, "id", "")) for c in scope.calls}
        for call in scope.calls if depth < 2 else ():
            for inner, _ in self.values.callees.get(call, ()):
                found |= self._called(inner, depth + 1)
        return found

    def _forks(self):
        """Returns whether workers are forked. Then the script does not run again in them, and
        nothing has to be sent to them. Judged by this Python, which is the one that
        the command runs."""
        if self.is_forking is None:
            is_default = sys.platform not in ("win32", "darwin") and sys.version_info < (
                3,
                14,
            )  # multiprocessing's default, without importing it
            self.is_forking = is_default and not any(
                SPAWNS.search(source.data or b"") for source in self.project.sources.values()
            )
        return self.is_forking

    def _no_guard(self):
        """Finds training that starts when the file is imported: spawned workers
        would run it again."""
        entry = self.project.entry
        if entry is None or entry.index is None or self._forks():
            return
        for node in self.calls.by_node:
            if self.calls.by_node[node]["kind"] != "loader":
                continue
            if node.src is entry and node.scope is entry.index.top and not _guarded(node):
                self._add(
                    "no_main_guard",
                    entry,
                    node,
                    "no `if __name__ == \"__main__\"`: spawned workers would run the training again",
                    ["num_workers"],
                    [self.calls.by_node[node]["id"]],
                )
                return
        for loop in self.loops.found:
            for call in entry.index.top.calls:
                if not _guarded(call) and not self.reach.off(call) and self._leads_to(call, loop.scope):
                    self._add(
                        "no_main_guard",
                        entry,
                        call,
                        "no `if __name__ == \"__main__\"`: spawned workers would run the training again",
                        ["num_workers"],
                    )
                    return

    def _leads_to(self, call, scope):
        queue, seen = [call], set()
        while queue:
            for other, _ in self.values.callees.get(queue.pop(), ()):
                if other is scope:
                    return True
                if other not in seen and len(seen) < 400:
                    seen.add(other)
                    queue.extend(other.calls)
        return False


def _guarded(node):
    for up in ancestors(node):
        if isinstance(up, ast.If):
            for one in ast.walk(up.test):
                if isinstance(one, ast.Name) and one.id == "__name__":
                    return True
    return False
