# SPDX-License-Identifier: Apache-2.0
# Differences between versions of PyTorch in their optimizers: 2.0 added hooks on the steps of all
# optimizers, and since then zero_grad drops gradients by default.
import functools
import inspect
import threading

from . import on_disable, replace


def drops_gradients(zero_grad):
    """Returns whether zero_grad sets gradients to None by default."""
    return bool(inspect.signature(zero_grad).parameters["set_to_none"].default)


def hook_steps(module, before, after=None):
    """Calls before(optimizer, args, kwargs) and after(...) around each step of each optimizer of
    torch.optim.optimizer."""
    if not hasattr(module, "register_optimizer_step_pre_hook"):
        return _hook_classes(module, before, after)
    handles = []

    def put_in():
        handles.append(module.register_optimizer_step_pre_hook(before))
        if after is not None:
            handles.append(module.register_optimizer_step_post_hook(after))

    def take_out():
        while handles:
            handles.pop().remove()

    put_in()
    on_disable(take_out, put_in)


def _hook_classes(module, before, after):
    """Replaces the step of each optimizer class when its first object is made."""
    seen = set()
    inside = set()  # threads: a class's step may call its base class's, which is hooked too

    def make_step(old):
        @functools.wraps(old)  # keeps torch's own mark that the step is hooked
        def step(self, *args, **kwargs):
            thread = threading.get_ident()
            if thread in inside:
                return old(self, *args, **kwargs)
            inside.add(thread)
            try:
                before(self, args, kwargs)
                result = old(self, *args, **kwargs)
            finally:
                inside.discard(thread)
            if after is not None:
                after(self, args, kwargs)
            return result

        return step

    def make(old):
        def _hook_for_profile(self):
            old(self)
            # The class that defines the step: a class that inherits it uses its base's.
            owner = next((kind for kind in type(self).__mro__ if "step" in vars(kind)), None)
            if owner is not None and owner not in seen:
                seen.add(owner)
                replace(owner, "step", make_step)

        return _hook_for_profile

    replace(module.Optimizer, "_hook_for_profile", make)
