# SPDX-License-Identifier: Apache-2.0
# Facts about the whole job, not about single steps: loaders, optimizers, precision, places of reads
# and saves, changes by --apply. Written as one JSON file per process (docs/run-record.md,
# python.json) after the first steps, then every ten seconds, on request and at the end, so that a
# killed job keeps what was known.
import gc
import json
import os
import sys
import weakref
from time import perf_counter_ns as clock

from . import RUN_DIR, disable, like, losses, profiler, sizes
from .files import files
from .sites import call_at, is_library, site_of, user_frame
from .steps import FIRST_STEPS, FLUSH_AT, PROFILE_AT, steps

EVERY_NS = 10_000_000_000
ENOUGH_READS = 64  # training steps to count reads if there is no device to wait for
_VALUES = ("lr", "momentum", "weight_decay", "betas", "eps")  # taken from an optimizer's first group


def _try(function, otherwise=None):
    try:
        return function()
    except Exception:
        return otherwise


class Read:
    """A place in the script that reads values of tensors."""

    def __init__(self, call, site, in_library):
        self.call, self.site, self.in_library = call, site, in_library
        self.count = self.steps = self.ns = self.waits = self.not_finite = 0
        self.last_step = self.first = self.last = None
        self.is_loss = False

    def object(self):
        number = lambda value: value if value is None or value - value == 0 else None  # noqa: E731
        return {
            "call": self.call,
            "count": self.count,
            "steps": self.steps,
            "waits": self.waits,
            "ns": self.ns,
            "in_library": self.in_library,
            "is_loss": self.is_loss,
            "first": number(self.first),
            "last": number(self.last),
            "not_finite": self.not_finite,
            "site": self.site,
        }


