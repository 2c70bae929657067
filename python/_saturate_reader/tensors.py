# SPDX-License-Identifier: Apache-2.0
"""Where an expression's value is: "gpu" (a tensor on the device), "cpu" (a tensor in host memory),
"host" (not a tensor), None (unknown).

`cuda()`, `to(device)` and a module's output are on the device. A batch of a loader is in host
memory until it is moved.
"""
import ast
import re

from . import names
from .scopes import dotted
from .literals import literal

HOST_METHODS = {"item", "tolist", "numpy", "size", "dim", "numel", "nelement", "stride", "element_size", "data_ptr", "ndimension", "get_device",
                "keys", "is_contiguous", "state_dict", "parameters", "named_parameters", "format", "strip", "split", "join", "lower", "upper",
                "time", "avg", "startswith", "endswith", "replace", "get_last_lr", "count_nonzero_py"}
HOST_ATTRIBUTES = {"shape", "device", "dtype", "ndim", "requires_grad", "is_cuda", "layout", "names", "itemsize", "nbytes", "avg", "count", "global_avg"}
HOST_CALLS = {"len", "range", "int", "float", "bool", "str", "round", "isinstance", "hasattr", "repr", "type", "id", "print", "open", "format",
              "getattr_host", "callable", "ord", "chr"}
RANK = {"gpu": 3, "cpu": 2, "host": 1, None: 0}


class Tensors:
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
                    isinstance(c, ast.Constant) and (c.value is None or isinstance(c.value, str)) for c in node.comparators):
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
                earlier = [b for b in binding.scope.names.get(binding.name, ()) if b is not binding and b.kind in ("value", "iter")]
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
            if last in ("parameters", "buffers") or last in ("named_parameters", "named_buffers") and path and path[0] == 1:
                return "gpu"  # where the trained model is
            if last in ("items", "values") and isinstance(expr.func, ast.Attribute):
                if last == "items" and path and path[0] == 0:
                    return "host"
                return self.kind(expr.func.value)
            if last in names.LOOKAHEAD | {"log_every"} and expr.args:
                return self._element(expr.args[0], path)
        for value in self.values.of(expr):
            if value[0] == "made" and value[2] is not expr and value[1].rsplit(".", 1)[-1] in ("parameters", "named_parameters"):
                return self._element(value[2], path)
            if value[0] == "made" and (value[1] in names.LOADERS or value[1].endswith("DataLoader")):
                return "cpu"
            if value[0] == "made" and value[2] is not expr and (  # bar = tqdm(enumerate(loader))
                    value[1] in ("builtins.enumerate", "builtins.zip") or value[1].rsplit(".", 1)[-1] in names.LOOKAHEAD):
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
                if (expr is not None and isinstance(target, ast.Subscript) and target.scope is node.scope
                        and isinstance(target.value, ast.Name) and target.value.id == node.value.id):
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
        named = [c for method in scope.children for c in method.calls if getattr(c.func, "attr", "") in ("register_buffer", "register_parameter") and c.args]
        return any(literal(c.args[0]) == (True, attr) for c in named) or any(
            isinstance(b.expr, ast.Call) and any(v == ("ext", "torch.nn.Parameter") or v == ("ext", "torch.nn.parameter.Parameter") for v in self.values.of(b.expr.func))
            for b in scope.attributes.get(attr, ()))

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
            return value[1].startswith(("torch.nn.", "torchvision.models", "timm.", "transformers.", "segmentation_models_pytorch", "monai.networks",
                                        "torch.hub.load")) and not value[1].startswith(("torch.nn.functional", "torch.nn.init", "torch.nn.utils"))
        if value[0] == "inst":
            return any("Module" in base or base.startswith("torch.nn") or base.endswith(("PreTrainedModel", "_Loss"))
                       for base in self.values.lineage(value[1])[1])
        return False

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
        if name in ("sum", "max", "min", "abs", "next", "iter", "list", "tuple", "sorted", "zip", "dict", "reversed") and arguments:
            if name == "next":
                return self._element(node.args[0], ()) if node.args else None
            return self._most(self.kind(a) for a in arguments)
        if last == "step" and node.args:  # loss = optimizer.step(closure)
            return self._most(self.kind(one) for value in self.values.of(node.args[0]) if value[0] == "fn" for one in value[1].returns)
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
        if name in ("model", "net", "self.model", "self.net", "criterion", "self.criterion", "loss_fn", "self.loss_fn", "self"):
            return "gpu"
        return None

    def _moved(self, node, func):
        inside = self.kind(func.value)
        target = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "device"), None)
        if target is None:
            return inside
        if isinstance(target, ast.Attribute) and target.attr == "device" and not (isinstance(target.value, ast.Name) and target.value.id == "self"):
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
        if name.startswith(("numpy.", "math.", "time.", "os.", "random.", "json.", "sklearn.", "cv2.", "PIL.", "builtins.", "logging.", "datetime.", "scipy.",
                            "re.", "sys.")):
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
        if name.startswith(("torch.cuda", "torch.distributed", "torch.backends", "torch.save", "torch.load", "torch.device", "torch.manual_seed",
                            "torch.utils", "torch.optim")):
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


def formatted(node):
    """Returns whether an operation puts values into a text: "%.4f" % loss."""
    return isinstance(node.op, ast.Mod) and (isinstance(node.left, ast.JoinedStr) or isinstance(node.left, ast.Constant) and isinstance(node.left.value, str))


def _named(scope):
    return {name for name, _, how in scope.params if how in ("position", "keyword")}
