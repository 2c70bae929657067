# SPDX-License-Identifier: Apache-2.0
# The hooks on torch's DataLoader: when batches are asked for and arrive (steps.py), and how long a
# batch takes in the data set, in this process or in a worker.
import inspect
import os
import struct
import sys
import threading
from importlib import import_module
from time import perf_counter_ns as clock
from time import thread_time_ns

from . import disable, replace
from .beside import iterators
from .facts import facts
from .files import files
from .steps import FETCH_AT, LOADER, SLOT_BYTES, WORKER_SLOTS, hot, ring_path, steps


def fetch_target():
    """For the extension in a worker: returns (path of the ring that counts its batches, worker +
    1). The path is None outside workers."""
    worker = import_module("torch.utils.data._utils.worker").get_worker_info()
    return (None, 0) if worker is None else (_parents_ring(), worker.id + 1)


def _parents_ring():
    import multiprocessing

    parent = multiprocessing.parent_process()
    return ring_path(parent.pid if parent else os.getppid())


def next_hook(tensor):
    """Makes the __next__ of a loader's iterator, which reports requested and received
    batches to steps."""
    thread_id = threading.get_ident
    s = steps

    def make_next(old):
        def __next__(self):
            if s.thread != thread_id():
                return old(self)
            asked_at = clock()
            owner = self.__dict__.get("_saturate_id", 0)
            try:
                s.asked(owner, asked_at)
                asked_at = clock()  # do not count our own time in any step
            except Exception as error:
                disable("step", error)
            try:
                data = old(self)
            except StopIteration:
                self.__dict__["_saturate_ended"] = True
                try:
                    s.ended(owner, asked_at, clock())
                except Exception as error:
                    disable("end of the loader", error)
                raise
            s.got(owner, asked_at, clock(), s.samples_of(owner, data, tensor))
            return data

        return __next__

    return make_next


def hook_loader(torch):
    module = import_module("torch.utils.data.dataloader")
    thread_id = threading.get_ident
    s = steps

    def make_init(old):
        def __init__(self, *args, **kwargs):
            old(self, *args, **kwargs)
            try:
                facts.loader_made(self, self.dataset, sys._getframe(1))
            except Exception as error:
                disable("DataLoader", error)

        return __init__

    def make_iter(old):
        def __iter__(self):
            is_second = False
            try:
                is_second = bool(iterators.living(self))
            except Exception as error:
                disable("DataLoader.__iter__", error)
            began = clock()
            iterator = old(self)
            try:
                iterators.add(self, iterator)
                took = clock() - began
                entry = facts.loader_started(self, iterator, is_second)
                if s.thread == thread_id():
                    if not s.is_open():
                        s.open_ring()
                    s.put_aside(LOADER, entry["id"], began, took)
            except Exception as error:
                disable("DataLoader.__iter__", error)
            return iterator

        return __iter__

    def make_base_init(old):
        def __init__(self, loader):
            try:  # before the fork: workers look for the ring and for their loader's number
                if not s.is_open():
                    s.open_ring()
                _fetch.loader = self._saturate_id = loader.__dict__.get("_saturate_id", 0)
                if s.native is not None:
                    s.native.set_fetch_loader(self._saturate_id)
            except Exception as error:
                disable("DataLoader iterator", error)
            old(self, loader)

        return __init__

    replace(module.DataLoader, "__init__", make_init)
    replace(module.DataLoader, "__iter__", make_iter)
    replace(module._BaseDataLoaderIter, "__init__", make_base_init)
    hot(module._BaseDataLoaderIter, "__next__", next_hook(torch.Tensor))
    if s.native is None:  # otherwise the extension's __next__ measures batches made in this process
        hook_fetch()
    replace(import_module("torch.utils.data._utils.worker"), "_worker_loop", _make_worker_loop)


def hook_fetch():
    fetch = import_module("torch.utils.data._utils.fetch")
    for number, kind in enumerate((fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher)):
        hot(kind, "fetch", _fetch.make, number)


def _make_worker_loop(old):
    def _worker_loop(*args, **kwargs):
        try:
            files.reset()
            if steps.native is not None:
                hook_fetch()
        except Exception as error:
            disable("worker", error)
        try:
            return old(*args, **kwargs)
        finally:
            worker = inspect.signature(old).bind(*args, **kwargs).arguments.get("worker_id", 0)
            files.leave(os.getppid(), _fetch.loader, worker)

    return _worker_loop


class Delay:
    """How long this thread was ready to run without a core, in ns: a slow batch may
    mean a busy machine."""

    def __init__(self):
        self.fd = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)

    def __call__(self):
        return int(os.pread(self.fd, 64, 0).split()[1])


class _Fetch:
    """Adds up the time that each batch takes in the data set, per loader and worker, in the ring.
    Wall time is measured for every batch. CPU time and time without a core are measured for every
    16th batch, or for each one while batches are slow enough to hide the measurement."""

    def __init__(self):
        self.loader = 0
        self.totals = {}  # loader -> [batches, wall, longest, measured batches, their wall, CPU, delay, offset]
        self.pid = 0
        self.ring = None
        self.delay = None
        self.left = 0  # batches until the next close measurement

    def open(self, torch):
        import mmap

        self.pid = os.getpid()
        self.totals = {}
        self.delay = Delay()
        self.worker = import_module("torch.utils.data._utils.worker").get_worker_info()
        if self.worker is None:
            if steps.ring is None:
                steps.open_ring()
            self.ring = steps.ring
            return
        fd = os.open(_parents_ring(), os.O_RDWR | os.O_CLOEXEC)
        try:
            self.ring = mmap.mmap(fd, 0)
        finally:
            os.close(fd)

    def begin(self):
        if self.pid != os.getpid():
            self.ring = None
            self.open(facts.torch)
        self.left -= 1
        if self.left > 0:
            return None
        return thread_time_ns(), self.delay()

    def end(self, wall, began):
        total = self.totals.get(self.loader)
        if total is None:
            worker = self.worker.id % (WORKER_SLOTS - 1) + 1 if self.worker is not None else 0
            offset = FETCH_AT + ((self.loader % 8) * WORKER_SLOTS + worker) * SLOT_BYTES
            total = self.totals[self.loader] = list(struct.unpack_from("<7Q", self.ring, offset)) + [offset]
        total[0] += 1
        total[1] += wall
        if wall > total[2]:
            total[2] = wall
        if began is not None:
            total[3] += 1
            total[4] += wall
            total[5] += thread_time_ns() - began[0]
            total[6] += self.delay() - began[1]
            self.left = 1 if wall > 1000000 else 16
        struct.pack_into("<7Q", self.ring, total[7], *total[:7])

    def make(self, old):
        def fetch(fetcher, indices):
            if self.ring is False:
                return old(fetcher, indices)
            try:
                began = self.begin()
            except Exception:
                self.ring = False  # a worker still has to work without a ring
                return old(fetcher, indices)
            start = clock()
            data = old(fetcher, indices)
            try:
                self.end(clock() - start, began)
            except Exception:
                self.ring = False
            return data

        return fetch


_fetch = _Fetch()
