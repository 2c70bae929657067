# SPDX-License-Identifier: Apache-2.0
# The interface of steps.py on top of the extension _saturate_step (python/extension). The
# extension's hooks replace those of hooks.py that run in every step.
import os
import threading

from . import _saturate_step as native
from .steps import place, ring_path


class NativeSteps:
    native = native

    def __init__(self):
        self.on_training_step = None
        self.ranks = lambda: (-1, 1)
        self.on_open = lambda: None
        self.reset()

    def reset(self):
        self.thread = threading.get_ident()
        native.reset()

    def prepare(self, torch, calls, reads_wait_always):
        """calls: the Python functions that the extension calls back, by the names below."""
        names = ("optimizer", "zero_grad", "enough", "fetch", "read", "loss", "disable")
        native.prepare(
            torch.Tensor, self.open_ring, self.after_step, *[calls[name] for name in names], reads_wait_always
        )

    def after_step(self, number, now):
        if self.on_training_step is not None:
            self.on_training_step(number, now)

    def is_open(self):
        return bool(native.state()[2])

    def open_ring(self):
        native.open(ring_path(os.getpid()), os.getpid(), *place(self.ranks))
        self.on_open()

    def optimizer_made(self):
        native.set_has_optimizer()

    @property
    def training(self):
        return native.state()[0]

    @property
    def loop(self):
        return native.state()[1]

    @property
    def zero_grads(self):
        return native.state()[3:5]

    @property
    def foreign_steps(self):
        return native.state()[5]

    set_rank = staticmethod(native.set_rank)
    set_loader = staticmethod(native.set_loader)
    set_samples = staticmethod(native.set_samples)
    set_in_process = staticmethod(native.set_in_process)
    take_flag = staticmethod(native.take_flag)
    set_flag = staticmethod(native.set_flag)
    window_until = staticmethod(native.window_until)
    wake = staticmethod(native.wake)
    put_aside = staticmethod(native.put_aside)
    finish = staticmethod(native.finish)