class Facts:
    def __init__(self):
        self.torch = None
        self.pid = os.getpid()
        self.loaders = []  # entries, indexed by number
        self.by_dataset = {}  # id -> entry; the loader keeps the data set alive
        self.optimizers = {}
        self.optimizer_sites = {}
        self.zero_grad_site = None
        self.reads = {}  # (call, code, instruction) -> Read; a specialising interpreter has several per call
        self.read_places = {}  # (call, file, line, whether it is in a library) -> Read
        self.stop_reads = None  # removes the hooks on reads if nothing waits for a device
        self.reads_counted = None  # number of steps, if those hooks were removed
        self.autocasts = {}  # (device, type, enabled) -> [count, site]
        self.compiles = {}  # (file, line) -> arguments of torch.compile
        self.scaler_steps = 0
        self.models = weakref.WeakSet()
        self.model_ids = set()
        self.parallel = {}
        self.saves = {}  # (file, line) -> [count, ns, site]
        self.changes = []  # what --apply did, refused or took back
        self.before_writing = []  # functions that update entries
        self.unsettled = lambda: []  # returns the requested changes that were never tried, with the reason
        self.late = losses.Late() if losses.IS_ASKED else None
        self.profiler = None
        self.next_flush = 0
        self.flushed_ns = 0
        self.losses = None
        self.next_look = 100  # training steps
        self.device = None
        self.is_flushing = False
        self.known_ranks = None

    def forked(self):
        self.pid = os.getpid()
        self.profiler = None
        self.next_flush = 0

    # ---- told by hooks

    def torch_imported(self):
        self.ready_made = sizes.ReadyMade(self.torch)
        self.tell_torch()

    def tell_torch(self):
        """Leaves a file, so that a script that ends before its first step is not mistaken for one
        without torch."""
        try:
            with open(os.path.join(RUN_DIR, "torch.%d" % self.pid), "w", encoding="utf-8") as out:
                out.write(str(self.torch.__version__))
        except OSError:
            pass

    def loader_made(self, loader, dataset, frame):
        known = self.by_dataset.get(id(dataset))
        # Lightning and accelerate create the user's loader again: it is still the user's.
        if known is not None and known["type"] == type(dataset).__name__ and is_library(frame.f_code.co_filename):
            entry = known
        else:
            user = user_frame(frame)
            entry = {
                "id": len(self.loaders),
                "type": type(dataset).__name__,
                "site": site_of(user),
                "starts": 0,
                "second_iterators": 0,
            }
            self.loaders.append(entry)
            self.by_dataset[id(dataset)] = entry
        loader.__dict__["_saturate_id"] = entry["id"]

    def loader_started(self, loader, iterator, is_second):
        number = loader.__dict__.get("_saturate_id")
        if number is None:  # unpickled or copied: __init__ did not run in this process
            self.loader_made(loader, loader.dataset, sys._getframe(2))
        entry = self.started(loader, iterator, loader.num_workers == 0)
        entry["second_iterators"] += is_second
        if entry["starts"] == 1 or entry.get("num_workers") != loader.num_workers:
            self.describe(entry, loader)
        return entry

    def started(self, loader, iterator, in_process):
        """Returns the entry of a loader that begins a pass with `iterator`. in_process: this
        process makes the batches."""
        number = loader.__dict__["_saturate_id"]
        entry = self.loaders[number]
        entry["starts"] += 1
        iterator.__dict__["_saturate_id"] = number
        steps.set_loader(number, int(loader.batch_size or 0), _try(lambda: len(loader), 0), in_process)
        return entry

    def describe(self, entry, loader):
        from .memory import tensors_of

        data = self.torch.utils.data
        entry.update(
            dataset_size=_try(lambda: len(loader.dataset)),
            batch_size=loader.batch_size,
            num_workers=loader.num_workers,
            pin_memory=bool(loader.pin_memory),
            persistent_workers=bool(loader.persistent_workers),
            prefetch_factor=loader.prefetch_factor,
            drop_last=bool(loader.drop_last),
            shuffle=isinstance(loader.sampler, data.RandomSampler) if loader.sampler is not None else None,
            map_style=not isinstance(loader.dataset, data.IterableDataset),
            in_memory=tensors_of(self.torch, loader.dataset) is not None,
            saturate_loader=_try(lambda: like.answer(loader)),
        )

    def optimizer_made(self, optimizer, frame):
        steps.optimizer_made()
        self.optimizer_sites[id(optimizer)] = site_of(user_frame(frame))

    def optimizer_seen(self, optimizer):
        first = optimizer.param_groups[0]
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        devices = sorted({str(p.device) for p in parameters})
        if self.device is None and devices:
            self.device = devices[0]
        self.optimizers[id(optimizer)] = {
            "type": type(optimizer).__name__,
            "groups": len(optimizer.param_groups),
            "values": {name: first[name] for name in _VALUES if isinstance(first.get(name), (int, float, tuple))},
            "site": self.optimizer_sites.get(id(optimizer)),
            "fused": first.get("fused"),
            "foreach": first.get("foreach"),
            "capturable": first.get("capturable"),
            "tensors": len(parameters),
            "parameters": sum(p.numel() for p in parameters),
            "types": sorted({str(p.dtype) for p in parameters}),
            "devices": devices,
        }

    def model_seen(self, module):
        if not self.is_flushing and len(self.model_ids) < 64 and id(module) not in self.model_ids:
            self.model_ids.add(id(module))
            self.models.add(module)

    def read_done(self, name, took, waited, is_loss, result, frame):
        """A tensor's value was read. waited: the host waited for a device. frame: the
        frame of the call."""
        if self.is_flushing:
            return  # our own read
        key = (name, frame.f_code, frame.f_lasti)
        read = self.reads.get(key)
        if read is None:
            if len(self.reads) >= 500:
                return
            site, in_library = site_of(user_frame(frame)), is_library(frame.f_code.co_filename)
            place = (name, site["file"], site["line"], in_library) if site else (name, None, 0, in_library)
            read = self.reads[key] = self.read_places.setdefault(place, Read(name, site, in_library))
        read.count += 1
        read.ns += took
        read.waits += waited
        read.is_loss = read.is_loss or is_loss
        number = steps.training
        if read.last_step != number:
            read.last_step = number
            read.steps += 1
        if type(result) is float:
            if result - result != 0:  # true for NaN and infinity
                read.not_finite += 1
            if read.first is None:
                read.first = result
            read.last = result

    def autocast_entered(self, key, frame):
        entry = self.autocasts.get(key)
        if entry is None:
            entry = self.autocasts[key] = [0, site_of(user_frame(frame))]
        entry[0] += 1

    def compiled(self, words, frame):
        site = site_of(user_frame(frame))
        key = (site["file"], site["line"]) if site else None
        if len(self.compiles) < 50 and key not in self.compiles:
            self.compiles[key] = {
                "site": site,
                "mode": str(words.get("mode")),
                "backend": str(words.get("backend")),
                "dynamic": words.get("dynamic"),
            }

    def zero_grad_to_zero(self, frame):
        if self.zero_grad_site is None:
            self.zero_grad_site = site_of(user_frame(frame))

    def saved(self, took, frame):
        site = site_of(user_frame(frame)) or {"file": "?", "line": 0, "function": "?"}
        entry = self.saves.setdefault((site["file"], site["line"]), [0, 0, site])
        entry[0] += 1
        entry[1] += took

    def change(self, name, level, state, text, entry=None, value=None):
        """Adds a change. state: applied, refused or taken back."""
        self.changes.append(
            {
                "name": name,
                "level": level,
                "state": state,
                "text": text,
                "loader": entry["id"] if entry else None,
                "value": value,
            }
        )

    # ---- after the first training steps, every ten seconds, and when asked for

    def after_step(self, number, now):
        wanted = steps.take_flag(PROFILE_AT)
        if wanted or self.profiler is not None:
            self.profile(wanted)
        if self.stop_reads is not None and number >= ENOUGH_READS:
            self.end_reads()
        self.ready_made.after_step(self.loaders, number < FIRST_STEPS or now > self.next_flush)
        if steps.take_flag(FLUSH_AT) or number == FIRST_STEPS or (number > FIRST_STEPS and now > self.next_flush):
            self.next_flush = now + EVERY_NS
            self.flush()
        is_busy = self.profiler is not None or self.ready_made.handle is not None or self.stop_reads is not None
        steps.wake(self.next_flush, is_busy)

    def end_reads(self):
        stop, self.stop_reads = self.stop_reads, None
        if stop is not None:
            self.reads_counted = steps.training
            stop()

    def profile(self, wanted):
        if self.profiler is None:
            self.profiler = profiler.Window(self.torch, wanted)
        if self.profiler.after_step():
            self.profiler = None

    # ---- the file

    def flush(self):
        if os.getpid() != self.pid or steps.training == 0 or not os.path.isdir(RUN_DIR):
            return
        began = clock()
        self.is_flushing = True
        path = os.path.join(RUN_DIR, "facts.%d" % self.pid)
        try:
            text = json.dumps(self.object(), default=str)
            with open(path + ".part", "w", encoding="utf-8") as out:
                out.write(text)
            os.replace(path + ".part", path)
        except OSError:
            pass  # a full disk costs facts, not the training
        except Exception as error:  # also at exit, where nobody else would catch the error
            disable("facts", error)
        self.is_flushing = False
        self.flushed_ns += clock() - began

    def object(self):
        torch = self.torch
        for update in self.before_writing:
            _try(update)
        rank, world = self.ranks()
        steps.set_rank(rank, world)
        to_zero, to_none = steps.zero_grads
        out = {
            "schema": 1,
            "pid": self.pid,
            "argv": list(getattr(sys, "argv", [])),
            "python": sys.version.split()[0],
            "torch": str(torch.__version__),
            "rank": rank,
            "world_size": world,
            "device": self.device,
            "gpu": _try(self.gpu),
            "steps": steps.training,
            "steps_by": steps.loop,
            "hooks": "python" if steps.native is None else "native",
            "loaders": [
                self.with_call(entry, lambda name: name.endswith("DataLoader"))
                for entry in self.loaders
                if entry["starts"]
            ],
            "optimizers": [
                self.with_call(entry, lambda name, kind=entry["type"]: name == kind)
                for entry in self.optimizers.values()
            ],
            "zero_grad": self.with_call(
                {"to_none": to_none, "to_zero": to_zero, "site": self.zero_grad_site}, lambda name: name == "zero_grad"
            ),
            "reads": [
                read.object()
                for read in sorted(list(self.read_places.values()), key=lambda read: (-read.ns, -read.count))[:50]
            ],
            "reads_steps": steps.training if self.reads_counted is None else self.reads_counted,
            "autocast": [
                {"device": str(key[0]), "type": str(key[1]), "enabled": bool(key[2]), "count": count, "site": site}
                for key, (count, site) in list(self.autocasts.items())
            ],
            "scaler_steps": self.scaler_steps,
            "compile_calls": list(self.compiles.values()),
            "flags": self.flags(),
            "models": _try(self.model_facts, []),
            "parallel": self.parallel,
            "compile": _try(self.compile_facts),
            "memory": _try(self.memory_facts),
            "kept_losses": _try(self.kept_losses),
            "saves": [{"count": count, "ns": ns, "site": site} for count, ns, site in list(self.saves.values())[:20]],
            "changes": self.changes + _try(self.unsettled, []),
            "files": files.object() + files.of_workers(self.pid),
            "files_left_out": files.left_out,
            "own_profiler": profiler.own.was_seen,
            "foreign_steps": steps.foreign_steps,
            "flush_ns": self.flushed_ns,
        }
        if self.late is not None:
            out["late_losses"] = self.late.read(torch)
        return out

    def with_call(self, entry, is_meant):
        if "call" not in entry:
            entry["call"] = _try(lambda: call_at(entry.get("site"), is_meant))
        return entry

    def ranks(self):
        """Returns (rank, world size); rank -1: none. Remembered after the script ends
        its process group."""
        distributed = getattr(self.torch, "distributed", None)
        if distributed is not None and _try(lambda: distributed.is_available() and distributed.is_initialized()):
            self.known_ranks = distributed.get_rank(), distributed.get_world_size()
        return self.known_ranks or (int(os.environ.get("RANK", -1)), int(os.environ.get("WORLD_SIZE", 1)))

    def gpu(self):
        cuda = self.torch.cuda
        if not cuda.is_initialized():
            return None
        properties = cuda.get_device_properties(cuda.current_device())
        return {"name": properties.name, "capability": "%d.%d" % (properties.major, properties.minor)}

    def flags(self):
        torch = self.torch
        cuda, cudnn = torch.backends.cuda, torch.backends.cudnn
        return {
            "tf32_matmul": _try(lambda: torch.get_float32_matmul_precision() != "highest"),
            "tf32_cudnn": _try(lambda: bool(cudnn.allow_tf32)),
            "cudnn_benchmark": _try(lambda: bool(cudnn.benchmark)),
            "cudnn_deterministic": _try(lambda: bool(cudnn.deterministic)),
            "deterministic": _try(lambda: torch.are_deterministic_algorithms_enabled()),
            "threads": _try(torch.get_num_threads),
            "cores": _try(lambda: len(os.sched_getaffinity(0))),
            "omp_num_threads": os.environ.get("OMP_NUM_THREADS"),
            "sdp_flash": _try(lambda: cuda.flash_sdp_enabled()),
        }

    def model_facts(self):
        torch = self.torch
        found = []
        for module in list(self.models):
            parameters = list(module._parameters.values()) + [
                p for child in module.children() for p in child.parameters()
            ]
            parameters = [p for p in parameters if p is not None]
            if not parameters:
                continue
            images = [p for p in parameters if p.dim() == 4]
            found.append(
                {
                    "type": type(module).__name__,
                    "tensors": len(parameters),
                    "parameters": sum(p.numel() for p in parameters),
                    "types": sorted({str(p.dtype) for p in parameters}),
                    "convolutions": len(images),
                    "channels_last": bool(images)
                    and all(p.is_contiguous(memory_format=torch.channels_last) for p in images),
                    "compiled": type(module).__name__ == "OptimizedModule"
                    or getattr(module, "_compiled_call_impl", None) is not None,
                }
            )
        return sorted(found, key=lambda model: -model["parameters"])[:4]

    def compile_facts(self):
        dynamo = sys.modules.get("torch._dynamo.utils")
        if dynamo is None:
            return None
        counters = dynamo.counters
        return {
            "graphs": counters["stats"].get("unique_graphs", 0),
            "graph_breaks": sum(counters["graph_break"].values()),
            "recompiles": sum(counters.get("recompiles", {}).values()) if "recompiles" in counters else None,
        }

    def memory_facts(self):
        cuda = self.torch.cuda
        if not cuda.is_initialized():
            return None
        return {"peak_allocated_bytes": cuda.max_memory_allocated(), "peak_reserved_bytes": cuda.max_memory_reserved()}

    def kept_losses(self):
        """Counts scalars that still hold the graph that made them, compared with the steps: losses
        kept in a list. Visits every object, which takes milliseconds, so only when the steps have
        doubled. Keeps the highest count, because at the end the list may be gone."""
        if steps.training >= self.next_look:
            self.next_look = 2 * steps.training
            tensor = self.torch.Tensor
            kept = sum(
                1 for one in gc.get_objects() if type(one) is tensor and one.grad_fn is not None and one.numel() == 1
            )
            if self.losses is None or kept >= self.losses["with_graph"]:
                self.losses = {"with_graph": kept, "of": steps.training}
        return self.losses


facts = Facts()
