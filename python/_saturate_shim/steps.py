# SPDX-License-Identifier: Apache-2.0
# Turns the events of the hooks into steps and writes them into a ring that `saturate run` maps and
# reads. One ring per process, made when the first loader starts or the first optimizer steps;
# src/telemetry/step_ring_layout.h has its layout. This is the hot path. The extension
# _saturate_step (native.py) does the same in an eighth of the time; this version is for processes
# that cannot load it, and costs 55 to 65 us per step (bench/run).
#
# A step begins when a batch is asked for and ends when the next one is asked for. A batch without
# backward is evaluation. Several batches up to one optimizer step are one step. Without a loader a
# step lasts from one optimizer step to the next; without an optimizer, from one
# backward to the next.
import mmap
import os
import struct
import threading

from . import RUN_DIR, replace

TRAINING, EVALUATION, LOADER, CHECKPOINT = 1, 2, 3, 4
CAPACITY = 1 << 16
SLOTS, SLOT_BYTES, WORKER_SLOTS = 256, 64, 32
FETCH_AT, RECORDS_AT = 4096, 4096 + SLOTS * SLOT_BYTES
COUNT_AT, FLUSH_AT, PROFILE_AT, OWN_PROFILER_AT, ENDED_AT, WINDOW_AT = 24, 64, 68, 72, 76, 80
MANY_STEPS = 64  # after this many optimizer steps on one batch, the loader no longer marks the step boundaries
FIRST_STEPS = 3  # on_training_step is called after each of these
IDLE_NS = 10_000_000_000  # then another thread may take over

_RECORD = struct.Struct("<IIIIqqqqqqqIIdII")
RECORD_BYTES = _RECORD.size
_COUNT = struct.Struct("<Q")
_HEAD = struct.Struct("<8sIIQQQiiii")
_write, _count = _RECORD.pack_into, _COUNT.pack_into
_OF_A_STEP = (
    "samples",
    "syncs",
    "sync",
    "gc",
    "backward",
    "optimizer",
    "backwards",
    "optimizer_steps",
    "loss",
    "losses",
    "batches",
)


def ring_path(pid):
    return os.path.join(RUN_DIR, "ring.%d" % pid)


def place(ranks):
    rank, world = ranks()
    return rank, world, int(os.environ.get("LOCAL_WORLD_SIZE", world))


def size_of(data, tensor, depth=3):
    """Returns the first dimension of the first tensor in a batch; 0 if there is none."""
    if isinstance(data, tensor):
        return data.shape[0] if data.dim() else 0
    if depth and isinstance(data, (list, tuple, dict)) and data:
        return size_of(next(iter(data.values())) if isinstance(data, dict) else data[0], tensor, depth - 1)
    return 0


