# SPDX-License-Identifier: Apache-2.0
"""Stops at random places, forks, kills and restored states by the thousand: nothing may leak, hang or change (label slow).

Counted before and after: open files, mappings of batches, resident memory, child processes."""

from common import LoaderTest, enter, make_images

enter()
import gc
import os
import random
import signal
import unittest

import numpy
import torch

from saturate_gpu import Arrays, ImageFolder, Loader, LoaderProcessDied, transforms as T


def counts():
    gc.collect()
    with open("/proc/self/maps") as maps:
        mapped = sum("saturate-batch" in line for line in maps)
    with open("/proc/self/statm") as statm:
        resident = int(statm.read().split()[1]) * 4096
    children = set()
    for thread in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{thread}/children") as file:
            children |= set(file.read().split())
    return {
        "files": len(os.listdir("/proc/self/fd")),
        "mapped": mapped,
        "children": len(children),
        "resident": resident,
    }


class SoakTest(LoaderTest):
    def setUp(self):
        super().setUp()
        self.table = numpy.arange(3000, dtype="int64").reshape(300, 10)
        numpy.save(self.folder / "x.npy", self.table)

    def loader(self, dice, **how):
        return Loader(
            Arrays(self.folder / "x.npy"),
            dice.choice([1, 3, 16, 64]),
            shuffle=True,
            seed=dice.randrange(99),
            workers=dice.choice([0, 1, 2, None]),
            tells_samples=dice.random() < 0.5,
            **how,
        )

    def check(self, batch):
        rows, samples = batch if isinstance(batch, tuple) else (batch, batch[:, 0] // 10)
        self.assertTrue(torch.equal(rows, torch.from_numpy(self.table[samples.numpy()])))

    def stops(self, count, dice):
        """So many passes that end anywhere, a new loader for each fiftieth."""
        held, loader = [], self.loader(dice)
        for i in range(count):
            if i % 50 == 49:
                loader = self.loader(dice, memory=dice.choice([None, 1 << 20]))
            try:
                for left, batch in zip(range(dice.randrange(12), -1, -1), loader):
                    if dice.random() < 0.3:
                        held.append(batch)
                    if dice.random() < 0.2:
                        for one in held:
                            self.check(one)
                        held.clear()
                    if left == 0 and dice.random() < 0.3:
                        raise KeyError
            except KeyError:
                pass

    def test_ten_thousand_stops(self):
        dice = random.Random(1)
        self.stops(200, dice)
        before = counts()
        self.stops(10_000, dice)
        after = counts()
        print(f"10,000 stops: {before} -> {after}")
        self.assertEqual({**after, "resident": 0}, {**before, "resident": 0})
        self.assertLess(after["resident"] - before["resident"], 20 << 20)

    def test_two_hundred_forks(self):
        dice, before = random.Random(2), None
        with self.loader(dice) as loader:
            for i in range(210):
                if i == 10:
                    before = counts()
                passing = iter(loader)
                batch = next(passing)
                child = os.fork()
                if child == 0:
                    status = 1
                    try:
                        if dice.random() < 0.5:
                            for other in loader:
                                self.check(other)
                        self.check(batch)
                        loader.close()
                        status = 0
                    finally:
                        os._exit(status)
                for _, other in zip(range(3), passing):
                    self.check(other)
                self.assertEqual(os.waitpid(child, 0)[1], 0)
                dice.random()
                self.check(batch)
                del batch, other
            for _ in loader:
                pass
            after = counts()
        print(f"200 forks: {before} -> {after}")
        self.assertEqual(after["children"], before["children"])
        self.assertLessEqual(after["files"], before["files"] + 20)  # slabs that are free and mapped
        self.assertLessEqual(after["mapped"], before["mapped"] + 20)
        self.assertLess(after["resident"] - before["resident"], 20 << 20)

    def test_a_hundred_kills(self):
        dice, died = random.Random(3), 0
        before = counts()
        for _ in range(100):
            with self.loader(dice) as loader:
                try:
                    for i, batch in enumerate(loader):
                        self.check(batch)
                        if i == 2:
                            os.kill(loader.pid, dice.choice([signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV]))
                    for _ in range(9):  # all batches of some short epochs may have been here already
                        for batch in loader:
                            self.check(batch)
                except LoaderProcessDied as problem:
                    died += 1
                    self.assertIn("signal", str(problem))
                for batch in loader:
                    self.check(batch)
            del batch
        after = counts()
        print(f"100 kills, {died} noticed: {before} -> {after}")
        self.assertEqual(died, 100)
        self.assertEqual({**after, "resident": 0}, {**before, "resident": 0})

    def test_a_hundred_restored_states(self):
        make_images(self.folder / "images", 50)
        dice = random.Random(4)
        how = dict(
            batch_size=3,
            shuffle=True,
            seed=7,
            transforms=[T.RandomResizedCrop(12), T.HorizontalFlip()],
            tells_samples=True,
        )
        with Loader(ImageFolder(self.folder / "images"), **how, workers=1) as loader:
            states, batches = [], []
            for _ in range(4):
                for _ in range(len(loader)):
                    states.append(loader.state_dict())
                    if not len(batches) % len(loader):
                        passing = iter(loader)
                    batches.append(tuple(part.clone() for part in next(passing)))
                self.assertIsNone(next(passing, None))
        for number in range(100):
            at = dice.randrange(len(states))
            with Loader(ImageFolder(self.folder / "images"), **how, workers=dice.choice([0, 2, 3, 5, None])) as other:
                other.load_state_dict(states[at])
                rest = list(other)
                expected = batches[at : (at // len(other) + 1) * len(other)]
                self.assertEqual(len(rest), len(expected))
                for one, two in zip(rest, expected):
                    self.assertTrue(all(map(torch.equal, one, two)), at)


if __name__ == "__main__":
    unittest.main()
