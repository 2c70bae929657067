# SPDX-License-Identifier: Apache-2.0
# --apply for loaders: workers if they pay (apply_workers.py), workers that stay over epochs, pinned
# memory, and whole-batch indexing for data sets that are tensors in memory.
import functools
from time import perf_counter_ns as clock

from . import disable, replace, watch
from .apply import applied, refused, taken_back
from .apply_workers import SKIP, Flight, Pilot, change_prefetch, change_workers, configure, follow, median, ms
from .beside import Beside, iterators
from .fingerprint import difference, fingerprint
from .memory import tensors_of

NAMES = ("batched_fetch", "num_workers", "pin_memory", "persistent_workers", "prefetch_factor")


def _persist(pilot, loader):
    """Called before an epoch of a loader with workers: keeps the workers, unless the script needs
    new ones."""
    if pilot.is_persistent:
        reason = None
        if iterators.living(loader):
            # torch then shares one iterator, so the outer loop would start again and never end.
            reason = "a second iterator of the loader is created while the first is in use"
        elif difference(pilot.snapshot, fingerprint(loader.dataset, pilot.torch)) is not None:
            reason = "the script changes its data set between epochs"
        if reason is not None:
            pilot.is_persistent = False
            loader.__dict__["persistent_workers"] = False
            loader.__dict__["_iterator"] = None
            taken_back("persistent_workers", reason, pilot.entry)
        elif loader._iterator is not None:
            # A new iterator would draw its seed here. Draw it too, so that the script's later draws
            # stay the same.
            torch = pilot.torch
            torch.empty((), dtype=torch.int64).random_(generator=loader.generator).item()
        return
    if pilot.is_persistence_known or loader.persistent_workers:
        return
    # If the change is wanted only when needed, restarting the workers must have
    # cost noticeable time.
    felt = pilot.start_ns > 0.03 * max(1, clock() - pilot.began)
    if "persistent_workers" in pilot.wanted.by_need and not pilot.workers and not felt:
        return
    pilot.is_persistence_known = True
    if hasattr(loader.dataset, "set_epoch"):
        refused(
            "persistent_workers", "the data set has set_epoch: workers that stay alive would not see it", pilot.entry
        )
    elif pilot.entry["second_iterators"]:
        refused(
            "persistent_workers", "a second iterator of the loader is created while the first is in use", pilot.entry
        )
    else:
        pilot.snapshot = fingerprint(loader.dataset, pilot.torch)
        pilot.is_persistent = True
        loader.__dict__["persistent_workers"] = True
        applied("persistent_workers", "workers stay alive between epochs", pilot.entry, True)


def _batched(torch, module, loader, iterator, pilot):
    """Replaces fetching row by row by one index_select, checked against the plain way
    on the first batch."""
    if "batched_fetch" in pilot.wanted.by_need and pilot.workers == 0 and not pilot.entry.get("batched"):
        return  # it was not needed in the epoch before
    found = tensors_of(torch, loader.dataset)
    plain_collate = module._utils.collate.default_collate
    if found is None or loader.collate_fn is not plain_collate or not loader._auto_collation or loader.num_workers:
        return
    tensors, maps = found
    fetcher = iterator._dataset_fetcher
    plain = fetcher.fetch
    checked = pilot.entry.get("batched", 0)
    returned = 0

    def batched(indices):
        for one in maps:
            indices = [one[i] for i in indices]
        rows = torch.as_tensor(indices)
        return [tensor[rows] for tensor in tensors]

    def measure(indices):
        """Fetches the plain way until it is known whether fetching slows the training."""
        nonlocal returned
        asked = clock()
        if returned:
            pilot.computes.append(asked - returned)
        data = plain(indices)
        returned = clock()
        pilot.walls.append(returned - asked)
        if pilot.measured():
            wall, compute = median(pilot.walls[SKIP:]), median(pilot.computes[SKIP:])
            pilot.workers = 0
            if wall < 0.05 * (wall + compute):
                del fetcher.fetch
                refused(
                    "batched_fetch",
                    "a batch takes %s of %s: it is not needed" % (ms(wall), ms(wall + compute)),
                    pilot.entry,
                )
        return data

    def fetch(indices):
        nonlocal checked
        if "batched_fetch" in pilot.wanted.by_need and pilot.workers is None:
            return measure(indices)
        try:
            result = batched(indices)
            if not checked:
                reference = plain(indices)
                same = len(reference) == len(result) and all(
                    a.dtype == b.dtype and a.stride() == b.stride() and torch.equal(a, b)
                    for a, b in zip(reference, result)
                )
                if not same:
                    raise ValueError("batches differ")
                checked = pilot.entry["batched"] = 1
                applied(
                    "batched_fetch", "the data set is tensors in memory: a batch is one index operation", pilot.entry
                )
            return result
        except Exception as error:
            taken_back("batched_fetch", str(error), pilot.entry)
            del fetcher.fetch
            return plain(indices)

    fetcher.fetch = fetch


