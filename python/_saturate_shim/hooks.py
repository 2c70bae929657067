# SPDX-License-Identifier: Apache-2.0
# The hooks on torch. Each is a few lines around the original, always calls it, and removes all
# hooks if it fails itself. They report to steps.py (per step) and facts.py (settings and places).
# For hooks that run in every step, the extension (native.py) replaces the Python versions here if
# it is loaded.
import gc
import os
import sys
import threading
import weakref
from importlib import import_module
from time import perf_counter_ns as clock

from . import RUN_DIR, disable, on_disable, profiler, replace
from .facts import facts
from .files import files
from .hooks_loader import fetch_target, hook_loader
from .hooks_own_loader import MODULE as OWN_LOADER
from .hooks_own_loader import hook_own_loader
from .step_hooks import drops_gradients, hook_steps
from .steps import CHECKPOINT, hot, steps


def after_import():
    return {"torch": on_torch, OWN_LOADER: on_own_loader}


def on_own_loader(module):
    if facts.torch is not None:  # otherwise hooked when torch is imported: nothing trains without torch
        hook_own_loader(module)


def on_torch(torch):
    if not os.path.isdir(RUN_DIR):
        return  # the run we belonged to is over
    facts.torch = torch
    facts.torch_imported()
    steps.on_training_step = facts.after_step
    steps.ranks = facts.ranks
    steps.on_open = profiler.ring_opened
    if steps.native is not None:
        calls = {
            "optimizer": facts.optimizer_seen,
            "zero_grad": lambda: facts.zero_grad_to_zero(sys._getframe(1)),
            "enough": _zero_grads_known,
            "fetch": fetch_target,
            "read": lambda *read: facts.read_done(*read, sys._getframe(1)),
            "loss": facts.late.add if facts.late is not None else None,
            "disable": disable,
        }
        steps.prepare(torch, calls, _reads_wait_always())
    os.register_at_fork(after_in_child=_in_child)
    hook_loader(torch)
    if OWN_LOADER in sys.modules:
        hook_own_loader(sys.modules[OWN_LOADER])
    hook_optimizer(torch)
    hook_backward(torch)
    hook_reads(torch)
    hook_precision(torch)
    hook_compile(torch)
    hook_models(torch)
    hook_save(torch)
    profiler.hook_profiler(torch)
    collected = _collected if steps.native is None else steps.native.collected
    gc.callbacks.append(collected)
    on_disable(lambda: gc.callbacks.remove(collected), lambda: gc.callbacks.append(collected))
    import atexit

    atexit.register(profiler.at_exit)
    atexit.register(_at_exit)
    on_disable(lambda: atexit.unregister(_at_exit), lambda: atexit.register(_at_exit))
    if os.environ.get("SATURATE_APPLY"):
        from . import apply

        apply.install(torch)


def _at_exit():
    try:
        steps.finish()
        if facts.profiler is not None:
            facts.profiler.stop()
    except Exception as error:
        disable("end", error)
    facts.flush()


def _in_child():
    steps.reset()
    facts.forked()


_gc_start = 0


def _collected(phase, info):
    global _gc_start
    if phase == "start":
        _gc_start = clock()
    else:
        steps.gc += clock() - _gc_start


_retired = {}  # by name: hooks that are removed once they have seen enough
ENOUGH_ZERO_GRADS = 32  # calls: a loop does the same from the start


def _zero_grads_known():
    _retired["zero_grad"].retire()


def hook_optimizer(torch):
    module = import_module("torch.optim.optimizer")  # not an attribute of torch.optim in every version
    s = steps
    began = [0]

    def before(optimizer, args, kwargs):
        now = clock()
        if s.thread == threading.get_ident() or s.adopt_thread(now):
            began[0] = now

    def after(optimizer, args, kwargs):
        if s.thread != threading.get_ident():
            return
        try:
            now = clock()
            s.optimizer_stepped(optimizer, now - began[0], now)
            if id(optimizer) not in facts.optimizers:
                facts.optimizer_seen(optimizer)
        except Exception as error:
            disable("optimizer", error)

    if s.native is not None:
        before, after = s.native.before_step, s.native.after_step
    hook_steps(module, before, after)
    drops = drops_gradients(module.Optimizer.zero_grad)

    def make_zero_grad(old):
        def zero_grad(self, set_to_none=drops):
            if not set_to_none:
                facts.zero_grad_to_zero(sys._getframe(1))
            s.zero_grads[bool(set_to_none)] += 1
            if sum(s.zero_grads) == ENOUGH_ZERO_GRADS:
                _zero_grads_known()
            return old(self, set_to_none)

        return zero_grad

    _retired["zero_grad"] = hot(module.Optimizer, "zero_grad", make_zero_grad, int(drops))

    def make_optimizer_init(old):
        def __init__(self, params, defaults):
            old(self, params, defaults)
            try:
                facts.optimizer_made(self, sys._getframe(1))
            except Exception as error:
                disable("Optimizer", error)

        return __init__

    replace(module.Optimizer, "__init__", make_optimizer_init)


