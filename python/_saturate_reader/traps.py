# SPDX-License-Identifier: Apache-2.0
"""Finds what would make a change wrong or useless in this project, each with its place and the
changes it rules out."""
import ast
import re
import sys

from . import names
from .conditions import tensor_guard
from .scopes import FUNCTIONS, LOOPS, ancestors, dotted, function_of
from .literals import argument_of, literal
from .traps_step import StepTraps

SEEDS = {"seed", "manual_seed", "manual_seed_all", "set_seed", "seed_everything"}

GRAPHS = re.compile(r"edge|graph|num_nodes|offset|cumsum|ragged|nested", re.I)
PADS = re.compile(r"^pad(_|$)|_pad(ded)?$|^collate_(pad|variable)", re.I)
ALLOCATES = {"zeros", "new_zeros", "full", "ones", "new_full", "empty", "LongTensor", "FloatTensor", "Tensor", "IntTensor"}
LABELS = re.compile(r"label|target|\by\b|truth|\bgts?\b|annot|class", re.I)
SPAWNS = re.compile(rb"""["'](spawn|forkserver)["']""")


def _elements(loop):
    """Returns x and y of `for x, y in loader`, also after enumerate; empty if the
    batch has one name."""
    target = getattr(loop, "target", None)
    if isinstance(target, ast.Tuple) and isinstance(loop.iter, ast.Call) and dotted(loop.iter.func) == "enumerate":
        target = target.elts[-1]
    return {e.id for e in target.elts if isinstance(e, ast.Name)} if isinstance(target, ast.Tuple) else set()


