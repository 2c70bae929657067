# SPDX-License-Identifier: Apache-2.0
"""Optimizers: how the class is chosen and how parameters are grouped (a part of Calls)."""

import ast

from . import names
from .call_text import below
from .literals import argument_of, literal
from .loops import is_optimizer
from .scopes import LOOPS, ancestors, dotted


class OptimizerCalls:
    def _not_picked(self, call):
        """{'adam': Adam(...), 'sgd': SGD(...)}[kind]: returns whether this one is
        made but not picked."""
        for up in ancestors(call):
            if isinstance(up, ast.Dict) and isinstance(up.up, ast.Subscript) and up.up.value is up:
                known, key = self.values.constant(up.up.slice)
                return known and any(
                    name is not None and below(call, item) and literal(name)[0] and literal(name)[1] != key
                    for name, item in zip(up.keys, up.values)
                )
            if isinstance(up, ast.stmt):
                return False
        return False

    def _optimizer(self, call, callee, entry):
        last = (callee or "").rsplit(".", 1)[-1]
        entry["fused_known"] = last in names.FUSED and (callee or "").startswith("torch.optim")
        for value in self.values.of(call.func):
            if value[0] == "cls":  # a class of the project derived from one of PyTorch's
                bases = [b.rsplit(".", 1)[-1] for b in self.values.lineage(value[1])[1] if is_optimizer(b)]
                if bases:
                    entry["fused_known"] = None if len(set(bases)) > 1 else bases[0] in names.FUSED
        entry["chosen"] = self._chosen(call, callee)
        if entry["chosen"] == "branch" and not self._decided(call):
            entry["certainty"] = "likely"  # the settings do not show which branch is taken
        entry["groups"] = self._groups(call)
        entry["moved"] = self._moved(argument_of(call, "params", 0), call)

    def _moved(self, node, call):
        """Returns whether the model is moved to the device before its optimizer is made; None:
        model unknown."""
        models = (
            [
                n.value
                for n in ast.walk(node)
                if isinstance(n, ast.Attribute) and n.attr in ("parameters", "named_parameters")
            ]
            if node is not None
            else []
        )
        if not models or dotted(models[0]) in (None, "self"):
            return None
        return self._is_moved(models[0], call, 0)

    def _is_moved(self, model, place, depth):
        name = dotted(model)
        if name is None or depth > 3:
            return False
        for other in place.scope.calls:
            if (
                getattr(other.func, "attr", "") in ("to", "cuda")
                and dotted(other.func.value) == name
                and other.lineno <= place.lineno
            ):
                return True
        bindings = (
            list(self.values.lookup(model) or ())
            if isinstance(model, ast.Name)
            else [b for v in self.values.of(model.value) if v[0] == "inst" for b in v[1].attributes.get(model.attr, ())]
        )
        for binding in bindings:
            if binding.kind == "param":
                for caller, shift in self.values.callers.get(binding.scope, ())[:4]:
                    given = self.values.argument(caller, shift, binding.name, binding.path[0])
                    if given is not None and self._is_moved(given, caller, depth + 1):
                        return True
            elif binding.expr is not None and self._moves(binding.expr, depth):
                return True
        return False

    def _moves(self, expr, depth):
        """Returns whether the expression is `Net().to(device)` or a function of the project that
        does that."""
        for one in ast.walk(expr):
            if isinstance(one, ast.Call):
                if getattr(one.func, "attr", "") in ("to", "cuda"):
                    return True
                for scope, _ in self.values.callees.get(one, ()) if depth < 2 else ():
                    if any(getattr(c.func, "attr", "") in ("to", "cuda") for c in scope.calls):
                        return True
        return False

    def _chosen(self, call, callee):
        """Returns how the class is picked: direct, branch, dict, getattr or registry."""
        if callee and callee.endswith(".*"):
            return "getattr"
        picked = [call.func]
        if isinstance(call.func, ast.Name):
            picked += [b.expr for b in self.values.lookup(call.func) or () if b.kind == "value"]
        for node in picked:
            if isinstance(node, ast.Call):
                return "getattr" if dotted(node.func) == "getattr" else "registry"
            if isinstance(node, ast.Subscript):
                return "dict"
        for up in ancestors(call):
            if isinstance(up, ast.Dict):
                return "dict"
            if isinstance(up, ast.If) and not any(
                isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(up.test)
            ):
                return "branch"
            if isinstance(up, ast.FunctionDef):
                break
        return "direct"

    def _decided(self, call):
        for up in ancestors(call):
            if isinstance(up, ast.If):
                return self.values.truth(up.test) is not None
        return False

    def _groups(self, call):
        return self._groups_of(argument_of(call, "params", 0), call.scope, 0)

    def _groups_of(self, node, scope, depth):
        if node is None or depth > 3:
            return "unknown"
        if isinstance(node, ast.Call):
            for inner, _ in self.values.callees.get(node, ()):
                for returned in inner.returns[:2]:
                    return self._groups_of(returned, inner, depth + 1)
        if isinstance(node, ast.ListComp) and isinstance(node.elt, ast.Dict):
            return "per_parameter" if _single_params(node.elt) else "several"
        for one in ast.walk(node):
            if isinstance(one, ast.Attribute) and one.attr == "parameters":
                return "one"
        if isinstance(node, ast.Name):
            appended = [
                c for c in scope.calls if getattr(c.func, "attr", "") in ("append",) and dotted(c.func.value) == node.id
            ]
            appended_in = [
                c
                for c in appended
                if any(isinstance(up, LOOPS) for up in ancestors(c)) and c.args and isinstance(c.args[0], ast.Dict)
            ]
            if any(_single_params(c.args[0]) for c in appended_in):
                return "per_parameter"
            for binding in scope.names.get(node.id, ()):
                if (
                    binding.kind == "aug"
                    and isinstance(binding.expr, ast.List)
                    and binding.expr.elts
                    and isinstance(binding.expr.elts[0], ast.Dict)
                ):
                    if any(isinstance(up, LOOPS) for up in ancestors(binding.expr)) and _single_params(
                        binding.expr.elts[0]
                    ):
                        return "per_parameter"
        for value in self.values.of(node):
            if value[0] == "box" and isinstance(value[1], (ast.List, ast.Tuple)):
                if any(isinstance(e, ast.Dict) for e in value[1].elts):
                    return "several"
            if value[0] == "made" and value[1].endswith(".parameters"):
                return "one"
        return "unknown"


def _single_params(node):
    """{'params': [p]}: returns whether a group has a single parameter."""
    for key, value in zip(node.keys, node.values):
        if key is not None and literal(key) == (True, "params"):
            return (
                isinstance(value, (ast.List, ast.Tuple))
                and len(value.elts) == 1
                and isinstance(value.elts[0], ast.Name)
                or isinstance(value, ast.Name)
            )
    return False
