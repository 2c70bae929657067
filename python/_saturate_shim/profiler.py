# SPDX-License-Identifier: Apache-2.0
# Windows of the profiler. `saturate run` opens one from outside, through a socket that torch polls;
# older versions of torch get one in the process (Window), which stops the training while it writes.
# No window may be open while the script's own profiler runs or when the script ends: the profiler's
# exit handlers would destroy its state under the recording thread. So the script first waits for
# the end of a window (wait) and marks in the ring that no further window may be opened.
import os
import time
import weakref
from importlib import import_module
from time import perf_counter_ns as clock

from . import RUN_DIR, disable, replace, say
from .steps import ENDED_AT, OWN_PROFILER_AT, steps


class Window:
    def __init__(self, torch, wanted):
        self.left = wanted
        self.profile = None
        if own.at_work():
            return
        activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_initialized():
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        try:
            with own.not_counted():
                self.profile = torch.profiler.profile(activities=activities, record_shapes=True)
                self.profile.start()
        except Exception as error:  # another profiler is already running
            self.profile = None
            say("no profiler window: %s" % error)

    def after_step(self):
        """Returns True when the window is over."""
        if self.profile is None:
            return True
        self.left -= 1
        if self.left >= 0:
            return False
        self.stop()
        return True

    def stop(self):
        if self.profile is None:
            return
        profile, self.profile = self.profile, None
        try:
            with own.not_counted():
                profile.stop()
            path = os.path.join(RUN_DIR, "trace_%d.json" % os.getpid())
            profile.export_chrome_trace(path + ".part")
            os.replace(path + ".part", path)
        except Exception as error:
            say("no profiler window: %s" % error)


class _Own:
    """The script's own profilers, from creation until stopped: a schedule may
    start one at any step."""

    def __init__(self):
        self.living = {}  # id -> weak reference
        self.was_seen = False
        self.is_ours = False  # profilers made now are Window's

    def at_work(self):
        return bool(self.living)

    def not_counted(self):
        return _NotCounted(self)

    def begin(self, profiler):
        if self.is_ours or not getattr(profiler, "enabled", True):
            return
        self.was_seen = True
        number = id(profiler)
        self.living[number] = weakref.ref(profiler, lambda _: self.end(number))
        self.mark()
        wait()

    def end(self, number):
        self.living.pop(number, None)
        self.mark()

    def mark(self):
        try:
            steps.set_flag(OWN_PROFILER_AT, bool(self.living))
        except Exception:  # the interpreter may be shutting down
            pass


class _NotCounted:
    def __init__(self, own):
        self.own = own

    def __enter__(self):
        self.own.is_ours = True

    def __exit__(self, *_):
        self.own.is_ours = False


own = _Own()


def ring_opened():
    """Marks the profilers that began before there was a ring."""
    if own.living:
        own.mark()


def wait():
    """Waits until the window that `saturate run` opened is over, at the latest
    at the time it set."""
    while 0 < clock() < steps.window_until():
        time.sleep(0.01)


def at_exit():
    """Stays registered even when all hooks are removed, because a window may still be open."""
    try:
        steps.set_flag(ENDED_AT, True)
        wait()
    except BaseException:  # Ctrl-C: stop waiting
        pass


def hook_profiler(torch):
    plain = import_module("torch.autograd.profiler")
    kineto = import_module("torch.profiler.profiler")

    def make_begin(old):
        def begin(self, *args, **kwargs):
            try:
                own.begin(self)
            except Exception as error:
                disable("profiler", error)
            return old(self, *args, **kwargs)

        return begin

    def make_end(old):
        def end(self, *args, **kwargs):
            try:
                return old(self, *args, **kwargs)
            finally:
                own.end(id(self))

        return end

    base = getattr(kineto, "_KinetoProfile", kineto.profile)  # one class before 1.10
    replace(base, "__init__", make_begin)
    for kind in {base, kineto.profile}:
        if "stop" in vars(kind):
            replace(kind, "stop", make_end)
    for name in ("profile", "emit_nvtx", "emit_itt"):
        kind = getattr(plain, name, None)
        if kind is not None:
            replace(kind, "__enter__", make_begin)
            replace(kind, "__exit__", make_end)
