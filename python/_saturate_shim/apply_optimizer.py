# SPDX-License-Identifier: Apache-2.0
# --apply for optimizers: dropping gradients instead of filling them with zeros, fused
# and foreach updates.
import inspect
from importlib import import_module

from . import disable, replace
from .apply import applied, refused, taken_back
from .step_hooks import drops_gradients, hook_steps

NAMES = ("set_to_none", "fused", "foreach")


def install(torch, wanted):
    if "set_to_none" in wanted:
        SetToNone(torch)
    if {"fused", "foreach"} & set(wanted.values):
        _optimizers(torch, "fused" if "fused" in wanted else "foreach")


class SetToNone:
    """Sets gradients to None where the script asks for zeros. Without this change, a parameter that
    gets no gradient in a step has a gradient of zeros: weight decay and momentum then still move
    it, and the script may read it. Such a parameter gets its zeros before anybody looks, and the
    change is taken back."""

    def __init__(self, torch):
        self.torch = torch
        self.dropped = {}  # id -> parameter whose gradient was set to None where the script asked for zeros
        self.is_told = self.is_off = False
        module = import_module("torch.optim.optimizer")
        replace(module.Optimizer, "zero_grad", lambda old: self.make(old, _of_optimizer))
        replace(torch.nn.Module, "zero_grad", lambda old: self.make(old, lambda module: module.parameters()))
        replace(torch.autograd, "backward", self.make_backward)
        hook_steps(module, lambda *_: self.fill())

    def make(self, old, parameters_of):
        def zero_grad(owner, set_to_none=drops_gradients(old)):
            if set_to_none or self.is_off:
                return old(owner, set_to_none)
            try:
                self.drop([p for p in parameters_of(owner) if p.grad is not None])
            except Exception as error:
                disable("--apply set_to_none", error)
                return old(owner, set_to_none)
            return old(owner, True)

        return zero_grad

    def drop(self, parameters):
        for parameter in parameters:
            self.dropped[id(parameter)] = parameter
        if not self.is_told:
            self.is_told = True
            applied("set_to_none", "zero_grad(set_to_none=True)")

    def make_backward(self, old):
        def backward(*args, **kwargs):
            result = old(*args, **kwargs)
            self.fill()
            return result

        return backward

    def fill(self):
        """Called after backward and before an optimizer step."""
        if not self.dropped:
            return
        dropped, self.dropped = self.dropped, {}
        without = [p for p in dropped.values() if p.grad is None]
        for parameter in without:
            parameter.grad = self.torch.zeros_like(parameter)
        if without and not self.is_off:
            self.is_off = True
            taken_back(
                "set_to_none",
                "%d parameter%s had no gradient in a step: weight decay and momentum move a parameter "
                "whose gradient is zero, but not one without a gradient"
                % (len(without), "" if len(without) == 1 else "s"),
            )


def _of_optimizer(optimizer):
    return (p for group in optimizer.param_groups for p in group["params"])


def _tensors(groups):
    for item in groups:
        if isinstance(item, dict):
            for tensor in item["params"] if not hasattr(item["params"], "dim") else [item["params"]]:
                yield tensor[1] if isinstance(tensor, tuple) else tensor
        else:
            yield item[1] if isinstance(item, tuple) else item


def _optimizers(torch, name):
    choices = {"fused", "foreach", "capturable", "differentiable"}

    def make(old):
        def __init__(self, params, *args, **kwargs):
            given = choices & set(kwargs)
            if type(self).__mro__[0].__init__ is not type(self).__init__ or given:
                if given:
                    refused(
                        name, "%s already gets %s from the script" % (type(self).__name__, ", ".join(sorted(given)))
                    )
                return old(self, params, *args, **kwargs)
            params = [dict(p, params=list(p["params"])) if isinstance(p, dict) else p for p in params]
            if not all(p.is_cuda and p.is_floating_point() for p in _tensors(params)):
                refused(name, "%s has parameters that are not on a GPU" % type(self).__name__)
                return old(self, params, *args, **kwargs)
            try:
                old(self, params, *args, **dict(kwargs, **{name: True}))
                applied(name, "%s(..., %s=True)" % (type(self).__name__, name))
            except Exception as error:
                taken_back(name, str(error).split("\n")[0])
                old(self, params, *args, **kwargs)

        return __init__

    for kind in ("Adam", "AdamW", "SGD", "Adagrad"):
        optimizer = getattr(torch.optim, kind)
        if name in inspect.signature(optimizer.__init__).parameters:
            replace(optimizer, "__init__", make)
