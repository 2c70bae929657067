# SPDX-License-Identifier: Apache-2.0
"""Compares the extension's steps with the shim's Python code: steps_equal.py EXTENSION. Both get the same random events, must
write the same records to their rings and must call Python after the same steps. Prints the number of records compared."""

import importlib.util
import os
import pathlib
import random
import sys
import tempfile

folder = tempfile.TemporaryDirectory()
os.environ["SATURATE_RUN_DIR"] = folder.name
os.environ["SATURATE_SHIM"] = "python"
sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from _saturate_shim import steps as plain  # noqa: E402

spec = importlib.util.spec_from_file_location("_saturate_step", sys.argv[1])
native = importlib.util.module_from_spec(spec)
spec.loader.exec_module(native)


class Pair:
    """Both implementations, which get the same events."""

    def __init__(self, number):
        self.path = os.path.join(folder.name, "native.%d" % number)
        self.steps = plain.Steps()
        self.told = [], []
        self.steps.on_training_step = lambda n, now: self.told[0].append((n, now))
        nothing = lambda *_: None  # noqa: E731
        native.reset()
        native.prepare(
            int,
            self.open,
            lambda n, now: self.told[1].append((n, now)),
            nothing,
            nothing,
            nothing,
            nothing,
            nothing,
            nothing,
            nothing,
            False,
        )
        self.open_both()
        self.optimizers = [object(), object(), object()]

    def open_both(self):
        own = plain.ring_path(os.getpid())
        if os.path.exists(own):
            os.unlink(own)
        self.steps.open_ring()
        self.open()

    def exec(self):
        """Acts like exec in a process: keeps the same ring and forgets everything else."""
        self.steps.reset()
        native.reset()
        self.steps.open_ring()
        self.open()

    def open(self):
        native.open(self.path, os.getpid(), -1, 1, 1)

    def tell(self, name, *numbers):
        native.tell(name, *numbers)
        s = self.steps
        if name == "optimizer":
            s.optimizer_stepped(self.optimizers[numbers[0] - 1], *numbers[1:])
        elif name == "collected":
            s.gc += numbers[0]
        elif name == "waited":
            s.syncs += 1
            s.sync += numbers[0]
        elif name == "loss":
            (s.loss_read if numbers[1] else s.loss_known)(float(numbers[0]))
        else:
            {"asked": s.asked, "got": s.got, "ended": s.ended, "backward": s.backward_done}[name](*numbers)

    def records(self):
        size = plain.RECORDS_AT + plain.RECORD_BYTES * self.steps.written
        with open(self.path, "rb") as file:
            other = file.read(size)
        mine = bytes(self.steps.ring[:size])
        return mine, other


def run(number):
    draw = random.Random(number)
    pair = Pair(number)
    if draw.random() < 0.7:
        pair.steps.optimizer_made()
        native.set_has_optimizer()
    weights = [draw.random() ** 2 for _ in range(8)]
    now = 1000
    for _ in range(400):
        now += draw.randrange(1, 2_000_000)
        kind = draw.choices(range(8), weights)[0]
        took = draw.randrange(0, 1_500_000)
        owner = draw.randrange(0, 2)
        if kind < 2:
            pair.tell("asked", owner, now)
            if kind == 0:
                pair.tell("got", owner, now, now + took, draw.randrange(0, 65))
            else:
                pair.tell("ended", owner, now, now + took)
            now += took
        elif kind == 2:
            pair.tell("optimizer", draw.randrange(1, 4), took, now)
        elif kind == 3:
            if draw.random() < 0.4:
                pair.tell("loss", draw.randrange(-9, 9), 0)
            pair.tell("backward", took, now)
            if draw.random() < 0.4:
                pair.tell("loss", draw.randrange(-9, 9), 1)
        elif kind == 4:
            pair.tell("collected", took)
        elif kind == 5:
            pair.tell("waited", took)
        elif kind == 6:
            pair.steps.put_aside(plain.CHECKPOINT, owner, now, took)
            native.put_aside(plain.CHECKPOINT, owner, now, took)
        else:
            at, every = now + draw.randrange(0, 10_000_000), draw.random() < 0.2
            pair.steps.wake(at, every)
            native.wake(at, every)
    pair.steps.finish()
    native.finish()
    before = pair.steps.written
    pair.exec()
    pair.tell("optimizer", 1, 5, now)
    pair.tell("optimizer", 1, 5, now + 10)
    assert pair.steps.written == before + 1, "the steps before exec are forgotten"
    mine, other = pair.records()
    assert mine == other, "other records after draw %d" % number
    assert pair.told[0] == pair.told[1], "Python is woken after other steps in draw %d" % number
    assert int.from_bytes(mine[24:32], "little") == pair.steps.written, "the ring counts other records than it holds"
    training, loop = native.state()[:2]
    assert (training, loop) == (pair.steps.training, pair.steps.loop), "other state after draw %d" % number
    return pair.steps.written


print(sum(run(number) for number in range(60)), "records are the same")
