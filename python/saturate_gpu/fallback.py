# SPDX-License-Identifier: Apache-2.0
"""The fallback for a Python data set: PyTorch's own worker processes, at PyTorch's speed. Loader
adds an order that is the same for any number of workers, shards of equal length,
epochs and exact state."""

import os
import random

from .errors import LoaderError

NO_SHARED_MEMORY = (
    "allocate shared memory(shm)",
    "out of shared memory",
)  # PyTorch's messages if a worker fails or has died


class _Batches:
    """A batch sampler for the rest of an epoch."""

    def __init__(self, batches):
        self._batches = batches

    def __iter__(self):
        return iter(self._batches)

    def __len__(self):
        return len(self._batches)


class PythonBatches:
    def __init__(self, source, order, workers, prefetch, weights, subset, pin_memory):
        try:
            import torch.utils.data as data
        except ImportError:
            raise ImportError("a PythonDataset needs PyTorch: its DataLoader runs the worker processes") from None
        self._data, self._source, self._order = data, source, order
        self._chosen = list(range(len(source.dataset))) if subset is None else [int(i) for i in subset]
        self._weights = None if weights is None else [float(w) for w in weights]
        if self._weights is not None and len(self._weights) != len(self._chosen):
            raise ValueError(f"{len(self._weights)} weights for {len(self._chosen)} samples")
        self._workers, self._prefetch, self._pin = workers, prefetch, pin_memory
        self.samples, self.classes, self.skipped = len(self._chosen), list(getattr(source.dataset, "classes", [])), {}
        self.notes = ["samples are made by the data set's own Python, in worker processes of PyTorch's DataLoader"]
        self.batches = len(self._of_epoch(0))
        if self.batches == 0:
            raise LoaderError(
                f"{self.samples} samples on {order['world']} processes are not enough for a batch of {order['batch_size']}"
            )
        self.fields, self.pid, self.position, self._iterator = [], None, None, None
        self.is_open = True

    def _of_epoch(self, epoch):
        order, size = self._order, self.samples
        dice = random.Random(f"{order['seed']} {epoch}")
        places = list(range(size))
        if self._weights is not None:
            places = dice.choices(places, self._weights, k=size)
        elif order["shuffle"]:
            dice.shuffle(places)
        each = size // order["world"] if order["drop_last"] else -(-size // order["world"])
        mine = [self._chosen[places[(i * order["world"] + order["rank"]) % size]] for i in range(each)]
        batches = [mine[at : at + order["batch_size"]] for at in range(0, len(mine), order["batch_size"])]
        return batches[:-1] if order["drop_last"] and batches and len(batches[-1]) < order["batch_size"] else batches

    def reorder(self, order):
        self._order = order
        self.batches = len(self._of_epoch(0))
        self.close()

    def start(self, epoch, batch):
        self._iterator = None  # ends the workers of an interrupted pass
        batches = self._of_epoch(epoch)[batch:]
        self._left = len(batches)
        workers = self._workers if self._workers is not None else 2
        extra = {"prefetch_factor": self._prefetch} if workers else {}
        loader = self._data.DataLoader(
            self._source.dataset,
            batch_sampler=_Batches(batches),
            num_workers=workers,
            collate_fn=self._source.collate_fn,
            pin_memory=bool(self._pin),
            **extra,
        )
        self._iterator, self.is_open = iter(loader), True

    def next(self):
        try:
            batch = next(self._iterator)
        except RuntimeError as problem:
            if not any(sign in str(problem) for sign in NO_SHARED_MEMORY):
                raise
            space = os.statvfs("/dev/shm")
            raise LoaderError(
                f"/dev/shm is full ({space.f_blocks * space.f_frsize >> 20} MiB): the worker processes of a PythonDataset hand "
                "batches over there. Give the container more (docker run --shm-size), or take fewer workers, a smaller "
                "batch_size, or workers=0"
            ) from problem
        self._left -= 1
        if self._left == 0:
            self._iterator = None
        return batch

    def stats(self):
        return {}

    def close(self):
        self._iterator, self.is_open = None, False

    def before_fork(self):
        pass

    def after_fork_in_child(self):
        self._of_parent = self._iterator  # kept alive: its destructor would look for workers that belong to the parent
        self.close()
