# SPDX-License-Identifier: Apache-2.0
"""Batches from the loader process, for every source except a Python data set."""

import array
import json
import os

from .errors import LoaderError
from .process import BATCH, ERROR, GIVE, OPEN, SKIPPED, SLAB, START, STATS, TOLD, Process, error_of, in_our_names
from .slabs import Slab, fields_of, library

HELD_BYTES = 2 << 30  # default limit for batches that the program keeps without a copy
HELD_SLABS = 1024  # and a limit for their number: each needs an open file and a mapping


def held_slabs_max():
    """An eighth of the files that this process may open: other loaders and the program itself also
    need files."""
    return min(HELD_SLABS, os.sysconf("SC_OPEN_MAX") // 8)


class Pinned:
    """Page-locks slabs for a GPU. A slab whose batch was copied asynchronously is free when that
    copy is done: an event on the current stream tells, without waiting."""

    def __init__(self, torch):
        self._torch, self._cudart = torch, torch.cuda.cudart()

    def lock(self, tensor):
        code = self._cudart.cudaHostRegister(tensor.data_ptr(), tensor.numel(), 0)
        if int(code) != 0:
            raise LoaderError(
                f"{tensor.numel() >> 20} MiB cannot be page-locked (CUDA error {int(code)}): "
                "raise ulimit -l, or pass pin_memory=False"
            )

    def unlock(self, address):
        self._cudart.cudaHostUnregister(address)

    def mark(self):
        event = self._torch.cuda.Event()
        event.record()
        return event.query


def wants_pinned(wish, module):
    """Returns whether to page-lock: as wished, by default if PyTorch already uses a GPU."""
    if wish is False or module.__name__ != "torch":
        return False
    return module.cuda.is_available() and (wish is True or module.cuda.is_initialized())


class NativeBatches:
    def __init__(self, request, blobs, as_, memory, pin_memory):
        self._request, self._blobs, self._memory = request, blobs, memory
        self._module = library(as_)
        self._is_torch = self._module.__name__ == "torch"
        self._pin = pin_memory
        self.skipped = {}  # sample -> reason; each process finds them again
        self._process = None
        self._generation = 0
        self.open()

    # -- the process

    def open(self):
        self._process = Process()
        self._pinned = Pinned(self._module) if wants_pinned(self._pin, self._module) else None
        self._slabs, self._held, self._busy = {}, {}, []
        self._shared = set()  # slabs that a forked child also maps
        self._gone = {}  # keys: numbers of free slabs, added in any thread when the last array over one is gone
        self._owed = 0
        self._coming = -1  # the batch that comes next without a new START, counted over all epochs
        try:
            text = json.dumps(
                {**self._request, "blobs": {name: len(blob) for name, blob in self._blobs.items()}}
            ).encode()
            self._process.send(OPEN, a=len(text), payload=text + b"".join(self._blobs.values()))
            kind, payload, _, _, _ = self._process.receive()
            if kind == ERROR:
                raise error_of(payload)
            self._told_opened(json.loads(payload))
        except BaseException:
            self.close()
            raise

    def _told_opened(self, facts):
        self.samples, self.batches = facts["samples"], facts["batches"]
        self.classes, self.notes = facts["classes"], facts["notes"]
        self._slab_bytes = facts["slab_bytes"]
        self.fields = fields_of(facts["fields"], self._request["batch_size"])
        make = "torch" if self._is_torch else "numpy"
        self._show = [getattr(field, make)(self._module) for field in self.fields]
        self._show_one = self.fields[0].alone(self._module) if len(self.fields) == 1 else None
        self._ahead = facts["ahead"]  # batches that the process may announce before they are asked for
        limit = self._memory or HELD_BYTES
        # Two slabs stay free for filling; batches kept beyond that are copied.
        self._held_max = max(0, min(limit // max(self._slab_bytes, 1) - 2 - self._ahead, held_slabs_max()))

    def reorder(self, order):
        """Changes the order or the part of the samples, which needs a new process."""
        self.close()
        self._request.update(order)
        self.open()

    @property
    def is_open(self):
        return self._process is not None  # False in a forked child: see after_fork_in_child()

    @property
    def pid(self):
        return self._process.pid if self.is_open else None

    def close(self):
        process, self._process = self._process, None
        if process is not None:
            if self._pinned is not None:
                for slab in self._slabs.values():
                    self._pinned.unlock(slab.address)
            self._slabs, self._held = {}, {}
            process.close()

    # -- forks

    def before_fork(self):
        self._shared.update(list(self._held))

    def after_fork_in_child(self):
        process, self._process = self._process, None
        if process is not None:
            process.abandon()
        self._slabs, self._held = {}, {}

    # -- batches

    def start(self, epoch, batch):
        """Makes the process send batches from this one on."""
        if not self.is_open:
            self.open()
        wanted = epoch * self.batches + batch
        if self._coming == wanted:
            return
        self._generation += 1
        self._process.send(START, epoch, batch, self._generation)
        self._owed, self._coming = self._ahead, wanted

    def next(self):
        """Returns the next batch: a tuple of arrays, or the array if there is only one. Continues
        with the next epoch after the last batch."""
        process = self._process
        if process is None:
            raise LoaderError("this loader is closed")
        waiting = process.frames
        while True:
            if not waiting:
                self._give()
                process.wait()
            kind, payload, a, b, c = waiting.popleft()
            if kind == BATCH:
                if c != self._generation:  # from an interrupted pass
                    self._gone[a] = None
                    continue
                self._owed += 1
                self._coming += 1
                slab = self._slabs[a]
                if self._show_one is None or payload or len(self._held) - len(self._gone) >= self._held_max:
                    return self._lend(slab, b, payload)
                out, self._held[a] = self._show_one(slab, b)
                return out
            if kind == SLAB:
                self._add_slab(a, b)
            elif kind == SKIPPED:
                found = json.loads(payload)
                self.skipped[found["sample"]] = found["why"]
            elif kind == ERROR and c == self._generation:
                self._coming = -1
                raise error_of(payload)

    def stats(self):
        if not self.is_open:
            return {}
        self._process.send(STATS)
        kept = []
        while True:
            frame = self._process.receive()
            if frame[0] == TOLD:
                self._process.put_back(kept)
                found = json.loads(frame[1])
                return {**found, "why_slow": in_our_names(found["why_slow"])} if found else found
            kept.append(frame)

    def _add_slab(self, number, size):
        slab = self._slabs[number] = Slab(number, self._process.take_file(), size, self._gone)
        if self._pinned is not None:
            whole = self._module.frombuffer(slab.show(), dtype=self._module.uint8)
            slab.address = whole.data_ptr()
            self._pinned.lock(whole)

    def _lend(self, slab, samples, payload):
        exporter, lent = slab.lend()
        out = tuple([show(exporter, samples) for show in self._show])
        if payload:
            indices = memoryview(payload).cast("q")
            out += (self._module.tensor(list(indices)) if self._is_torch else self._module.array(indices),)
        self._held[slab.number] = lent
        if len(self._held) - len(self._gone) > self._held_max:
            out = tuple([part.clone() if self._is_torch else part.copy() for part in out])
        return out if len(out) > 1 else out[0]

    def _give(self):
        """Tells the process which slabs are free again, and how many more batches it may send."""
        gone, numbers = self._gone, []
        for number in list(gone):
            del gone[number]
            self._held.pop(number, None)
            if number in self._shared:
                self._shared.remove(number)
                self._drop(number)
                numbers.append(~number)
            elif self._pinned is None:
                numbers.append(number)
            else:
                self._busy.append((self._pinned.mark(), number))
        while self._busy and self._busy[0][0]():
            numbers.append(self._busy.pop(0)[1])
        if numbers or self._owed:
            self._process.send(GIVE, self._owed, payload=array.array("q", numbers).tobytes())
            self._owed = 0

    def _drop(self, number):
        slab = self._slabs.pop(number)
        if self._pinned is not None:
            self._pinned.unlock(slab.address)
