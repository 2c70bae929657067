# SPDX-License-Identifier: Apache-2.0
# Checks whether batches made by workers would differ: the script changes its data set or sampler in
# the loop, while workers have copies and run ahead, or the data set asks which worker it is in.
import os
import sys
from time import perf_counter_ns as clock

from . import replace
from .fingerprint import difference, fingerprint, name_of, own_change

MOST_SHARE = 0.01  # of a step's time, for looking


class Watch:
    """Watches one iteration of a loader: looks before a batch is asked for and after it came."""

    def __init__(self, torch, loader, names=("data set", "sampler", "batch sampler")):
        self.torch = torch
        parts = {"data set": loader.dataset, "sampler": loader.sampler, "batch sampler": loader.batch_sampler}
        self.watched = {name: parts[name] for name in names if parts[name] is not None}
        self.dataset = loader.dataset  # samplers refer to it too
        self.last = self.asked = None  # after the last batch, and before the current one
        self.own = None  # the path of what the data set changes itself while it is read
        self.took_ns = self.left = 0
        self.is_seldom = False
        self.quick = ()

    def look(self):
        began = clock()
        out = {
            name: fingerprint(value, self.torch, None if name == "data set" else self.dataset)
            for name, value in self.watched.items()
        }
        self.took_ns = clock() - began
        return out

    def before(self):
        """Returns what the loop changed since the last batch, or None."""
        last, now = self.last, self.look()
        self.asked = now
        for name, value in now.items() if last is not None else ():
            if self.is_seldom and name != "data set":
                continue  # a sampler continues by itself meanwhile
            path = difference(last[name], value)
            if path is not None:
                return "the script changes its %s (%s) in the loop: workers would not see it" % (name, name_of(path))
        return None

    def after(self):
        """Looks after a batch that was made in this process."""
        self.last = self.look()
        path = own_change(self.asked["data set"], self.last["data set"])
        if path is not None and self.own is None:
            self.own = name_of(path)

    def before_from_workers(self, step_ns):
        """Looks at every batch, or less often to stay below a hundredth of the time."""
        if self.left > 0 and self.attributes() == self.quick:
            self.left -= 1
            return None
        self.left = int(2 * self.took_ns / max(MOST_SHARE * step_ns, 1))
        self.is_seldom = self.left > 0
        self.quick = self.attributes()
        return self.before()

    def attributes(self):
        """Returns the ids of the data set's own attributes, to notice a
        replaced one immediately."""
        return tuple(map(id, getattr(self.dataset, "__dict__", {}).values()))

    def after_from_workers(self):
        self.last = self.asked if self.is_seldom else self.look()


def _names_worker(code):
    return "get_worker_info" in code.co_names or any(
        _names_worker(inner) for inner in code.co_consts if hasattr(inner, "co_names")
    )


def _functions(loader):
    """Yields the script's own code that a worker would run."""
    for function in (loader.worker_init_fn, loader.collate_fn):
        # In older versions default_collate also asks for its worker, to stack into shared memory.
        if function is not None and not (getattr(function, "__module__", None) or "").startswith("torch."):
            yield function
            yield getattr(type(function), "__call__", None)
    for value in [loader.dataset] + list(getattr(loader.dataset, "__dict__", {}).values())[:64]:
        for kind in type(value).__mro__:
            if not kind.__module__.startswith(("torch.", "builtins", "numpy")):
                yield from list(vars(kind).values())


_calls = [0]  # calls of get_worker_info in this process by the script's own code


def asks_for_worker(loader):
    """Returns whether the script's code names get_worker_info or has called it in this process."""
    if _calls[0]:
        return True
    for function in _functions(loader):
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        if code is not None and _names_worker(code):
            return True
    return False


def install(torch):
    def make(old):
        def get_worker_info():
            _calls[0] += os.sep + "torch" + os.sep not in sys._getframe(1).f_code.co_filename
            return old()

        return get_worker_info

    replace(torch.utils.data, "get_worker_info", make)
