# SPDX-License-Identifier: Apache-2.0
"""Where an expression's value is: "gpu" (a tensor on the device), "cpu" (a tensor in host memory),
"host" (not a tensor), None (unknown).

`cuda()`, `to(device)` and a module's output are on the device. A batch of a loader is in host
memory until it is moved.
"""

import ast
import re

from . import names
from .literals import literal
from .scopes import dotted
from .tensor_calls import TensorCalls

HOST_ATTRIBUTES = {
    "shape",
    "device",
    "dtype",
    "ndim",
    "requires_grad",
    "is_cuda",
    "layout",
    "names",
    "itemsize",
    "nbytes",
    "avg",
    "count",
    "global_avg",
}
RANK = {"gpu": 3, "cpu": 2, "host": 1, None: 0}


class Tensors(TensorCalls):
    def __init__(self, values):
        self.values = values
        self.memo = {}
        self.active = set()
        self.on_device = set()  # (Scope, name) of parameters that a framework passes on the device

    def kind(self, node):
        if node is None:
            return None
        if node in self.memo:
            return self.memo[node]
        if node in self.active or len(self.active) > 60:
            return None
        self.active.add(node)
        try:
            found = self._kind(node)
        finally:
            self.active.discard(node)
        self.memo[node] = found
        return found

    def _most(self, kinds):
        best = None
        for kind in kinds:
            if RANK[kind] > RANK[best]:
                best = kind
        return best

    def _kind(self, node):
        kind = type(node)
        if kind in (ast.Constant, ast.JoinedStr, ast.FormattedValue):
            return "host"
        if kind is ast.Name:
            return self._name(node)
        if kind is ast.Call:
            return self._call(node)
        if kind is ast.Attribute:
            return self._attribute(node)
        if kind is ast.Subscript:
            return self._subscript(node)
        if kind is ast.BinOp:
            if formatted(node):
                return "host"
            left, right = self.kind(node.left), self.kind(node.right)
            if "gpu" in (left, right):
                return "gpu"
            return left if left == right else ("cpu" if "cpu" in (left, right) else None)
        if kind is ast.UnaryOp:
            return "host" if isinstance(node.op, ast.Not) else self.kind(node.operand)
        if kind is ast.Compare:
            if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops) or any(
                isinstance(c, ast.Constant) and (c.value is None or isinstance(c.value, str)) for c in node.comparators
            ):
                return "host"
            kinds = [self.kind(node.left)] + [self.kind(c) for c in node.comparators]
            return "gpu" if "gpu" in kinds else "cpu" if "cpu" in kinds else "host" if None not in kinds else None
        if kind is ast.BoolOp:
            return self._most(self.kind(v) for v in node.values)
        if kind is ast.IfExp:
            return self._most((self.kind(node.body), self.kind(node.orelse)))
        if kind in (ast.Tuple, ast.List, ast.Set):
            return self._most(self.kind(e) for e in node.elts)
        if kind is ast.Dict:
            return self._most(self.kind(v) for v in node.values)
        if kind in (ast.ListComp, ast.GeneratorExp, ast.SetComp):
            return self.kind(node.elt)
        if kind is ast.DictComp:
            return self.kind(node.value)
        if kind in (ast.Starred, ast.NamedExpr, ast.Await):
            return self.kind(node.value)
        return None

    def _name(self, node):
        bindings = self.values.lookup(node)
        if not bindings:
            return None
        return self._most(self.of_binding(b) for b in bindings)

    def of_binding(self, binding):
        kind = binding.kind
        if kind in ("value", "with"):
            return self._part(binding.expr, binding.path)
        if kind == "aug":
            inner = self.kind(binding.expr)
            if inner == "host":  # loss /= 4 does not move the loss
                earlier = [
                    b
                    for b in binding.scope.names.get(binding.name, ())
                    if b is not binding and b.kind in ("value", "iter")
                ]
                return self._most([inner] + [self.of_binding(b) for b in earlier if b.node is not binding.node][:4])
            return inner
        if kind == "iter":
            return self._element(binding.expr, binding.path)
        if kind == "param":
            return self._parameter(binding)
        return None

    def _part(self, expr, path):
        if path and isinstance(expr, (ast.Tuple, ast.List)) and isinstance(path[0], int) and path[0] < len(expr.elts):
            return self._part(expr.elts[path[0]], path[1:])
        if path and isinstance(expr, ast.Call):
            kinds = []
            for scope, _ in self.values.callees.get(expr, ()):
                for value in scope.returns[:8]:
                    if isinstance(value, ast.Tuple) and isinstance(path[0], int) and path[0] < len(value.elts):
                        kinds.append(self.kind(value.elts[path[0]]))
            if kinds:
                return self._most(kinds)
        return self.kind(expr)

    def _parameter(self, binding):
        scope = binding.scope
        if (scope, binding.name) in self.on_device:
            return "gpu"
        if (scope, binding.name) in self.values.batches:
            return "cpu"
        position = binding.path[0]
        if scope.owner is not None and position == 0:
            return None
        if position == "**":
            kinds = []
            for call, _ in self.values.callers.get(scope, ())[:24]:
                kinds.extend(self.kind(k.value) for k in call.keywords if k.arg not in _named(scope))
            return self._most(kinds)
        if position == "*":
            return self._most(self.kind(a) for a in self.values.extra(scope))
        kinds = [self.kind(a) for a in self.values.arguments(scope, binding.name, position)]
        if binding.expr is not None:
            kinds.append(self.kind(binding.expr))
        return self._most(kinds)

    def _element(self, expr, path):
        if isinstance(expr, ast.Call):
            last = (dotted(expr.func) or getattr(expr.func, "attr", "")).rsplit(".", 1)[-1]
            if last == "enumerate" and expr.args:
                return "host" if path and path[0] == 0 else self._element(expr.args[0], path[1:])
            if last == "zip" and path and isinstance(path[0], int) and path[0] < len(expr.args):
                return self._element(expr.args[path[0]], path[1:])
            if last == "range":
                return "host"
            if (
                last in ("parameters", "buffers")
                or last in ("named_parameters", "named_buffers")
                and path
                and path[0] == 1
            ):
                return "gpu"  # where the trained model is
            if last in ("items", "values") and isinstance(expr.func, ast.Attribute):
                if last == "items" and path and path[0] == 0:
                    return "host"
                return self.kind(expr.func.value)
            if last in names.LOOKAHEAD | {"log_every"} and expr.args:
                return self._element(expr.args[0], path)
        for value in self.values.of(expr):
            if (
                value[0] == "made"
                and value[2] is not expr
                and value[1].rsplit(".", 1)[-1] in ("parameters", "named_parameters")
            ):
                return self._element(value[2], path)
            if value[0] == "made" and (value[1] in names.LOADERS or value[1].endswith("DataLoader")):
                return "cpu"
            if (
                value[0] == "made"
                and value[2] is not expr
                and (  # bar = tqdm(enumerate(loader))
                    value[1] in ("builtins.enumerate", "builtins.zip") or value[1].rsplit(".", 1)[-1] in names.LOOKAHEAD
                )
            ):
                return self._element(value[2], path)
            if value[0] == "gen":
                return self._most(self.kind(v) for v in value[1].yields)
            if value[0] == "inst":
                method = self.values.find_method(value[1], "__iter__") or self.values.find_method(value[1], "__next__")
                if method is not None:
                    return self._most(self.kind(v) for v in method.yields + method.returns)
        return self.kind(expr)

    def _subscript(self, node):
        for value in self.values.of(node.value):
            if value[0] == "batch":
                return self.kind(node.value) or "cpu"
            if value[0] == "cfg":
                return "host"
        found = self.kind(node.value)
        if isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Constant):
            stored = []  # for batch['x'] = batch['x'].cuda()
            for target, expr, _ in node.src.index.stores:
                if (
                    expr is not None
                    and isinstance(target, ast.Subscript)
                    and target.scope is node.scope
                    and isinstance(target.value, ast.Name)
                    and target.value.id == node.value.id
                ):
                    known, key = literal(target.slice)
                    if (not known or key == node.slice.value) and target.lineno <= node.lineno:
                        stored.append(self.kind(expr))
            found = self._most([found] + stored)
        return found

    def _attribute(self, node):
        if node.attr in HOST_ATTRIBUTES:
            return "host"
        values = self.values.of(node)
        if any(value[0] == "cfg" for value in values):
            return "host"
        base = self.kind(node.value)
        if base in ("gpu", "cpu"):
            return base
        kinds = ["host"] if any(value[0] == "lit" for value in values) else []  # also `self.loss = None`
        for value in self.values.of(node.value):
            if value[0] == "inst":
                for one in self.values.lineage(value[1])[0]:
                    if self._moves_with(one, node.attr) and self.is_module(value):
                        return "gpu"
                    for binding in one.attributes.get(node.attr, ())[:6]:
                        kinds.append(self.of_binding(binding))
        return self._most(kinds)

    def _moves_with(self, scope, attr):
        """Returns whether an attribute is a buffer or parameter of its module, which is where the module is."""
        named = [
            c
            for method in scope.children
            for c in method.calls
            if getattr(c.func, "attr", "") in ("register_buffer", "register_parameter") and c.args
        ]
        return any(literal(c.args[0]) == (True, attr) for c in named) or any(
            isinstance(b.expr, ast.Call)
            and any(
                v == ("ext", "torch.nn.Parameter") or v == ("ext", "torch.nn.parameter.Parameter")
                for v in self.values.of(b.expr.func)
            )
            for b in scope.attributes.get(attr, ())
        )

    def device(self, node, depth=0):
        """Returns "cpu" or "gpu" if that is what a device is by the settings, else None."""
        known, value = self.values.constant(node)
        if known:
            return None if not isinstance(value, str) else "cpu" if value.startswith("cpu") else "gpu"
        found = set()
        for value in self.values.of(node):
            if value[0] == "made" and value[1] == "torch.device" and value[2].args and depth < 4:
                found.add(self.device(value[2].args[0], depth + 1))
            elif not (value[0] == "lit" and literal(value[1]) == (True, None)):
                found.add(None)
        return found.pop() if len(found) == 1 else None

    def is_module(self, value):
        """Returns whether a value is a torch.nn.Module."""
        if value[0] == "made":
            if re.search(r"Tokenizer|Processor|FeatureExtractor|Config\b|_schedule", value[1]):
                return False
            return value[1].startswith(
                (
                    "torch.nn.",
                    "torchvision.models",
                    "timm.",
                    "transformers.",
                    "segmentation_models_pytorch",
                    "monai.networks",
                    "torch.hub.load",
                )
            ) and not value[1].startswith(("torch.nn.functional", "torch.nn.init", "torch.nn.utils"))
        if value[0] == "inst":
            return any(
                "Module" in base or base.startswith("torch.nn") or base.endswith(("PreTrainedModel", "_Loss"))
                for base in self.values.lineage(value[1])[1]
            )
        return False


def formatted(node):
    """Returns whether an operation puts values into a text: "%.4f" % loss."""
    return isinstance(node.op, ast.Mod) and (
        isinstance(node.left, ast.JoinedStr) or isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
    )


def _named(scope):
    return {name for name, _, how in scope.params if how in ("position", "keyword")}