def hook_backward(torch):
    s = steps
    all_devices = _reads_wait_always()

    def take_loss(tensor):
        """Takes the loss. On a CPU its value is there and costs nothing; on a device nothing here
        waits for it. Only for plain tensors: on other types item() may be a collective."""
        if type(tensor) is tuple and len(tensor) == 1:
            tensor = tensor[0]
        s.is_loss_known = False
        s.root = None
        if type(tensor) is not torch.Tensor:
            return
        s.root = weakref.ref(tensor)
        if tensor.device.type == "cpu" and not all_devices:  # is_cpu came with 2.0
            if tensor.numel() == 1:
                s.is_reading = True  # this read is ours
                value = tensor.item()
                s.is_reading = False
                if type(value) is float:
                    s.loss_known(value)
                    s.is_loss_known = True
        elif facts.late is not None:
            facts.late.add(tensor)

    def make(old):
        def backward(*args, **kwargs):
            if s.backward_depth:
                return old(*args, **kwargs)
            # Without an optimizer of torch, a backward pass is the sign that a thread trains.
            if s.thread != threading.get_ident() and (s.has_optimizer or not s.adopt_thread(clock())):
                return old(*args, **kwargs)
            s.backward_depth = 1
            began = clock()
            try:
                result = old(*args, **kwargs)
            finally:  # a backward pass that raises is not counted
                s.backward_depth = 0
            now = clock()
            try:
                take_loss(args[0] if args else kwargs.get("tensors"))
                s.backward_done(now - began, now)
            except Exception as error:
                disable("backward", error)
            return result

        return backward

    hot(torch.autograd, "backward", make)  # Tensor.backward looks the function up here


# Device files of accelerator drivers. Without one, reading a tensor never waits.
_DEVICES = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/kfd", "/dev/dxg", "/dev/davinci0")


def _reads_wait_always():
    return os.environ.get("SATURATE_READS") == "all"  # for tests on machines without a GPU


def hook_reads(torch):
    """Hooks item(), cpu() and so on, which make the host wait if the tensor is on a device. Without
    a device they are counted only in the first steps."""
    all_devices = _reads_wait_always()
    s, thread_id = steps, threading.get_ident

    def make(name):
        def make_read(old):
            def read(self, *args, **kwargs):
                if s.thread != thread_id() or s.is_reading:
                    return old(self, *args, **kwargs)
                s.is_reading = True
                began = clock()
                try:
                    result = old(self, *args, **kwargs)
                finally:
                    s.is_reading = False
                took = clock() - began
                waits = all_devices or self.is_cuda
                if waits:
                    s.syncs += 1
                    s.sync += took
                is_loss = s.root is not None and s.root() is self
                if is_loss and not s.is_loss_known and type(result) is float:
                    s.is_loss_known = True
                    s.loss_read(result)
                facts.read_done(name, took, waits, is_loss, result, sys._getframe(1))
                return result

            return read

        return make_read

    made = [
        hot(torch.Tensor, name, make(name))
        for name in ("item", "tolist", "numpy", "cpu", "nonzero", "__bool__", "__float__", "__int__")
        if hasattr(torch.Tensor, name)
    ]
    if not all_devices and not any(os.path.exists(path) for path in _DEVICES):
        facts.stop_reads = lambda: [hook.retire() for hook in reversed(made)]


def hook_precision(torch):
    def make_enter(old):
        def __enter__(self):
            key = (getattr(self, "device", "?"), getattr(self, "fast_dtype", "?"), getattr(self, "_enabled", True))
            facts.autocast_entered(key, sys._getframe(1))
            return old(self)

        return __enter__

    # Older versions have only CUDA's own: autocast before 1.10, GradScaler before 2.3.
    replace(getattr(torch, "autocast", torch.cuda.amp.autocast), "__enter__", make_enter)
    scaler = getattr(getattr(torch, "amp", None), "GradScaler", torch.cuda.amp.GradScaler)

    def make_step(old):
        def step(self, *args, **kwargs):
            facts.scaler_steps += 1
            return old(self, *args, **kwargs)

        return step

    replace(scaler, "step", make_step)


def hook_compile(torch):
    def make(old):
        def compile(*args, **kwargs):
            try:
                facts.end_reads()  # the compiler must see torch unhooked
                facts.compiled(kwargs, sys._getframe(1))
            except Exception as error:
                disable("torch.compile", error)
            return old(*args, **kwargs)

        return compile

    if hasattr(torch, "compile"):
        replace(torch, "compile", make)
    if hasattr(torch.nn.Module, "compile"):
        replace(torch.nn.Module, "compile", make)


def hook_models(torch):
    """A module whose parameters are asked for is a model: optimizers are made from them."""

    def make(old):
        def named_parameters(self, *args, **kwargs):
            facts.model_seen(self)
            return old(self, *args, **kwargs)

        return named_parameters

    replace(torch.nn.Module, "named_parameters", make)

    def make_parallel(kind):
        def make_init(old):
            def __init__(self, *args, **kwargs):
                old(self, *args, **kwargs)
                facts.parallel[kind] = facts.parallel.get(kind, 0) + 1

            return __init__

        return make_init

    for kind in ("DataParallel", "DistributedDataParallel"):
        replace(getattr(torch.nn.parallel, kind), "__init__", make_parallel(kind))


def hook_save(torch):
    def make(old):
        def save(*args, **kwargs):
            began = clock()
            result = old(*args, **kwargs)
            try:
                if steps.thread == threading.get_ident():
                    took = clock() - began
                    steps.put_aside(CHECKPOINT, 0, began, took)
                target = args[1] if len(args) > 1 else kwargs.get("f")
                if isinstance(target, (str, os.PathLike)):
                    files.opened(target, os.O_WRONLY)  # torch writes the file in C++
                if steps.thread == threading.get_ident():
                    facts.saved(took, sys._getframe(1))
            except Exception as error:
                disable("torch.save", error)
            return result

        return save

    replace(torch, "save", make)
