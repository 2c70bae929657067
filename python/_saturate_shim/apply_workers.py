# SPDX-License-Identifier: Apache-2.0
# --apply num_workers. Pilot measures a loader without workers over its first batches. If workers
# pay, Flight starts them in mid-epoch; they continue with the same indices in the same order. If
# batches do not come faster, they are taken back.
from collections import deque
from copy import copy
from itertools import chain
from math import ceil
from time import perf_counter_ns as clock
from time import process_time_ns, thread_time_ns
import os
import weakref

from . import disable
from .apply import applied, cores, refused, taken_back
from .facts import facts
from .hooks_loader import Delay
from .watch import Watch, asks_for_worker
from .steps import steps

SKIP, MEASURE = 2, 8  # batches: left out at the start of the measurement, measured
FILL, JUDGE = 4, 16  # batches until the workers are up to speed, and to judge them by
LEAST_FETCH_NS = 1_000_000
LEAST_GAIN = 1.05
UNDISTURBED = 0.95
ALL_BUSY = 0.75  # speed of a core while all cores work (src/diagnosis/findings_loader.cpp)


def median(values):
    return sorted(values)[len(values) // 2]


def _mean(values):
    return sum(values) / len(values)


def ms(ns):
    return "%.1f ms" % (ns / 1e6)


class _Others:
    """Measures how many cores the other processes keep busy, from its creation on."""

    LEAST_NS = 200_000_000  # the kernel counts in hundredths of a second

    def __init__(self):
        self.began = self.used()

    def used(self):
        """Returns the time, the busy time of all cores, and this process's part of it, in ns."""
        with open("/proc/stat") as stat:
            ticks = [int(word) for word in stat.readline().split()[1:9]]
        busy = sum(ticks) - ticks[3] - ticks[4]  # without idle time and waiting for a disk
        return clock(), busy * 1_000_000_000 // os.sysconf("SC_CLK_TCK"), process_time_ns()

    def __call__(self):
        passed, busy, own = (now - then for now, then in zip(self.used(), self.began))
        return max(0.0, (busy - own) / passed) if passed > self.LEAST_NS else 0.0


def usable(tasks, others, got):
    """Returns how many cores `tasks` tasks of ours would get: the free ones or a fair share. `got`
    is the share of the time that we wanted a core and had one (src/diagnosis/core_use.h)."""
    machine = os.cpu_count() or 1
    rivals = max(others, machine / got - 1) if got < UNDISTURBED else others
    fair = machine * tasks / max(machine, tasks + rivals)
    return min(max(machine - others, fair, 0.1), cores())


class _Rest:
    """The rest of a sampler, as a sampler. Remembers the indices it gave until
    their batch has come."""

    def __init__(self, indices, length):
        self.indices = indices
        self.length = length
        self.pending = deque()

    def __iter__(self):
        return self

    def __next__(self):
        index = next(self.indices)
        self.pending.append(index)
        return index

    def __len__(self):
        return self.length


class Pilot:
    """The measurement and decision for one loader; lives as long as the loader."""

    def __init__(self, torch, loader, wanted):
        self.torch = torch
        self.wanted = wanted
        self.entry = facts.loaders[loader.__dict__["_saturate_id"]]
        self.workers = None  # None: not decided; 0: stays without workers
        self.walls, self.cpus, self.delays, self.computes, self.compute_cpus = [], [], [], [], []
        self.bytes = 0
        self.others = None
        self.before_ns = self.step_ns = self.predicted = 0
        self.draws = False
        self.before = 0  # workers that the script asked for
        self.is_changed = True
        self.refusals = set()
        self.is_persistent = self.is_persistence_known = False
        self.snapshot = None
        self.began = self.start_ns = 0  # start of the previous epoch, and how long starting its iterator took

    # ---- the decision

    def measured(self):
        return len(self.walls) >= SKIP + MEASURE and len(self.computes) >= SKIP + MEASURE - 1

    def decide(self, batches_left):
        fetch, fetch_cpu = median(self.walls[SKIP:]), median(self.cpus[SKIP:])
        fetch_core = fetch_cpu + median(self.delays[SKIP:])
        compute, compute_cpu = median(self.computes[SKIP:]), median(self.compute_cpus[SKIP:])
        step = fetch + compute
        self.before_ns = self.step_ns = _mean(self.walls[SKIP:]) + _mean(self.computes[SKIP:])
        asked = self.wanted.number("num_workers")
        said = "a batch takes %s, a step %s" % (ms(fetch), ms(compute))
        if fetch < LEAST_FETCH_NS:
            return self.refuse("%s: handing it over from a worker would cost as much" % said)
        if not asked and fetch < 0.05 * step:
            return self.refuse("%s: only %.0f %% is waiting" % (said, 100 * fetch / step))
        most = 4 * cores() if fetch_core < 0.5 * fetch else cores()  # waiting for a disk needs no core
        workers = asked or max(1, min(most, ceil(1.2 * fetch / max(compute, 1))))
        room = self.room()
        while room is not None and workers > 1 and workers * 2 * self.bytes > room:
            workers -= 1
        if room is not None and workers * 2 * self.bytes > room:
            return self.refuse("/dev/shm has no room for its batches")
        share = usable(min(workers, cores()), self.others() if self.others else 0.0, fetch_cpu / max(fetch_core, 1))
        work = (fetch_cpu + compute_cpu) / (share * ALL_BUSY if cores() > 1 else 1)
        after = max(compute, fetch / workers, work) + 300_000
        self.predicted = step / after
        if not asked and self.predicted < LEAST_GAIN:
            return self.refuse(
                "%s: %d worker%s on %d cores would gain %.2fx"
                % (said, workers, "" if workers == 1 else "s", cores(), self.predicted)
            )
        if not asked and batches_left is not None and batches_left * (step - after) < 500_000_000:
            return None  # too little is left of this epoch; the next one decides
        self.workers = workers
        self.said = said
        return workers

    def refuse(self, text):
        self.workers = 0
        refused("num_workers", text, self.entry)
        return 0

    def room(self):
        try:
            shm = os.statvfs("/dev/shm")
            return shm.f_bavail * shm.f_frsize // 2
        except OSError:
            return None

    def note(self, data):
        """Notes a batch's size. Returns whether a worker could make such a batch."""
        tensors = []
        stack = [data]
        while stack:
            item = stack.pop()
            if isinstance(item, self.torch.Tensor):
                tensors.append(item)
            elif isinstance(item, dict):
                stack.extend(item.values())
            elif isinstance(item, (list, tuple)):
                stack.extend(item)
        self.bytes = max(self.bytes, sum(t.numel() * t.element_size() for t in tensors))
        return not any(t.is_cuda for t in tensors)

    def tell(self):
        text = "%s; %d worker%s, predicted %.2fx" % (
            self.said,
            self.workers,
            "" if self.workers == 1 else "s",
            self.predicted,
        )
        if self.draws:
            text += "; the data set or sampler draws random numbers, which would differ in workers"
        applied("num_workers", text, self.entry, self.workers)


class Flight:
    """One iteration of a loader without workers: in this process at first, then
    perhaps with workers."""

    def __init__(self, pilot, loader, iterator, module):
        # Weak, because the iterator refers to this object and must end when the script drops it.
        self.pilot, self.loader, self.iterator, self.module = pilot, loader, weakref.ref(iterator), module
        self.inner = self.rest = None
        self.returned = self.returned_cpu = self.asked = 0
        self.count = 0
        self.after = []
        self.delay = Delay()
        plain, own = type(iterator)._next_data, self.iterator
        self.plain = lambda: plain(own())
        iterator._next_data = self.next_data
        self.watch = Watch(pilot.torch, loader)
        if pilot.workers is None and pilot.others is None:
            try:
                pilot.others = _Others()
            except (OSError, ValueError):
                pass  # not available on this machine

    def next_data(self):
        if self.inner is not None:
            return self.from_workers()
        pilot = self.pilot
        if pilot.workers is not None:
            return self.plain()
        return self.measure(pilot)

    def measure(self, pilot):
        if self.returned:
            pilot.computes.append(clock() - self.returned)
            pilot.compute_cpus.append(process_time_ns() - self.returned_cpu)
        reason = self.watch.before() or self.reason(pilot)
        if reason is not None:
            pilot.refuse(reason)
            return self.plain()
        now = clock()
        cpu, delay = thread_time_ns(), self.delay()
        before = self.states() if self.count == 1 else None
        data = self.plain()
        done = clock()
        pilot.walls.append(done - now)
        pilot.cpus.append(thread_time_ns() - cpu)
        pilot.delays.append(self.delay() - delay)
        self.count += 1
        try:
            self.watch.after()
            if before is not None:
                pilot.draws = before != self.states()
            if not pilot.note(data):
                pilot.refuse("its samples are already on the GPU")
            elif pilot.measured() and len(pilot.walls) % MEASURE == SKIP:
                self.decide()
        except Exception as error:
            disable("--apply num_workers", error)
        self.returned, self.returned_cpu = clock(), process_time_ns()
        return data

    def reason(self, pilot):
        """Returns why workers would change what is trained, or None."""
        if self.watch.own is not None:
            return "the data set counts in %s while it is read: each worker would count for itself" % self.watch.own
        if asks_for_worker(self.loader):
            return "the data set calls get_worker_info, which answers differently in a worker"
        return None

    def states(self):
        """Returns the states of the random generators that a data set may use."""
        import random
        import sys

        states = [self.pilot.torch.get_rng_state().numpy().tobytes(), random.getstate()]
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            states.append(str(numpy.random.get_state()[2:3]) + str(numpy.random.get_state()[1][:4]))
        return states

    def left(self):
        try:
            return len(self.iterator()) - self.count
        except Exception:
            return None

    def decide(self):
        pilot = self.pilot
        if not pilot.decide(self.left()):
            return
        torch = pilot.torch
        state = torch.get_rng_state()  # a second iterator draws a seed, which the script must not notice
        try:
            loader = copy(self.loader)
            self.rest = _Rest(self.iterator()._sampler_iter, len(self.loader))
            loader.__dict__.pop("_iterator", None)
            loader.__dict__["_iterator"] = None
            loader.__dict__["batch_sampler" if loader._auto_collation else "sampler"] = self.rest
            configure(loader, pilot.workers)
            loader.__dict__["persistent_workers"] = False  # only for this epoch
            self.inner = self.module._MultiProcessingDataLoaderIter(loader)
            steps.set_in_process(pilot.entry["id"], False)
            pilot.tell()
        except Exception as error:
            self.take_back("workers cannot be started: %s" % str(error).split("\n")[0])
        finally:
            torch.set_rng_state(state)

    def take_back(self, text):
        taken_back("num_workers", text, self.pilot.entry)
        self.pilot.workers = 0
        steps.set_in_process(self.pilot.entry["id"], True)
        inner, self.inner = self.inner, None
        if self.rest is not None:  # the indices already handed out come first
            self.iterator()._sampler_iter = chain(list(self.rest.pending), self.rest.indices)
        if inner is not None:
            try:
                inner._shutdown_workers()
            except Exception:
                pass

    def from_workers(self):
        pilot = self.pilot
        reason = self.watch.before_from_workers(pilot.step_ns)
        if reason is not None:
            self.take_back(reason)
            return self.plain()
        asked = clock()
        if self.asked and pilot.before_ns:
            self.after.append(asked - self.asked)
            if len(self.after) == FILL + JUDGE and self.is_slower():
                return self.plain()
        self.asked = asked
        try:
            data = self.inner._next_data()
        except StopIteration:
            raise
        except Exception as error:
            self.take_back("a worker failed: %s" % str(error).strip().split("\n")[-1])
            return self.plain()  # in this process: an error of the data set is raised again, as without the shim
        self.rest.pending.popleft()
        self.watch.after_from_workers()
        return data

    def is_slower(self):
        pilot = self.pilot
        now = _mean(self.after[FILL:])  # not the median: several workers deliver batches in bursts
        text = "measured %.2fx: a step with its batch from %s to %s" % (
            pilot.before_ns / now,
            ms(pilot.before_ns),
            ms(now),
        )
        pilot.before_ns, before = 0, pilot.before_ns
        if now > 1.05 * before and not pilot.wanted.number("num_workers"):
            self.take_back(text)
            return True
        for change in facts.changes:
            if (
                change["name"] == "num_workers"
                and change["loader"] == pilot.entry["id"]
                and change["state"] == "applied"
            ):
                change["text"] += "; " + text
        return False


def configure(loader, workers):
    values = loader.__dict__
    values["num_workers"] = workers
    if values.get("prefetch_factor") is None:
        values["prefetch_factor"] = 2
    loader.multiprocessing_context = "fork"  # a script without __main__ guard must not be imported again


def _may_run_ahead(pilot, loader):
    """Returns why another number of prefetched batches would change what is trained, or None."""
    if isinstance(loader.dataset, pilot.torch.utils.data.IterableDataset):
        return (
            "each worker reads its own part of an iterable data set: another number of workers gives different batches"
        )
    if asks_for_worker(loader):
        return "the data set calls get_worker_info: another number of workers gives different samples"
    return None


def change_workers(pilot, loader):
    """Changes the number of workers before the first epoch of a loader that has some."""
    asked, has = pilot.wanted.number("num_workers"), loader.num_workers
    if asked is None or asked == has:
        return pilot.refuse(
            "the loader already has %d worker%s%s"
            % (
                has,
                "" if has == 1 else "s",
                "; more than the %d cores of this machine" % cores() if has > cores() else "",
            )
        )
    reason = _may_run_ahead(pilot, loader)
    if reason is None and loader._iterator is not None:
        reason = "its workers are already running"
    if reason is not None:
        return pilot.refuse(reason)
    values = loader.__dict__
    pilot.workers = values["num_workers"] = asked
    if asked == 0:
        values["prefetch_factor"] = None
        values["persistent_workers"] = False
    pilot.before = has
    applied("num_workers", "%d worker%s instead of %d" % (asked, "" if asked == 1 else "s", has), pilot.entry, asked)


def follow(pilot, loader, iterator):
    """Watches an epoch with a changed number of workers, in case the loop changes the
    data set or sampler."""
    names = ("sampler", "batch sampler") if pilot.before and pilot.workers else ("data set", "sampler", "batch sampler")
    watch = Watch(pilot.torch, loader, names)
    plain, own = type(iterator)._next_data, weakref.ref(iterator)
    pilot.step_ns = pilot.step_ns or 10_000_000

    def next_data():
        reason = None
        if pilot.is_changed:
            try:
                reason = watch.before_from_workers(pilot.step_ns)
            except Exception as error:
                disable("--apply num_workers", error)
        if reason is not None:
            give_up(pilot, loader, reason + "; the old setting returns with the next epoch")
        data = plain(own())
        if pilot.is_changed:
            watch.after_from_workers()
        return data

    iterator._next_data = next_data


def give_up(pilot, loader, text):
    """Restores the script's number of workers from the next epoch on."""
    taken_back("num_workers", text, pilot.entry)
    pilot.is_changed = pilot.is_persistent = False
    pilot.is_persistence_known = True
    pilot.workers = 0
    values = loader.__dict__
    values["num_workers"], values["_iterator"], values["persistent_workers"] = pilot.before, None, False
    values["prefetch_factor"] = 2 if pilot.before else None


def change_prefetch(pilot, loader, depth):
    if "prefetch_factor" in pilot.refusals:
        return
    reason = _may_run_ahead(pilot, loader)
    if reason is not None:
        pilot.refusals.add("prefetch_factor")
        refused("prefetch_factor", reason, pilot.entry)
        return
    loader.__dict__["prefetch_factor"] = depth
    applied("prefetch_factor", "DataLoader(prefetch_factor=%d)" % depth, pilot.entry, depth)
