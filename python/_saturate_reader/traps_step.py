# SPDX-License-Identifier: Apache-2.0
"""What a training step does that 16 bits, or the GPU itself, would not serve (a part of Traps)."""

import ast
import re

from .literals import literal
from .scopes import LOOPS, ancestors, function_of

SAME_TYPE = (
    "scatter_",
    "scatter_add_",
    "scatter_reduce_",
    "index_add_",
    "index_copy_",
    "masked_scatter_",
)  # refuse a source of another type
PICKS_DEVICE = (
    "lightning",
    "pytorch_lightning",
    "accelerate",
    "transformers",
    "ignite",
    "fastai",
    "catalyst",
    "composer",
    "deepspeed",
)
NAMES_DEVICE = re.compile(rb"cuda|device|gpu|\.to\(|mps|xpu", re.I)
FOR_GPUS = ["pin_memory", "fused_optimizer", "precision", "tf32", "cudnn_benchmark"]


class StepTraps:
    def _logarithms(self, loop):
        """log(1 - p): at 16 bits a p of 0.999 is 1."""
        for call in self._calls_of_step(loop):
            last = getattr(call.func, "attr", getattr(call.func, "id", ""))
            given = call.args[0] if call.args else getattr(call.func, "value", None)
            if last in ("log", "log2", "log10") and _from_one(given) and self.tensors.kind(given) != "host":
                self._add(
                    "fragile_loss",
                    call.src,
                    call,
                    "log(1 - p) at 16 bits: a p near 1 is rounded to 1, and the loss becomes infinite",
                    ["precision"],
                )
                return

    def _distributions(self, loop):
        """distribution.log_prob(x): ratios and likelihoods are differences of what comes out."""
        for call in self._calls_of_step(loop):
            if getattr(call.func, "attr", "") == "log_prob":
                self._add(
                    "fragile_loss",
                    call.src,
                    call,
                    "the loss is made of log-probabilities, whose small differences 16 bits cannot hold",
                    ["precision"],
                )
                return

    def _same_types(self, loop):
        """mask.scatter_(1, index, values): the buffer has 32 bits, and what autocast computed has 16."""
        for call in self._calls_of_step(loop):
            last = getattr(call.func, "attr", "")
            if (
                last in SAME_TYPE
                and call.args
                and not literal(call.args[-1])[0]
                and not any(
                    isinstance(n, ast.Call)
                    and getattr(n.func, "attr", "") in ("to", "type_as", "type", "float", "long", "int")
                    for n in ast.walk(call.args[-1])
                )
            ):
                self._add(
                    "same_type",
                    call.src,
                    call,
                    "%s() refuses values of another type than its tensor, and under autocast some values have 16 bits"
                    % last,
                    ["precision"],
                )
                return

    def _on_cpu(self, loop):
        """The settings send every batch to the CPU, or nothing is ever sent anywhere."""
        if self._names_no_device():
            self._add(
                "on_cpu",
                loop.scope.source,
                loop.node,
                "nothing here moves the model or its batches to a GPU: the program trains on the CPU",
                FOR_GPUS,
            )
            return
        places = []
        for call in self._calls_of_step(loop):
            last = getattr(call.func, "attr", "")
            if last == "cuda":
                return
            if (
                last == "to"
                and call.args
                and self.tensors.kind(call.func.value) in ("cpu", None)
                and not literal(call.args[0])[0]
            ):
                where = self._device(call.args[0], 0)
                if where == "gpu" or where is None and self._is_batch(call.func.value):
                    return
                places += [call] if where == "cpu" and self._is_batch(call.func.value) else []
        if places:
            made = self._made_device(places[0].args[0], 0) or places[0]
            self._add(
                "on_cpu", made.src, made, "the program trains on the CPU, so nothing here would use a GPU", FOR_GPUS
            )

    def _names_no_device(self):
        """Returns whether no source has a word for a device, and no framework picks one."""
        return not self.project.is_partly_read and not any(
            NAMES_DEVICE.search(source.data) or source.index is None or self._frameworks_of(source)
            for source in self.project.order
        )

    def _on_apple(self, loop):
        """The settings send the batches to mps; or the program asks for mps, never names CUDA, and no framework picks the device."""
        for call in self._calls_of_step(loop):
            known, text = (
                self.values.constant(call.args[0])
                if getattr(call.func, "attr", "") == "to" and call.args
                else (False, None)
            )
            if known and isinstance(text, str) and text.startswith("mps"):
                self._add(
                    "on_apple",
                    call.src,
                    call,
                    "the program trains on Apple's GPU (mps), and these settings are for CUDA",
                    FOR_GPUS,
                )
                return
        if any(
            b"cuda" in source.data or source.index is not None and self._frameworks_of(source)
            for source in self.project.order
        ):
            return
        for source in self.project.order:
            for node in ast.walk(source.tree) if b"mps" in source.data and source.index is not None else ():
                if getattr(node, "attr", getattr(node, "value", "")) == "mps":
                    self._add(
                        "on_apple",
                        source,
                        node,
                        "the program trains on Apple's GPU (mps) or on the CPU, and these settings are for CUDA",
                        FOR_GPUS,
                    )
                    return

    @staticmethod
    def _frameworks_of(source):
        return any(module.split(".")[0] in PICKS_DEVICE for module, _, level, _ in source.index.imports if not level)

    def _device(self, node, depth):
        """Returns where the callers that run send it, if the node is a parameter; else as the settings say."""
        bindings = self.values.lookup(node) or () if isinstance(node, ast.Name) else ()
        if depth > 4 or len(bindings) != 1 or bindings[0].kind != "param":
            return self.tensors.device(node)
        binding = bindings[0]
        found = {
            self._device(given, depth + 1) if given is not None else None
            for call, shift in self.values.callers.get(binding.scope, ())
            if self.reach.runs(function_of(call)) and not self.reach.off(call)
            for given in [self.values.argument(call, shift, binding.name, binding.path[0])]
        }
        return found.pop() if len(found) == 1 else None

    def _made_device(self, node, depth):
        """Returns the call of torch.device() that makes a device, in a function or in the callers that run, or None."""
        made = [v[2] for v in self.values.of(node) if v[0] == "made" and v[1] == "torch.device"]
        if len(made) == 1 or depth > 4 or not isinstance(node, ast.Name):
            return made[0] if len(made) == 1 else None
        for binding in self.values.lookup(node) or ():
            for call, shift in self.values.callers.get(binding.scope, ()) if binding.kind == "param" else ():
                given = (
                    self.values.argument(call, shift, binding.name, binding.path[0])
                    if self.reach.runs(function_of(call))
                    else None
                )
                if given is not None:
                    return self._made_device(given, depth + 1)
        return None

    def _limited_workers(self, loop):
        """`if num_workers > 1: raise`: the data set is not made for it."""
        for source in self.project.order:
            for node in source.index.compares if source.index is not None else ():
                up = node.up
                if (
                    isinstance(up, ast.If)
                    and up.test is node
                    and isinstance(up.body[-1], ast.Raise)
                    and len(node.ops) == 1
                    and isinstance(node.ops[0], (ast.Gt, ast.GtE, ast.NotEq))
                    and literal(node.comparators[0])[0]
                    and getattr(node.left, "attr", getattr(node.left, "id", ""))
                    in ("num_workers", "workers", "n_workers")
                    and self.reach.runs(function_of(node))
                ):
                    self._add(
                        "limited_workers", source, up, "the program refuses more workers than that", ["num_workers"]
                    )

    def _calls_of_step(self, loop):
        """Every call in the step, and in the functions that it enters for training."""
        for scope in [loop.scope] + [scope for scope, when in loop.functions.items() if when != "evaluation"]:
            for call in scope.calls:
                if (
                    self.reach.off(call)
                    or scope is loop.scope
                    and isinstance(loop.node, LOOPS)
                    and not any(up is loop.node for up in ancestors(call))
                ):
                    continue
                yield call


def _from_one(node):
    """Returns whether an expression is `1 - p` at the precision of the step."""
    if (
        not isinstance(node, ast.BinOp)
        or not isinstance(node.op, ast.Sub)
        or literal(node.left) not in ((True, 1), (True, 1.0))
        or literal(node.right)[0]
    ):
        return False
    return not any(
        isinstance(n, ast.Call) and getattr(n.func, "attr", "") in ("float", "double") for n in ast.walk(node.right)
    )
