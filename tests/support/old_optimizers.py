# SPDX-License-Identifier: Apache-2.0
"""Tests the hooks on optimizers with PyTorch before 2.0: old_optimizers.py [EXTENSION]. The optimizers here are stand-ins that behave
like that version: there is no hook on all steps, the first optimizer of a class wraps its step, and gradients are filled with zeros
unless the script says otherwise. Prints the observations."""

import functools
import os
import pathlib
import shutil
import sys
import tempfile
import types

folder = tempfile.TemporaryDirectory()
package = pathlib.Path(folder.name) / "_saturate_shim"
shutil.copytree(pathlib.Path(__file__).resolve().parents[2] / "python" / "_saturate_shim", package)
if len(sys.argv) > 1:
    shutil.copy(sys.argv[1], package)
else:
    os.environ["SATURATE_SHIM"] = "python"
os.environ["SATURATE_RUN_DIR"] = folder.name
sys.dont_write_bytecode = True
sys.path.insert(0, folder.name)


class Optimizer:
    def __init__(self, params, defaults):
        self._hook_for_profile()
        self.param_groups = [dict(defaults, params=list(params))]
        self.given = []

    def _hook_for_profile(self):
        def wrap(function):
            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                return function(*args, **kwargs)

            return wrapper

        if not getattr(type(self).step, "hooked", None):
            type(self).step = wrap(type(self).step)
            type(self).step.hooked = True

    def zero_grad(self, set_to_none=False):
        self.given.append(set_to_none)

    def step(self, closure=None):
        raise NotImplementedError


class SGD(Optimizer):
    def step(self, closure=None):
        return "stepped"


class Inherits(SGD):
    pass


class Calls(SGD):
    def step(self, closure=None):
        return "twice " + super().step(closure)


torch = types.ModuleType("torch")
torch.Tensor = type("Tensor", (), {})
for name, content in {"torch": {}, "torch.optim": {}, "torch.optim.optimizer": {"Optimizer": Optimizer}}.items():
    module = sys.modules[name] = torch if name == "torch" else types.ModuleType(name)
    vars(module).update(content)

from _saturate_shim import disable, hooks, switch  # noqa: E402
from _saturate_shim.facts import facts  # noqa: E402
from _saturate_shim.steps import steps  # noqa: E402

facts.torch = torch
if steps.native is not None:
    nothing = lambda *_: None  # noqa: E731
    calls = dict.fromkeys(("optimizer", "fetch", "read", "loss"), nothing)
    calls.update(
        zero_grad=lambda: facts.zero_grad_to_zero(sys._getframe(1)), enough=hooks._zero_grads_known, disable=disable
    )
    steps.prepare(torch, calls, False)
hooks.hook_optimizer(torch)


def train(optimizer, count):
    before = steps.training
    for _ in range(count):
        optimizer.zero_grad()
        result = optimizer.step()
    return result, steps.training - before


# A step lasts from one optimizer step to the next, so there is none before the first.
print(*train(SGD([], {}), 5))
for kind in (Inherits, Calls, SGD):
    steps.reset()
    print(*train(kind([], {}), 4))
optimizer = SGD([], {})
optimizer.zero_grad(True)
optimizer.zero_grad()
print(optimizer.given, list(steps.zero_grads), facts.zero_grad_site["function"])
switch(False)
print(train(optimizer, 3)[1], "hooked" if SGD.step.hooked else "")