class Steps:
    native = None
    __slots__ = (
        "ring",
        "written",
        "thread",
        "start",
        "wait",
        "samples",
        "owner",
        "syncs",
        "sync",
        "gc",
        "backward",
        "optimizer",
        "backwards",
        "optimizer_steps",
        "pause",
        "has_stepped",
        "first_optimizer",
        "last_beat",
        "training",
        "loop",
        "on_training_step",
        "backward_depth",
        "has_optimizer",
        "ranks",
        "wake_ns",
        "every_step",
        "batch_sizes",
        "zero_grads",
        "optimizer_at",
        "optimizer_pause",
        "foreign_steps",
        "on_open",
        "ready_made",
        "is_reading",
        "root",
        "is_loss_known",
        "backward_at",
        "loss",
        "losses",
        "batches",
        "own_samples",
        "taken",
        "trained_on",
    )

    def __init__(self):
        self.on_training_step = None  # called with (number, time) after a training step that is due
        self.ranks = lambda: (-1, 1)
        self.on_open = lambda: None
        self.batch_sizes = {}  # by loader, for batches that do not show their size
        self.ready_made = {}
        self.zero_grads = [0, 0]  # calls that set to zero, calls that set to None
        self.reset()

    def reset(self):
        """Starts anew; also in a forked child, which may train itself."""
        self.thread = threading.get_ident()
        self.ring = None
        self.written = self.training = self.last_beat = self.wake_ns = self.optimizer_at = self.optimizer_pause = (
            self.backward_at
        ) = 0
        self.foreign_steps = 0  # optimizer steps in other threads
        self.own_samples = 0  # for a step without a loader
        self.every_step = False
        self.has_stepped = self.has_optimizer = False
        self.first_optimizer = None
        self.loop = ""
        self.backward_depth = 0
        self.is_reading = False
        self.root = None  # weak: the tensor that backward was called on last
        self.is_loss_known = False
        self.trained_on = set()  # the loaders of the last training step
        self.clear()

    def clear(self):
        self.start = self.wait = self.samples = self.pause = 0
        self.owner = -1
        self.taken = set()  # the loaders of the open step
        self.syncs = self.sync = self.gc = self.backward = self.optimizer = 0
        self.backwards = self.optimizer_steps = self.losses = self.batches = 0
        self.loss = 0.0

    def is_open(self):
        return self.ring is not None

    def open_ring(self):
        rank, world, local_world = place(self.ranks)
        size = RECORDS_AT + CAPACITY * RECORD_BYTES
        path = ring_path(os.getpid())
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # Reserve all disk space: writing into a mapped file without space on the
            # disk kills the process.
            os.posix_fallocate(fd, 0, size)
            ring = mmap.mmap(fd, size)
        except OSError:
            os.unlink(path)
            raise
        finally:
            os.close(fd)
        magic, _, _, capacity, written, pid, *_ = _HEAD.unpack_from(ring, 0)
        if magic == b"SATRING1" and (capacity, pid) == (CAPACITY, os.getpid()):
            self.written = written  # from before this process called exec: continue its steps
        _HEAD.pack_into(
            ring, 0, b"\0" * 8, 1, _RECORD.size, CAPACITY, self.written, os.getpid(), rank, world, local_world, 0
        )
        ring[OWN_PROFILER_AT] = ring[ENDED_AT] = 0
        struct.pack_into("<q", ring, WINDOW_AT, 0)
        ring[0:8] = b"SATRING1"  # last: from now on readers may use it
        self.ring = ring
        self.on_open()

    def optimizer_made(self):
        self.has_optimizer = True

    def set_rank(self, rank, world):
        if self.ring is not None:
            struct.pack_into("<ii", self.ring, 40, rank, world)

    def set_loader(self, loader, batch_size, batches, in_process):
        """A loader starts. batches: per epoch, 0 if unknown."""
        self.batch_sizes[loader] = batch_size

    def set_samples(self, loader, samples):
        """Sets how many samples a loader's batch of one has, or a step without a loader (-1)."""
        if loader < 0:
            self.own_samples = samples
        else:
            self.ready_made[loader] = samples

    def samples_of(self, loader, data, tensor):
        size = size_of(data, tensor) or self.batch_sizes.get(loader, 0)
        return self.ready_made.get(loader, 1) if size == 1 else size

    def set_in_process(self, loader, in_process):
        """Not needed here: the fetch hook runs where the batch is made (hooks_loader.py)."""

    def take_flag(self, offset):
        """Returns a request of the ring's reader (FLUSH_AT, PROFILE_AT) and clears it."""
        if self.ring is None or not self.ring[offset]:
            return 0
        value = self.ring[offset]
        self.ring[offset] = 0
        return value

    def set_flag(self, offset, is_set):
        """Sets what the reader must know before it opens a profiler window
        (OWN_PROFILER_AT, ENDED_AT)."""
        if self.ring is not None:
            self.ring[offset] = int(is_set)

    def window_until(self):
        """Returns until when a profiler window opened by `saturate run` may last; 0: no window."""
        return 0 if self.ring is None else struct.unpack_from("<q", self.ring, WINDOW_AT)[0]

    def adopt_thread(self, now):
        """Only one thread's steps count: those of the thread that imported torch, until it stops
        training and another trains. Returns True if from now on the calling thread counts."""
        if self.has_stepped and now - self.optimizer_at <= IDLE_NS:
            self.foreign_steps += 1
            return False
        self.clear()
        self.thread = threading.get_ident()
        self.last_beat = 0
        self.first_optimizer = None
        return True

    def wake(self, at, every_step):
        """Sets when on_training_step is called next, unless the reader asks earlier."""
        self.wake_ns = at
        self.every_step = every_step

    def put(self, kind, loader, start, duration, wait=0):
        ring = self.ring
        if ring is None:
            self.open_ring()
            ring = self.ring
        n = self.written
        _write(
            ring,
            RECORDS_AT + (n % CAPACITY) * RECORD_BYTES,
            kind,
            loader & 0xFFFFFFFF,
            self.samples,
            self.syncs,
            start,
            duration,
            wait,
            self.sync,
            self.gc,
            self.backward,
            self.optimizer,
            self.backwards,
            self.optimizer_steps,
            self.loss,
            self.losses,
            self.batches,
        )
        self.written = n = n + 1
        _count(ring, COUNT_AT, n)

    def put_aside(self, kind, loader, start, duration):
        """Writes a pause, which does not count in the step around it."""
        kept = [getattr(self, name) for name in _OF_A_STEP]
        for name in _OF_A_STEP:
            setattr(self, name, 0)
        self.put(kind, loader, start, duration)
        for name, value in zip(_OF_A_STEP, kept):
            setattr(self, name, value)
        if self.start:
            self.pause += duration

    def put_training(self, now):
        self.put(TRAINING, self.owner, self.start, now - self.start - self.pause, self.wait)
        self.training += 1
        self.trained_on = self.taken
        self.clear()
        if self.on_training_step is None:
            return
        ring = self.ring
        if self.training <= FIRST_STEPS or now > self.wake_ns or self.every_step or ring[FLUSH_AT] or ring[PROFILE_AT]:
            self.on_training_step(self.training, now)

    # ---- from the loader

    def asked(self, owner, now):
        """The next batch is asked for. Ends the open step, unless the step goes on."""
        if not self.start:  # collections and reads before belong to no step
            self.gc = self.sync = self.syncs = 0
        elif self.backwards or self.optimizer_steps:
            if self.optimizer_steps or not self.has_stepped:
                self.put_training(now)
        elif owner == self.owner or self.goes_back_to_training(owner):
            self.put(EVALUATION, self.owner, self.start, now - self.start - self.pause, self.wait)
            self.clear()
        # Otherwise another loader's batch joins this step (zip), or gradients are accumulated over
        # several batches.

    def goes_back_to_training(self, owner):
        """An evaluation need not come to the end of its loader: what it took last is no part of the step that comes now."""
        return owner in self.trained_on and self.trained_on.isdisjoint(self.taken)

    def got(self, owner, asked_at, now, samples):
        if self.start:
            self.wait += now - asked_at
            self.samples += samples
        else:
            self.start = asked_at
            self.wait = now - asked_at
            self.samples = samples
            self.loop = "loader"
        self.batches += 1
        self.owner = owner
        self.taken.add(owner)

    def ended(self, owner, asked_at, now):
        """The loader had no more batches."""
        if self.start:
            if self.backwards or self.optimizer_steps:
                self.put_training(asked_at)
            else:
                self.put(EVALUATION, owner, self.start, asked_at - self.start - self.pause, self.wait)
                self.clear()
        self.last_beat = 0
        if now - asked_at > 1000000:
            self.put_aside(LOADER, owner, asked_at, now - asked_at)

    def finish(self):
        """The process ends: a step left open by a break ended with its last optimizer step."""
        if self.start and self.optimizer_steps:
            self.pause = self.optimizer_pause
            self.put_training(self.optimizer_at)

    # ---- from the optimizer and from backward

    def optimizer_stepped(self, optimizer, took, now):
        # Lightning and LBFGS give step() a closure, in which forward and backward pass happen.
        self.optimizer += min(took, now - self.backward_at)
        self.optimizer_steps += 1
        self.optimizer_at, self.optimizer_pause = now, self.pause
        self.has_stepped = True
        if self.start and self.loop == "loader":
            if self.optimizer_steps < MANY_STEPS:
                return
            self.clear()  # one batch for all steps: next(iter(loader)) before the loop
            self.first_optimizer = None
        if self.first_optimizer is None:
            self.first_optimizer = id(optimizer)
        if self.first_optimizer == id(optimizer):
            self.beat("optimizer", now)

    def loss_known(self, value):
        """Takes the value of the tensor that backward is called on; call before backward_done."""
        self.loss += value
        self.losses += 1

    def loss_read(self, value):
        """The script read the loss after backward. Ignored if the step is over."""
        if self.losses < self.backwards:
            self.loss_known(value)

    def backward_done(self, took, now):
        self.backward += took
        self.backwards += 1
        self.backward_at = now
        # A training loop without an optimizer of torch.
        if not self.has_optimizer and not (self.start and self.loop == "loader"):
            self.beat("backward", now)

    def beat(self, loop, now):
        self.loop = loop
        if self.last_beat:
            self.start = self.last_beat
            self.samples = self.samples or self.own_samples
            self.put_training(now)
        else:
            self.clear()
        self.last_beat = now


def _load():
    if os.environ.get("SATURATE_SHIM") != "python":  # tests set this
        try:
            from .native import NativeSteps

            return NativeSteps()
        except ImportError:
            pass  # another processor, a Python without the stable ABI, or a folder mounted noexec
    return Steps()


steps = _load()


def hot(owner, name, make, number=0):
    """Hooks a function that runs in every step: with the extension's hook, or else with make's."""
    native = steps.native
    return replace(owner, name, make if native is None else lambda old: native.hook(name, owner, old, number))
