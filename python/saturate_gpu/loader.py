# SPDX-License-Identifier: Apache-2.0
"""The loader: `for batch in loader`. A separate process of the saturate program fills the batches
(docs/loader.md)."""

import array
import operator
import os
import threading
import weakref

from . import transforms as T
from .native import NativeBatches
from .ranks import are_shared_out, found, rank_and_world, shared_seed
from .sources import PythonDataset, Source

_all = weakref.WeakSet()
# Attributes that Loader.like() adds.
OF_LIKE = ("dataset", "sampler", "batch_sampler", "_follows", "_followed", "_may_be_shared_out", "_has_own_seed")


def _quarter_of_memory():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4


def _cache(cache, limit, folder):
    if cache is None:
        return None
    if cache not in ("memory", "disk"):
        raise ValueError(f'cache={cache!r}: expected "memory", "disk" or None')
    if limit is None:
        limit = _quarter_of_memory()
        if cache == "disk":
            where = folder or os.environ.get("SATURATE_CACHE") or os.path.expanduser("~")
            space = os.statvfs(where if os.path.isdir(where) else "/")
            limit = space.f_bavail * space.f_frsize // 2
    return {"place": cache, "limit_bytes": int(limit), "folder": os.path.abspath(os.fspath(folder)) if folder else ""}


def _whole(name, value, low):
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if isinstance(value, bool) or number is None or number < low:
        raise ValueError(f"{name}={value!r}: expected a whole number of at least {low}")
    return number


