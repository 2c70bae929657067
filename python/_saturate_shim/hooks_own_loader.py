# SPDX-License-Identifier: Apache-2.0
# The hooks on saturate_gpu.Loader, which report its passes and batches like those of a DataLoader.
# A PythonDataset is read by a DataLoader, which hooks_loader.py hooks.
import sys
import threading
import weakref
from time import perf_counter_ns as clock

from . import disable, replace
from .facts import facts
from .hooks_loader import next_hook
from .sites import user_frame
from .steps import LOADER, hot, steps

MODULE = "saturate_gpu.loader"


def _is_seen(loader):
    return type(loader.source).__name__ != "PythonDataset"


def _made(loader, frame):
    facts.loader_made(loader, loader.source, user_frame(frame) or frame)
    reference = weakref.ref(loader)
    entry = facts.loaders[loader.__dict__["_saturate_id"]]

    def update():
        loader = reference()
        stats = loader.stats() if loader is not None else None
        if stats:
            entry.update(num_workers=stats["workers"], why_slow=stats["why_slow"] or None)

    facts.before_writing.append(update)


def _started(loader, batches, frame):
    if "_saturate_id" not in loader.__dict__:  # it was made before torch was imported
        _made(loader, frame)
    entry = facts.started(loader, batches, False)
    settings = loader._settings
    entry.update(
        library="saturate_gpu",
        call=None,  # its arguments differ from a DataLoader's
        dataset_size=loader.samples,
        batch_size=loader.batch_size,
        num_workers=settings["workers"],  # None: automatic, follows the measured wait
        pin_memory=getattr(loader._batches, "_pinned", None) is not None,
        persistent_workers=True,
        prefetch_factor=settings["prefetch"],
        drop_last=loader.drop_last,
        shuffle=bool(settings["shuffle"]),
        map_style=True,
        in_memory=False,
    )
    return entry


def hook_own_loader(module):
    thread_id = threading.get_ident
    s = steps

    def make_init(old):
        def __init__(self, *args, **kwargs):
            old(self, *args, **kwargs)
            try:
                if _is_seen(self):
                    _made(self, sys._getframe(1))
            except Exception as error:
                disable("Loader", error)

        return __init__

    def make_iter(old):
        def __iter__(self):
            began = clock()
            batches = old(self)
            try:
                if _is_seen(self):
                    took = clock() - began
                    entry = _started(self, batches, sys._getframe(1))
                    if s.thread == thread_id():
                        if not s.is_open():
                            s.open_ring()
                        s.put_aside(LOADER, entry["id"], began, took)
            except Exception as error:
                disable("Loader.__iter__", error)
            return batches

        return __iter__

    replace(module.Loader, "__init__", make_init)
    replace(module.Loader, "__iter__", make_iter)
    hot(module._Pass, "__next__", next_hook(facts.torch.Tensor), 1)