class Traps(StepTraps):
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
        entry = {"kind": kind, "file": place["file"], "line": place["line"], "bytes": place["bytes"], "why": why, "forbids": list(forbids), "calls": list(ids)}
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
                self._add("control_read", wait.node.src, wait.node, "the value read here decides what happens next", ["reads"])
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
                            self._add("swallowed_step", source, handler, "an error in the step is caught and training continues: a change that breaks every "
                                      "step would look fast", [])
                        elif not inside:
                            self._add("swallowed_run", source, handler, "an error in training is caught and the program exits with status 0", [])
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
                    handler = _goes_on(up) if isinstance(up, ast.Try) and getattr(child, "block", None) is up.body else None
                    if handler is not None and not self.reach.off(call):
                        self._add("swallowed_run", up.src, handler, "an error in training is caught and the program exits with status 0", [])
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
                if target.scope is not scope or not isinstance(target, ast.Subscript) or literal(target.slice) != (True, "lr") or not (
                        self._is_group(target.value)):
                    continue
                if scope is loop.scope and isinstance(loop.node, LOOPS) and not any(up is loop.node for up in ancestors(target)):
                    continue
                self._add("step_schedule", scope.source, statement, "the learning rate is set in every step: another batch size changes its course", ["batch_size"])

    def _is_group(self, node):
        """Returns whether this is one of an optimizer's param_groups; a dict of numbers for a log may have a key "lr" too."""
        bound = self.values.lookup(node) or () if isinstance(node, ast.Name) else ()
        from_groups = [node] + [b.expr for b in bound if b.expr is not None]
        return any(getattr(one, "attr", "") == "param_groups" for expr in from_groups for one in ast.walk(expr)) or "group" in getattr(node, "id", "")

    def _batches(self, loop):
        """Examines what the step does with a batch before it learns from it."""
        entry = self.calls.by_node.get(loop.loader)
        ids = [entry["id"]] if entry else []
        one = loop.loader is not None and self.values.constant(argument_of(loop.loader, "batch_size", 1) or ast.Constant(1)) == (True, 1)
        elements = _elements(loop.node) if one else set()
        for node in ast.walk(loop.node) if elements else ():
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in elements and literal(node.slice) == (True, 0):
                self._add("ready_batches", loop.scope.source, node, "the loader's batch of one is a ready batch (its first dimension is dropped here): the batch "
                          "size is in the data", ["batch_size"], ids)
        for scope in [loop.scope] + list(loop.functions):
            drawn = any((dotted(c.func) or "").startswith(("random.", "np.random.", "numpy.random.")) for c in scope.calls)
            for call in scope.calls:
                if scope is loop.scope and isinstance(loop.node, LOOPS) and not any(up is loop.node for up in ancestors(call)):
                    continue
                last = (dotted(call.func) or getattr(call.func, "attr", "")).rsplit(".", 1)[-1]
                if last in ("from_numpy", "as_tensor", "tensor", "FloatTensor", "LongTensor") and call.args and self._is_batch(call.args[0]) and not (
                        tensor_guard(call) or self._copies_batch(loop)):
                    self._add("numpy_batches", call.src, call, "the step turns its batches into tensors: they arrive as numpy arrays or lists, and pinned "
                              "memory does nothing for them", ["pin_memory"], ids)
                elif last == "squeeze" and one and self._is_batch(call.func.value) and [literal(a) for a in call.args] == [(True, 0)]:
                    self._add("ready_batches", call.src, call, "the loader's batch of one is a ready batch (its first dimension is dropped here): the batch size "
                              "is in the data", ["batch_size"], ids)
                elif last in ("interpolate", "upsample", "resize") and drawn and call.args and self._is_batch(call.args[0]):
                    self._add("variable_shapes", call.src, call, "batches are resized to a random size: shapes change from step to step",
                              ["compile", "cudnn_benchmark"], ids)

    def _copies_batch(self, loop):
        """Returns whether the step moves a part of the batch as it came, other than the labels: that part is a tensor."""
        return any(getattr(call.func, "attr", "") in ("to", "cuda") and not isinstance(call.func.value, ast.Call) and self._is_batch(call.func.value)
                   and not LABELS.search(call.src.text(call.func.value)) for call in self._calls_of_step(loop))

    def _is_batch(self, node):
        return any(v[0] == "batch" for v in self.values.of(node))

    # Calls

    def _loader(self, node, entry):
        source = node.src
        ids = [entry["id"]]
        for scope in self.datasets.classes(argument_of(node, "dataset", 0)):
            place = self.datasets.gpu_place(scope)
            if place:
                self._at("gpu_dataset", place, "the data set %s gives tensors on the GPU: workers and pinned memory would raise an error" % scope.name, ["num_workers", "pin_memory"], ids)
        dataset = entry.get("dataset") or {}
        if dataset.get("handle"):
            place = dataset["handle"]
            self._at("handle_in_init", place, "%s is opened in __init__ and shared by all workers" % place["what"], ["num_workers"], ids)
        for place in dataset.get("changed_by") or ():
            self._at("dataset_changes", place, "%s changes the data set between epochs: workers that stay alive would keep the old one" % place["what"], ["persistent_workers"], ids)
        if entry["in_epoch"]:
            self._add("loader_each_epoch", source, node, "the loader is created anew in every epoch, so workers cannot stay alive", ["persistent_workers"], ids)
        if entry.get("batch_sampler"):
            self._add("batch_in_sampler", source, node, "the batch sampler sets the batch size, not the loader", ["batch_size"], ids)
        sampler, size = argument_of(node, "sampler", 3), argument_of(node, "batch_size", 1)
        if isinstance(sampler, ast.Name):
            sampler = next((b.expr for b in self.values.lookup(sampler) or () if b.kind == "value"), None)
        if isinstance(sampler, ast.Call) and size is not None and not isinstance(size, ast.Constant):
            if any(ast.dump(a) == ast.dump(size) for a in list(sampler.args) + [k.value for k in sampler.keywords]):
                self._add("batch_in_sampler", sampler.src, sampler, "the sampler builds its batches with the same batch size", ["batch_size"], ids)
        if literal(argument_of(node, "batch_size", 1) or ast.Name("x")) == (True, None):
            self._add("ready_batches", source, node, "the data set gives ready batches: the batch size is in the data", ["batch_size"], ids)
            entry["dataset"] = dict(dataset, ready_batches=True) if dataset else entry.get("dataset")
        if entry.get("role") == "train" and literal(argument_of(node, "batch_size", 1) or ast.Name("x")) == (True, 1):
            self._add("variable_shapes", source, node, "batches of one sample usually differ in shape from step to step", ["compile", "cudnn_benchmark"], ids)
        for call in self._running("cycle"):
            if call.args and self._gives(call.args[0], node) and any(v == ("ext", "itertools.cycle") for v in self.values.of(call.func)):
                self._add("cycled", call.src, call, "itertools.cycle() keeps all batches of the first round: pinned, they would all stay locked in memory", ["pin_memory"], ids)
        if self.datasets.is_in_memory(argument_of(node, "dataset", 0)):
            self._add("in_memory", source, node, "the data set is tensors in memory: workers would only copy them", ["num_workers"], ids)
        started = self._started_once(node)
        if started is not None:
            self._add("iterated_once", started.src, started, "its iterator is made once, so its workers stay alive until training ends", ["persistent_workers"], ids)
        if entry["callee"].startswith(("torch_geometric.", "dgl.")):
            self._add("variable_shapes", source, node, "graphs differ in size: shapes change from step to step", ["compile", "cudnn_benchmark"], ids)
        self._worker_init(node, source, ids)
        self._collate(node, source, ids, entry)

    def _started_once(self, loader):
        """batches = iter(loader) before all loops, and next(batches) in the step: the call of iter()."""
        loops = [loop for loop in self.loops.found if loop.loader is loader]
        if not loops or any(isinstance(loop.node, (ast.For, ast.AsyncFor)) and loader in self.calls.loaders_of(loop.node.iter, 0) for loop in loops):
            return None
        calls = [call for call in self._running("iter") if call.args and self._gives(call.args[0], loader)]
        once = not any(self.calls.in_epoch(call) or any(isinstance(up, LOOPS + (ast.Try,)) for up in ancestors(call)) for call in calls)
        return calls[0] if calls and once else None

    def _running(self, name):
        """Calls of a plain name in code that this program runs."""
        return [call for source in self.project.order if source.index is not None for call in source.index.calls_named(name)
                if dotted(call.func) == name and self.reach.runs(function_of(call)) and not self.reach.off(call)]

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
                self._add("local_function", source, function, "worker_init_fn is a local function: it cannot be sent to spawned workers", ["num_workers"], ids)
            for call in scope.calls:
                last = getattr(call.func, "attr", getattr(call.func, "id", ""))
                if last in SEEDS and call.args and not self._varies(call.args[0], scope):
                    self._add("constant_seed", scope.source, call, "each worker starts from the same seed in every epoch: workers that stay alive would draw "
                              "other random numbers from the second epoch on", ["persistent_workers"], ids)
                    break

    def _varies(self, node, scope):
        """Returns whether the expression depends on a seed that PyTorch changes in each epoch."""
        for one in ast.walk(node):
            if isinstance(one, ast.Call) and (dotted(one.func) or "").rsplit(".", 1)[-1] in ("initial_seed", "get_worker_info", "time", "randint", "get_state", "urandom"):
                return True
            if isinstance(one, ast.Attribute) and one.attr in ("seed", "epoch") and not any(v[0] == "cfg" for v in self.values.of(one)) and "worker" in (
                    dotted(one.value) or ""):
                return True
            if isinstance(one, ast.Name):
                for binding in scope.names.get(one.id, ()):
                    if binding.kind == "value" and binding.expr is not None and binding.expr is not node and self._varies(binding.expr, scope):
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
                self._add("local_function", source, function, "collate_fn is a local function: it cannot be sent to spawned workers", ["num_workers"], ids)
            called = self._called(scope, 0)
            if any(PADS.search(name) for name in called) or "max" in called and called & ALLOCATES:
                self._add("variable_shapes", scope.source, scope.node, "batches are padded to their longest sample: shapes change from step to step",
                          ["compile", "cudnn_benchmark"], ids)
            elif "cat" in called and GRAPHS.search(scope.source.text(scope.node)):
                self._add("variable_shapes", scope.source, scope.node, "graphs differ in size: shapes change from step to step",
                          ["compile", "cudnn_benchmark"], ids)
            kinds = [self.values.of(r) for r in scope.returns]
            flat = [v for vs in kinds for v in vs]
            if flat and all(v[0] == "made" and v[1].startswith("numpy.") for v in flat):
                self._add("numpy_batches", scope.source, scope.node, "batches are numpy arrays: pinned memory does nothing", ["pin_memory"], ids)
                if entry.get("dataset"):
                    entry["dataset"]["numpy_batches"] = True
            if any(self.tensors.kind(r) == "gpu" for r in scope.returns):
                self._add("gpu_dataset", scope.source, scope.node, "batches are put on the GPU while they are collated: workers and pinned memory would raise an error",
                          ["num_workers", "pin_memory"], ids)

    def _called(self, scope, depth):
        """Returns the last names of the functions that a function calls, including
        those called by them."""
        found = {getattr(c.func, "attr", getattr(c.func, "id", "")) for c in scope.calls}
        for call in scope.calls if depth < 2 else ():
            for inner, _ in self.values.callees.get(call, ()):
                found |= self._called(inner, depth + 1)
        return found

    def _optimizer(self, node, entry):
        if entry["fused_known"] is False and entry["callee"] and not entry["callee"].endswith(".*"):
            self._add("no_fused_form", node.src, node, "%s has no fused form" % entry["callee"].rsplit(".", 1)[-1], ["fused_optimizer"], [entry["id"]])
        if entry["groups"] == "per_parameter":
            self._add("group_per_parameter", node.src, node, "each parameter is in its own group: a fused step would update one tensor at a time",
                      ["fused_optimizer"], [entry["id"]])
        elif entry["fused_known"] and self._is_picked(node, entry):
            self._add("picked_class", node.src, node, "the class is picked by a setting, and not every class that it may name has a fused form; if it stays %s, add fused=True" %
                      entry["callee"].rsplit(".", 1)[-1], ["fused_optimizer"], [entry["id"]])

    def _is_picked(self, node, entry):
        """optimizers[name](...), getattr(torch.optim, name)(...): returns whether another name would make an optimizer without a fused form."""
        if entry["chosen"] not in ("getattr", "registry", "dict"):
            return False
        last = entry["callee"].rsplit(".", 1)[-1].lower()
        if any(isinstance(up, ast.If) and any(isinstance(n, ast.Constant) and str(n.value).lower() == last for n in ast.walk(up.test)) for up in ancestors(node)):
            return False  # only for this class
        picked = [node.func] + [b.expr for b in self.values.lookup(node.func) or () if b.kind == "value"] if isinstance(node.func, ast.Name) else [node.func]
        for one in picked:
            if isinstance(one, ast.Call):
                return not (dotted(one.func) == "getattr" and len(one.args) > 1 and literal(one.args[1])[0])
            if isinstance(one, ast.Subscript) and not literal(one.slice)[0]:
                made = [v[1].rsplit(".", 1)[-1] for box in self.values.of(one.value) if box[0] == "box" and isinstance(box[1], ast.Dict) for item in box[1].values
                        for v in self.values.of(item) if v[0] == "ext"]
                return any(name not in names.FUSED for name in made)
        return False

    def _criterion(self, node, entry):
        if entry["callee"].endswith(".BCELoss") or entry["callee"].endswith("functional.binary_cross_entropy"):
            self._add("bce_loss", node.src, node, "BCELoss refuses half precision under autocast (BCEWithLogitsLoss does not)", ["precision"], [entry["id"]])

    def _scheduler(self, node, entry):
        last = entry["callee"].rsplit(".", 1)[-1]
        ids = [entry["id"]]
        if last in names.SCHEDULERS_TOTAL or "warmup" in last:
            self._add("total_steps", node.src, node, "%s is laid out over a number of steps, which changes with the batch size" % last, ["batch_size"], ids)
        if last == "ReduceLROnPlateau":
            self._add("plateau", node.src, node, "ReduceLROnPlateau counts evaluations: their interval changes the learning rate", ["eval_interval"], ids)
        if entry.get("per") == "step":
            self._add("step_schedule", node.src, node, "the schedule advances in every step: another batch size changes its course", ["batch_size"], ids)

    def _copy(self, node, entry):
        if not entry["made_here"]:
            return
        root = node.func.value
        values = []
        for one in ast.walk(root):
            if isinstance(one, ast.Call):
                values += self.values.of(one.func)
            elif isinstance(one, ast.Name):
                values += [("ext", v[1]) for v in self.values.of(one) if v[0] == "made"]
        if any(v[0] == "ext" and v[1] in names.RNG for v in values):
            self._add("cpu_random", node.src, node, "random numbers are drawn on the CPU: drawing them on the device changes the random stream", ["copy"], [entry["id"]])

    def _checkpoint(self, node, entry):
        self._add("writes", node.src, node, "a checkpoint is written here", [], [entry["id"]])

    def _resume(self, node, entry):
        scope = function_of(node)
        loads = any(getattr(c.func, "attr", "") == "load_state_dict" for c in scope.calls)
        if loads:
            self._add("resumes", node.src, node, "a checkpoint may be loaded here: a trial must not start from the last one", [], [entry["id"]])

    def _tracker(self, node, entry):
        self._add("reports", node.src, node, "reports to %s" % names.TRACKERS.get(entry["callee"], entry["callee"]), [], [entry["id"]])

    def _parallel(self, node, entry):
        if entry["callee"].endswith(".DataParallel"):
            self._add("data_parallel", node.src, node, "DataParallel: names in checkpoints begin with \"module.\", and on one GPU it only costs time", [], [entry["id"]])

    # The program

    def _forks(self):
        """Returns whether workers are forked. Then the script does not run again in them, and
        nothing has to be sent to them. Judged by this Python, which is the one that
        the command runs."""
        if self.is_forking is None:
            is_default = sys.platform not in ("win32", "darwin") and sys.version_info < (3, 14)  # multiprocessing's default, without importing it
            self.is_forking = is_default and not any(SPAWNS.search(source.data or b"") for source in self.project.sources.values())
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
                self._add("no_main_guard", entry, node, "no `if __name__ == \"__main__\"`: spawned workers would run the training again", ["num_workers"],
                          [self.calls.by_node[node]["id"]])
                return
        for loop in self.loops.found:
            for call in entry.index.top.calls:
                if not _guarded(call) and not self.reach.off(call) and self._leads_to(call, loop.scope):
                    self._add("no_main_guard", entry, call, "no `if __name__ == \"__main__\"`: spawned workers would run the training again", ["num_workers"])
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

    def _buckets(self):
        """Finds torchtext's iterators, which pad each batch to its longest text."""
        for source in self.project.order:
            for call in source.index.calls_named("BucketIterator", "BPTTIterator", "splits") if source.index is not None else ():
                if self.reach.runs(function_of(call)) and not self.reach.off(call) and any(
                        v[0] == "ext" and v[1].startswith("torchtext.") and "Iterator" in v[1] for v in self.values.of(call.func)):
                    self._add("variable_shapes", source, call, "batches are padded to their longest sample: shapes change from step to step",
                              ["compile", "cudnn_benchmark"])

    def _early_stopping(self):
        for source in self.project.order:
            if source.index is None:
                continue
            stops = [name for name in source.index.named if re.search(r"early_?stop", name, re.I)]
            for call in source.index.calls_named(*stops):
                if dotted(call.func) and self.reach.runs(function_of(call)) and not self.reach.off(call):
                    self._add("early_stopping", source, call, "training stops after a number of evaluations: their interval decides when", ["eval_interval"])
                    return
            for loop in source.index.loops if source.index.breaks else ():
                for node in ast.walk(loop) if self.reach.runs(function_of(loop)) and not self.reach.off(loop) else ():
                    if isinstance(node, ast.If) and node.body and any(isinstance(s, ast.Break) for s in node.body):
                        text = ast.dump(node.test)
                        if re.search(r"early_?stop|patience|improve|no_improvement|bad_epochs|trigger", text, re.I):
                            self._add("early_stopping", source, node, "training stops after a number of evaluations: their interval decides when", ["eval_interval"])
                            return

    def _logs(self):
        for source in self.project.order:
            if source.index is None:
                continue
            writers = [name for name in source.index.named if name.endswith("FileHandler")]
            for call in source.index.calls_named("open", "basicConfig", *writers):
                name = dotted(call.func) or ""
                if not self.reach.runs(function_of(call)) or self.reach.off(call):
                    continue
                mode = argument_of(call, "mode", 1)
                if name in ("open", "io.open") and mode is not None and literal(mode)[1] in ("a", "a+", "at", "ab"):
                    self._add("appends", source, call, "something is appended to a file", [])
                elif name.endswith("FileHandler") or name.endswith("logging.basicConfig") and any(k.arg == "filename" for k in call.keywords):
                    self._add("appends", source, call, "a log file is written", [])


def _goes_on(node):
    """Returns the handler of a try that catches nearly everything and does not
    raise again, or None."""
    for handler in node.handlers:
        caught = handler.type
        broad = caught is None or (dotted(caught) or "").rsplit(".", 1)[-1] in ("Exception", "BaseException", "RuntimeError", "ValueError")
        if isinstance(caught, ast.Tuple):
            broad = any((dotted(c) or "") in ("Exception", "RuntimeError", "BaseException") for c in caught.elts)
        if broad and not any(isinstance(n, ast.Raise) or isinstance(n, ast.Call) and (dotted(n.func) or "") in ("sys.exit", "exit", "quit", "os._exit")
                             for s in handler.body for n in ast.walk(s)):
            return handler
    return None


def _guarded(node):
    for up in ancestors(node):
        if isinstance(up, ast.If):
            for one in ast.walk(up.test):
                if isinstance(one, ast.Name) and one.id == "__name__":
                    return True
    return False