def _numbers(code, values, what):
    """Converts a list, an array or a tensor to bytes."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    try:
        return array.array(code, values).tobytes()
    except TypeError as problem:
        raise TypeError(f"{what}: {problem}") from None


class Loader:
    """Loads batches from a source. Iterate over it: each pass is one epoch.

    The batches are the same for any number of workers: their order and randomness depend only on
    the seed, the epoch and the sample.

    - source: ImageFolder, ImageFiles, TarShards, Windows or another source of saturate_gpu
    - shuffle, seed: whether and how the order of each epoch is random
    - drop_last: whether to drop a smaller last batch
    - transforms: list of saturate_gpu.transforms
    - workers: threads of the loader process; None adjusts their number to the measured wait
    - prefetch: batches loaded ahead per worker
    - memory: limit in bytes for loaded batches and batches in use; beyond it you get copies
    - rank, world: this process, number of processes; None finds them (torchrun, MPI, Slurm)
    - weights: one per sample, to draw samples with replacement
    - subset: indices of the samples to use
    - cache: "memory" or "disk" keeps decoded images, up to cache_limit bytes; crops stay random
    - cache_folder: where cache="disk" writes
    - dtype, channels_last: of images; "float32", "bfloat16" or "uint8"
    - decode: "exact", or "fast", which may decode large JPEGs at a reduced size
    - exif: whether images are turned upright as their camera says
    - pin_memory: whether to page-lock batches; None: if PyTorch already uses a GPU
    - bad_samples_max: how many different samples may be unreadable before LoaderError is raised
    - sample_timeout: seconds that loading one sample may take
    - tells_samples: whether each batch ends with the indices of its samples
    - as_: "torch" or "numpy"; None: torch if the script has imported it
    """

    def __init__(
        self,
        source,
        batch_size=1,
        shuffle=False,
        seed=0,
        drop_last=False,
        transforms=None,
        *,
        workers=None,
        prefetch=2,
        memory=None,
        rank=None,
        world=None,
        weights=None,
        subset=None,
        cache=None,
        cache_limit=None,
        cache_folder=None,
        dtype="float32",
        channels_last=False,
        decode="fast",
        exif=True,
        pin_memory=None,
        bad_samples_max=100,
        sample_timeout=60.0,
        tells_samples=False,
        as_=None,
    ):
        self._settings = {
            name: value for name, value in locals().items() if name not in ("self", "source")
        }  # before any other local
        batch_size, prefetch = _whole("batch_size", batch_size, 1), _whole("prefetch", prefetch, 1)
        bad_samples_max, seed = _whole("bad_samples_max", bad_samples_max, 0), _whole("seed", seed, 0) & (2**63 - 1)
        if workers is not None:
            workers = _whole("workers", workers, 0)
        for name, value, choices in (
            ("dtype", dtype, ("float32", "bfloat16", "uint8")),
            ("decode", decode, ("fast", "exact")),
        ):
            if value not in choices:
                raise ValueError(f"{name}={value!r}: expected one of {', '.join(choices)}")
        self._finds_rank = rank is None
        rank, world = rank_and_world(rank, world)
        self.batch_size, self.drop_last, self.source = batch_size, bool(drop_last), source
        self._order = {
            "seed": seed,
            "shuffle": bool(shuffle),
            "batch_size": batch_size,
            "drop_last": bool(drop_last),
            "rank": rank,
            "world": world,
        }
        self._start()
        if isinstance(source, PythonDataset):
            from .fallback import PythonBatches

            for name, value in (
                ("transforms", transforms),
                ("cache", cache),
                ("memory", memory),
                ("tells_samples", tells_samples),
            ):
                if value:
                    raise ValueError(
                        f"{name} cannot be used with a PythonDataset: its own Python code makes the samples"
                    )
            self._batches = PythonBatches(source, self._order, workers, prefetch, weights, subset, pin_memory)
        else:
            if not isinstance(source, Source):
                takes = "from_torchvision() takes a data set of torchvision, PythonDataset() any other"
                if isinstance(source, (str, os.PathLike)):
                    takes = f"ImageFolder({os.fspath(source)!r}) is one for a folder of images"
                raise TypeError(f"{type(source).__name__} is not a source of saturate_gpu; {takes}")
            request, blobs = self._request(
                source,
                transforms,
                weights,
                subset,
                {"dtype": dtype, "channels_last": bool(channels_last), "decode": decode, "exif": bool(exif)},
                _cache(cache, cache_limit, cache_folder),
            )
            request.update(
                workers=-1 if workers is None else workers,
                prefetch=prefetch,
                memory_bytes=int(memory or 0),
                bad_samples_max=bad_samples_max,
                sample_ms_max=max(1, int(sample_timeout * 1000)),
                tells_samples=bool(tells_samples),
            )
            self._batches = NativeBatches(request, blobs, as_, memory, pin_memory)
        self._finalizer = weakref.finalize(self, self._batches.close)
        _all.add(self)

    def _start(self):
        self._lock = threading.Lock()
        self._pass = 0  # number of the pass that may continue
        self._epoch = self._batch = 0  # the next batch to return
        self._left = 0  # batches still to come in this epoch
        self._is_fresh = True  # no batch was taken since this position was set
        self._follows = None  # a DistributedSampler whose set_epoch() also sets this loader's epoch
        self._followed = 0  # the epoch that the sampler had last
        self._may_be_shared_out = self._has_own_seed = (
            False  # Loader.like() without a DistributedSampler: see _settle()
        )

    def _request(self, source, transforms, weights, subset, images, cache):
        request, blobs = {"source": source.spec(), **self._order}, source.blobs()
        if source.has_images:
            transform = T.resolved([] if transforms is None else transforms)
            if transform["fit"] == "as_is" and not source.can_be_as_is:
                raise ValueError(
                    f"{type(source).__name__} needs a transform that sets a size, for example Resize((224, 224))"
                )
            request["transform"] = {**transform, **images}
        elif transforms:
            raise ValueError(f"{type(source).__name__} gives no images, so it takes no transforms")
        if cache is not None:
            if not source.can_cache:
                raise ValueError(f"{type(source).__name__} cannot be cached; folders and files of images can")
            request["cache"] = cache
        if subset is not None:
            blobs["subset"] = _numbers("q", subset, "subset")
        if weights is not None:
            blobs["weights"] = _numbers("d", weights, "weights")
        return request, blobs

    @staticmethod
    def like(dataloader, **changes):
        """Makes a Loader that gives what a PyTorch DataLoader over torchvision's images gives.

        `changes` are arguments of Loader that replace those of the DataLoader. Unsupported data
        sets and settings raise ValueError with advice."""
        from .like import like

        return like(dataloader, changes)

    # -- properties

    def __repr__(self):
        return f"<Loader of {type(self.source).__name__}: {self.samples:,} samples, {self._batches.batches:,} batches of {self.batch_size}>"

    def _settle(self):
        """Finds the rank again, since ranks may begin after the loader was made: Lightning starts
        its processes in fit()."""
        shares = self._may_be_shared_out and are_shared_out()
        if self._order["world"] == 1 and (self._finds_rank or shares):
            rank, world = found()
            if world > 1:
                self._order.update(rank=rank, world=world)
                if shares and not self._has_own_seed:
                    self._order["seed"] = shared_seed()
                self._batches.reorder(self._order)

    def __len__(self):
        """Number of batches per epoch on this rank."""
        self._settle()
        return self._batches.batches

    @property
    def samples(self):
        """Number of samples in the source or subset."""
        return self._batches.samples

    @property
    def classes(self):
        """Names of the classes by label; empty if the source has none."""
        return list(self._batches.classes)

    @property
    def notes(self):
        """Notes about how the data was read, one line each."""
        return list(self._batches.notes)

    @property
    def skipped(self):
        """The unreadable samples, each with the reason. Other samples replace them."""
        return list(self._batches.skipped.items())

    @property
    def pid(self):
        """Process id of the loader process; None if there is none."""
        return self._batches.pid

    def stats(self):
        """What the loader process has done so far: bytes read, the time of each part, and why_slow
        if loading is the bottleneck."""
        with self._lock:
            return self._batches.stats()

    # -- passes

    def __iter__(self):
        self._settle()
        if self._follows is not None and self._follows.epoch != self._followed:
            self._followed = self._follows.epoch
            self.set_epoch(self._followed)
        with self._lock:
            if not self._is_fresh:  # the last pass was interrupted: go to the start of the next epoch
                self._epoch, self._batch, self._is_fresh = self._epoch + 1, 0, True
            self._pass += 1
            self._left = self._batches.batches - self._batch
            self._guarded(self._batches.start, self._epoch, self._batch)
            return (_PythonPass if isinstance(self.source, PythonDataset) else _Pass)(self, self._pass)

    def _next(self, number):
        with self._lock:
            if number != self._pass:
                raise RuntimeError("another pass over this loader has begun; two at once need two loaders")
            if self._left == 0:
                self._pass += 1
                return None
            batches = self._batches
            if not batches.is_open:  # after a fork, or if the process died
                self._guarded(batches.start, self._epoch, self._batch)
            try:
                batch = batches.next()
            except BaseException:  # as _guarded(), without a call for every batch
                batches.close()
                raise
            self._left -= 1
            if self._left:
                self._batch += 1
                self._is_fresh = False
            else:  # the next epoch follows the last batch, so a saved state never leads to an empty pass
                self._epoch, self._batch, self._is_fresh = self._epoch + 1, 0, True
            return batch

    def _guarded(self, function, *arguments):
        """Calls the function. Any exception, even Ctrl-C, may have interrupted a message: then the
        process is ended and the position kept."""
        try:
            return function(*arguments)
        except BaseException:
            self._batches.close()
            raise

    def set_epoch(self, epoch):
        """Makes the next pass this epoch. Without it epochs count up by themselves. A position set
        by load_state_dict() in the same epoch is kept."""
        if not (self._is_fresh and self._epoch == epoch):
            self._epoch, self._batch = int(epoch), 0
        self._is_fresh = True

    def state_dict(self):
        """The position of the loader, i.e. the batch that comes next. Exact even in mid-epoch and
        with another number of workers."""
        self._settle()
        return {"version": 1, "epoch": self._epoch, "batch": self._batch, "samples": self.samples, **self._order}

    def load_state_dict(self, state):
        """Continues at a saved position with the saved seed. The data and all other settings that
        determine the order must be the same."""
        self._settle()
        if state.get("version") != 1:
            raise ValueError(
                f"the state of a loader has version {state.get('version')!r}; this package reads version 1"
            )
        for name, value in {"samples": self.samples, **self._order}.items():
            if name != "seed" and state.get(name) != value:
                raise ValueError(
                    f"the state was saved with {name}={state.get(name)}, this loader has {value}: the batches would not "
                    "be those that were to come"
                )
        if not 0 <= state["batch"] <= len(self) or state["epoch"] < 0:
            raise ValueError(
                f"the state is at batch {state['batch']} of epoch {state['epoch']}; there are {len(self)} batches"
            )
        if state["seed"] != self._order["seed"]:
            self._order["seed"] = state["seed"]
            self._batches.reorder(self._order)
        epoch, batch = int(state["epoch"]), int(state["batch"])
        self._epoch, self._batch = (epoch, batch) if batch < len(self) else (epoch + 1, 0)
        self._is_fresh = True
        self._pass += 1

    # -- the end

    def close(self):
        """Ends the loader process. Batches still in use stay valid."""
        with self._lock:
            self._pass += 1
            self._batches.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __reduce__(self):
        """Pickles the loader for another process, which gets a separate loader at
        the same position."""
        settings = {**self._settings, "seed": self._order["seed"]}
        of_like = {name: value for name, value in vars(self).items() if name in OF_LIKE}
        return _again, (type(self), self.source, settings, self._epoch, self._batch, self._is_fresh), of_like

    def _after_fork_in_child(self):
        self._lock = threading.Lock()
        self._batches.after_fork_in_child()


def _again(cls, source, settings, epoch, batch, is_fresh):
    loader = cls(source, **settings)
    loader._epoch, loader._batch, loader._is_fresh = epoch, batch, is_fresh
    return loader


class _Pass:
    """One pass over a loader."""

    def __init__(self, loader, number):
        self._loader, self._number, self._ended = loader, number, False

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._loader)

    def __next__(self):  # `saturate run` times this method, as it does for a DataLoader
        if self._ended:
            raise StopIteration
        batch = self._loader._next(self._number)
        if batch is None:
            self._ended = True
            raise StopIteration
        return batch


class _PythonPass(_Pass):
    """A pass whose batches come from a DataLoader, which is timed itself."""

    __next__ = _Pass.__next__  # a separate attribute: `saturate run` replaces that of _Pass


def _before_fork():
    for loader in list(_all):
        loader._batches.before_fork()


def _after_fork_in_child():
    for loader in list(_all):
        loader._after_fork_in_child()


os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
