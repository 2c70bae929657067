# SPDX-License-Identifier: Apache-2.0
# What differs between versions of PyTorch in its optimizers: hooks on the steps of all of them came with 2.0, and with it zero_grad
# began to drop gradients unless told otherwise.
import functools
import inspect
import threading

from . import on_disable, replace


def drops_gradients(zero_grad):
    """Whether it sets gradients to None where the script does not say."""
    return bool(inspect.signature(zero_grad).parameters["set_to_none"].default)


def hook_steps(module, before, after=None):
    """before(optimizer, args, kwargs) and after(...) around each step of each optimizer of torch.optim.optimizer."""
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
    """Each class gets a step of ours when the first optimizer of it is made."""
    seen = set()
    inside = set()  # threads: a class's step may call its base's, which is hooked too

    def make_step(old):
        @functools.wraps(old)  # with torch's own mark that it is hooked
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
            # The class whose step it is: one that inherits its step has that of its base.
            owner = next((kind for kind in type(self).__mro__ if "step" in vars(kind)), None)
            if owner is not None and owner not in seen:
                seen.add(owner)
                replace(owner, "step", make_step)

        return _hook_for_profile

    replace(module.Optimizer, "_hook_for_profile", make)