def install(torch, wanted):
    from importlib import import_module

    module = import_module("torch.utils.data.dataloader")
    watch.install(torch)
    make_pilot = functools.partial(Pilot, torch, wanted=wanted)
    pilots = Beside()

    def prepare(loader):
        pilot = pilots.get(loader)
        if pilot is None:
            if "_saturate_id" not in loader.__dict__:
                return None
            pilot = make_pilot(loader)
            pilots.set(loader, pilot)
        if "pin_memory" in wanted and not loader.pin_memory and torch.cuda.is_initialized():
            loader.__dict__["pin_memory"] = True
            applied("pin_memory", "DataLoader(pin_memory=True)", pilot.entry, True)
        if "num_workers" in wanted and loader.num_workers > 0 and pilot.workers is None:
            change_workers(pilot, loader)
        if loader.num_workers == 0 and pilot.workers is None and pilot.measured() and "num_workers" in wanted:
            if pilot.decide(None):
                pilot.tell()
        if loader.num_workers == 0 and pilot.workers:
            configure(loader, pilot.workers)
        if loader.num_workers > 0:
            depth = wanted.number("prefetch_factor")
            if depth and loader.prefetch_factor != depth and loader._iterator is None:
                change_prefetch(pilot, loader, depth)
            if "persistent_workers" in wanted:
                _persist(pilot, loader)
        return pilot

    def make_iter(old):
        def __iter__(self):
            pilot = None
            try:
                pilot = prepare(self)
            except Exception as error:
                disable("--apply", error)
            began = clock()
            iterator = old(self)
            try:
                if pilot is not None:
                    pilot.began, pilot.start_ns = began, clock() - began
                if pilot is None:
                    pass
                elif (
                    pilot.is_changed and pilot.workers is not None and self.num_workers == pilot.workers != pilot.before
                ):
                    follow(pilot, self, iterator)
                elif type(iterator) is module._SingleProcessDataLoaderIter:
                    _attend(torch, module, wanted, pilot, self, iterator)
            except Exception as error:
                disable("--apply", error)
            return iterator

        return __iter__

    replace(module.DataLoader, "__iter__", make_iter)


def _attend(torch, module, wanted, pilot, loader, iterator):
    if tensors_of(torch, loader.dataset) is not None:
        if "batched_fetch" in wanted:
            _batched(torch, module, loader, iterator, pilot)
        if wanted.number("num_workers") and pilot.workers is None:
            pilot.refuse("the data set is tensors in memory: workers would be slower")
        return
    is_map = not isinstance(loader.dataset, torch.utils.data.IterableDataset)
    if "num_workers" in wanted and pilot.workers is None:
        if is_map:
            Flight(pilot, loader, iterator, module)
        else:
            pilot.refuse("an iterable data set would be read once by every worker")
