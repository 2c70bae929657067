# SPDX-License-Identifier: Apache-2.0
"""What a call returns: a tensor, and on which device (a part of Tensors)."""

import ast

from . import names
from .literals import literal
from .scopes import dotted

HOST_METHODS = {
    "item",
    "tolist",
    "numpy",
    "size",
    "dim",
    "numel",
    "nelement",
    "stride",
    "element_size",
    "data_ptr",
    "ndimension",
    "get_device",
    "keys",
    "is_contiguous",
    "state_dict",
    "parameters",
    "named_parameters",
    "format",
    "strip",
    "split",
    "join",
    "lower",
    "upper",
    "time",
    "avg",
    "startswith",
    "endswith",
    "replace",
    "get_last_lr",
    "count_nonzero_py",
}
HOST_CALLS = {
    "len",
    "range",
    "int",
    "float",
    "bool",
    "str",
    "round",
    "isinstance",
    "hasattr",
    "repr",
    "type",
    "id",
    "print",
    "open",
    "format",
    "getattr_host",
    "callable",
    "ord",
    "chr",
}


class TensorCalls:
    def _call(self, node):
        func = node.func
        name = dotted(func) or ""
        last = name.rsplit(".", 1)[-1] if name else getattr(func, "attr", "")
        arguments = list(node.args) + [k.value for k in node.keywords]
        if isinstance(func, ast.Attribute):
            if last in ("cuda", "to") and any(self.is_module(v) for v in self.values.of(func.value)):
                return None  # the module itself, not a tensor
            if last == "cuda" and not name.startswith("torch."):
                return "gpu"
            if last == "cpu":
                return "cpu"
            if last == "to":
                return self._moved(node, func)
            if last in HOST_METHODS or last == "type" and not arguments:
                return "host"
            if last == "prepare":
                return self._most(self.kind(a) for a in arguments)
        if isinstance(func, ast.Name) and last in HOST_CALLS:
            return "host"
        if (
            name in ("sum", "max", "min", "abs", "next", "iter", "list", "tuple", "sorted", "zip", "dict", "reversed")
            and arguments
        ):
            if name == "next":
                return self._element(node.args[0], ()) if node.args else None
            return self._most(self.kind(a) for a in arguments)
        if last == "step" and node.args:  # loss = optimizer.step(closure)
            return self._most(
                self.kind(one) for value in self.values.of(node.args[0]) if value[0] == "fn" for one in value[1].returns
            )
        values = self.values.of(func)
        for value in values:
            if value[0] == "made" and value[1].endswith("namedtuple"):  # Losses = namedtuple(...); Losses(*losses)
                return self._most(self.kind(a) for a in arguments)
            if value[0] == "ext":
                return self._outside(value[1], node, arguments, func)
            if value[0] in ("inst", "made") and self.is_module(value):
                return "gpu"
        callees = self.values.callees.get(node, ())
        if callees:
            kinds = []
            for scope, _ in callees:
                if scope.name == "__init__":
                    continue
                for value in scope.returns[:8]:
                    kinds.append(self.kind(value))
            found = self._most(kinds)
            if found is not None:
                return found
            if isinstance(func, ast.Attribute):
                return None
        if isinstance(func, ast.Attribute):
            base = self.kind(func.value)
            if base in ("gpu", "cpu"):
                return base
        if any(self.kind(a) == "gpu" for a in arguments):
            # An unknown callable that gets device tensors: a model, a criterion, a metric.
            return "gpu" if not values else None
        if name in (
            "model",
            "net",
            "self.model",
            "self.net",
            "criterion",
            "self.criterion",
            "loss_fn",
            "self.loss_fn",
            "self",
        ):
            return "gpu"
        return None

    def _moved(self, node, func):
        inside = self.kind(func.value)
        target = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "device"), None)
        if target is None:
            return inside
        if (
            isinstance(target, ast.Attribute)
            and target.attr == "device"
            and not (isinstance(target.value, ast.Name) and target.value.id == "self")
        ):
            values = self.values.of(target)
            if not any(v[0] == "cfg" for v in values):  # x.to(other.device)
                return self.kind(target.value) if self.kind(target.value) in ("gpu", "cpu") else inside
        known = self.device(target)
        if known is not None:
            return known
        text = dotted(target) or ""
        if text.startswith("torch.") or "dtype" in text:
            return inside
        if isinstance(target, ast.Call) and (dotted(target.func) or "").endswith("device") and target.args:
            known, value = literal(target.args[0])
            if known and isinstance(value, str) and value.startswith("cpu"):
                return "cpu"
        return "gpu"

    def _outside(self, name, node, arguments, func):
        if name.startswith(
            (
                "numpy.",
                "math.",
                "time.",
                "os.",
                "random.",
                "json.",
                "sklearn.",
                "cv2.",
                "PIL.",
                "builtins.",
                "logging.",
                "datetime.",
                "scipy.",
                "re.",
                "sys.",
            )
        ):
            if name in ("builtins.sum", "builtins.max", "builtins.min"):
                return self._most(self.kind(a) for a in arguments)
            return "host"
        if "()" in name and isinstance(func, ast.Attribute):  # a method of an object from a library
            return self.kind(func.value)
        device = next((k.value for k in node.keywords if k.arg == "device"), None)
        if name in names.DRAWN_FROM and any(self.kind(a) != "host" for a in arguments):
            return self._most(self.kind(a) for a in arguments)  # on the device of what is drawn from
        if name in names.MADE_ON_CPU:
            if device is None:
                return "cpu"
            known, value = self.values.constant(device)
            return "cpu" if known and value == "cpu" else "gpu"
        if name.startswith(("torch.cuda.FloatTensor", "torch.cuda.LongTensor")):
            return "gpu"
        if name.startswith(
            (
                "torch.cuda",
                "torch.distributed",
                "torch.backends",
                "torch.save",
                "torch.load",
                "torch.device",
                "torch.manual_seed",
                "torch.utils",
                "torch.optim",
            )
        ):
            return "host" if not name.startswith("torch.load") else None
        if name.startswith("torch.") or name.startswith("torchvision.ops") or name.startswith("einops"):
            kinds = [self.kind(a) for a in arguments]
            return "gpu" if "gpu" in kinds else "cpu" if "cpu" in kinds else None
        if isinstance(func, ast.Attribute):
            base = self.kind(func.value)
            if base in ("gpu", "cpu"):
                return base
        if any(self.kind(a) == "gpu" for a in arguments):
            return None
        return None
