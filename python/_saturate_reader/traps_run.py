# SPDX-License-Identifier: Apache-2.0
"""What the rest of a program does that a change would break: its optimizer, schedule, checkpoints
and logs (a part of Traps)."""

import ast
import re

from . import names
from .literals import argument_of, literal
from .scopes import ancestors, dotted, function_of


class RunTraps:
    def _optimizer(self, node, entry):
        if entry["fused_known"] is False and entry["callee"] and not entry["callee"].endswith(".*"):
            self._add(
                "no_fused_form",
                node.src,
                node,
                "%s has no fused form" % entry["callee"].rsplit(".", 1)[-1],
                ["fused_optimizer"],
                [entry["id"]],
            )
        if entry["groups"] == "per_parameter":
            self._add(
                "group_per_parameter",
                node.src,
                node,
                "each parameter is in its own group: a fused step would update one tensor at a time",
                ["fused_optimizer"],
                [entry["id"]],
            )
        elif entry["fused_known"] and self._is_picked(node, entry):
            self._add(
                "picked_class",
                node.src,
                node,
                "the class is picked by a setting, and not every class that it may name has a fused form; if it stays %s, add fused=True"
                % entry["callee"].rsplit(".", 1)[-1],
                ["fused_optimizer"],
                [entry["id"]],
            )

    def _is_picked(self, node, entry):
        """optimizers[name](...), getattr(torch.optim, name)(...): returns whether another name would make an optimizer without a fused form."""
        if entry["chosen"] not in ("getattr", "registry", "dict"):
            return False
        last = entry["callee"].rsplit(".", 1)[-1].lower()
        if any(
            isinstance(up, ast.If)
            and any(isinstance(n, ast.Constant) and str(n.value).lower() == last for n in ast.walk(up.test))
            for up in ancestors(node)
        ):
            return False  # only for this class
        picked = (
            [node.func] + [b.expr for b in self.values.lookup(node.func) or () if b.kind == "value"]
            if isinstance(node.func, ast.Name)
            else [node.func]
        )
        for one in picked:
            if isinstance(one, ast.Call):
                return not (dotted(one.func) == "getattr" and len(one.args) > 1 and literal(one.args[1])[0])
            if isinstance(one, ast.Subscript) and not literal(one.slice)[0]:
                made = [
                    v[1].rsplit(".", 1)[-1]
                    for box in self.values.of(one.value)
                    if box[0] == "box" and isinstance(box[1], ast.Dict)
                    for item in box[1].values
                    for v in self.values.of(item)
                    if v[0] == "ext"
                ]
                return any(name not in names.FUSED for name in made)
        return False

    def _criterion(self, node, entry):
        if entry["callee"].endswith(".BCELoss") or entry["callee"].endswith("functional.binary_cross_entropy"):
            self._add(
                "bce_loss",
                node.src,
                node,
                "BCELoss refuses half precision under autocast (BCEWithLogitsLoss does not)",
                ["precision"],
                [entry["id"]],
            )

    def _scheduler(self, node, entry):
        last = entry["callee"].rsplit(".", 1)[-1]
        ids = [entry["id"]]
        if last in names.SCHEDULERS_TOTAL or "warmup" in last:
            self._add(
                "total_steps",
                node.src,
                node,
                "%s is laid out over a number of steps, which changes with the batch size" % last,
                ["batch_size"],
                ids,
            )
        if last == "ReduceLROnPlateau":
            self._add(
                "plateau",
                node.src,
                node,
                "ReduceLROnPlateau counts evaluations: their interval changes the learning rate",
                ["eval_interval"],
                ids,
            )
        if entry.get("per") == "step":
            self._add(
                "step_schedule",
                node.src,
                node,
                "the schedule advances in every step: another batch size changes its course",
                ["batch_size"],
                ids,
            )

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
            self._add(
                "cpu_random",
                node.src,
                node,
                "random numbers are drawn on the CPU: drawing them on the device changes the random stream",
                ["copy"],
                [entry["id"]],
            )

    def _checkpoint(self, node, entry):
        self._add("writes", node.src, node, "a checkpoint is written here", [], [entry["id"]])

    def _resume(self, node, entry):
        scope = function_of(node)
        loads = any(getattr(c.func, "attr", "") == "load_state_dict" for c in scope.calls)
        if loads:
            self._add(
                "resumes",
                node.src,
                node,
                "a checkpoint may be loaded here: a trial must not start from the last one",
                [],
                [entry["id"]],
            )

    def _tracker(self, node, entry):
        self._add(
            "reports",
            node.src,
            node,
            "reports to %s" % names.TRACKERS.get(entry["callee"], entry["callee"]),
            [],
            [entry["id"]],
        )

    def _parallel(self, node, entry):
        if entry["callee"].endswith(".DataParallel"):
            self._add(
                "data_parallel",
                node.src,
                node,
                "DataParallel: names in checkpoints begin with \"module.\", and on one GPU it only costs time",
                [],
                [entry["id"]],
            )

    def _buckets(self):
        """Finds torchtext's iterators, which pad each batch to its longest text."""
        for source in self.project.order:
            for call in (
                source.index.calls_named("BucketIterator", "BPTTIterator", "splits") if source.index is not None else ()
            ):
                if (
                    self.reach.runs(function_of(call))
                    and not self.reach.off(call)
                    and any(
                        v[0] == "ext" and v[1].startswith("torchtext.") and "Iterator" in v[1]
                        for v in self.values.of(call.func)
                    )
                ):
                    self._add(
                        "variable_shapes",
                        source,
                        call,
                        "batches are padded to their longest sample: shapes change from step to step",
                        ["compile", "cudnn_benchmark"],
                    )

    def _early_stopping(self):
        for source in self.project.order:
            if source.index is None:
                continue
            stops = [name for name in source.index.named if re.search(r"early_?stop", name, re.I)]
            for call in source.index.calls_named(*stops):
                if dotted(call.func) and self.reach.runs(function_of(call)) and not self.reach.off(call):
                    self._add(
                        "early_stopping",
                        source,
                        call,
                        "training stops after a number of evaluations: their interval decides when",
                        ["eval_interval"],
                    )
                    return
            for loop in source.index.loops if source.index.breaks else ():
                for node in ast.walk(loop) if self.reach.runs(function_of(loop)) and not self.reach.off(loop) else ():
                    if isinstance(node, ast.If) and node.body and any(isinstance(s, ast.Break) for s in node.body):
                        text = ast.dump(node.test)
                        if re.search(r"early_?stop|patience|improve|no_improvement|bad_epochs|trigger", text, re.I):
                            self._add(
                                "early_stopping",
                                source,
                                node,
                                "training stops after a number of evaluations: their interval decides when",
                                ["eval_interval"],
                            )
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
                elif (
                    name.endswith("FileHandler")
                    or name.endswith("logging.basicConfig")
                    and any(k.arg == "filename" for k in call.keywords)
                ):
                    self._add("appends", source, call, "a log file is written", [])
