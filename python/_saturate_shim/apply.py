# SPDX-License-Identifier: Apache-2.0
# `saturate run --apply`: changes settings while the script runs. Every change has a level, a check
# that it is allowed, and a way back; a change that fails is taken back and reported. The facts
# (python.json, "changes") list every change with its reason. A requested change that was never
# tried is refused with the reason (outcome.py).
import os

from . import disable, replace, say
from .facts import facts
from .remedies import LEVELS, NEEDED, NUMERICS, SAFE  # made from src/remedies/catalogue.cpp
from .steps import steps

GROUPS = {"safe": SAFE, "numerics": tuple(SAFE) + tuple(NUMERICS), "auto": NEEDED}


class Wanted:
    """A parsed list of names, name=value and groups of names: "safe,num_workers=2"."""

    def __init__(self, text):
        self.values = {}
        self.named = set()
        self.by_need = set()  # wanted only if needed: the wait and the restarts are measured first
        parts = [part.strip() for part in text.split(",")]
        self.is_numeric = "numerics" in parts
        for part in parts:
            name, _, value = part.partition("=")
            if name in GROUPS:
                for one in GROUPS[name]:
                    self.values.setdefault(one, "")
            else:
                self.values[name] = value
                self.named.add(name)
        if "auto" in parts and not {"safe", "numerics"} & set(parts):
            self.by_need = set(NEEDED) - self.named

    def __contains__(self, name):
        return name in self.values

    def number(self, name):
        value = self.values.get(name, "")
        return int(value) if value.isdigit() else None


def applied(name, text, entry=None, value=None):
    facts.change(name, LEVELS[name], "applied", text, entry, value)


def refused(name, text, entry=None):
    facts.change(name, LEVELS[name], "refused", text, entry)


def taken_back(name, text, entry=None):
    facts.change(name, LEVELS[name], "taken back", text, entry)
    say("--apply %s is taken back: %s" % (name, text))


def cores():
    return len(os.sched_getaffinity(0))


def install(torch):
    wanted = Wanted(os.environ["SATURATE_APPLY"])
    from . import apply_loader, apply_model, apply_optimizer, outcome

    if set(wanted.values) & set(apply_loader.NAMES):
        apply_loader.install(torch, wanted)
    if set(wanted.values) & set(apply_model.NAMES):
        apply_model.install(torch, wanted)
    if set(wanted.values) & set(apply_optimizer.NAMES):
        apply_optimizer.install(torch, wanted)
    if "threads" in wanted and wanted.number("threads"):
        torch.set_num_threads(wanted.number("threads"))
        applied("threads", "torch.set_num_threads(%d)" % wanted.number("threads"), value=wanted.number("threads"))
    facts.unsettled = lambda: outcome.unsettled(torch, wanted)
    _first_step(torch, wanted)


def _first_step(torch, wanted):
    """Applies what can only be decided after the first step, when devices and ranks are known."""
    after = steps.on_training_step

    def on_training_step(number, now):
        if number == 1:
            try:
                if "threads" in wanted and not wanted.number("threads"):
                    _threads(torch, wanted)
                if "tf32" in wanted:
                    _tf32(torch)
                if "cudnn_benchmark" in wanted:
                    _cudnn_benchmark(torch)
            except Exception as error:
                disable("--apply", error)
        after(number, now)

    steps.on_training_step = on_training_step


def _threads(torch, wanted):
    local = int(os.environ.get("LOCAL_WORLD_SIZE", 0))
    if not local:
        local = facts.ranks()[1]
    threads = torch.get_num_threads()
    here = (
        local,
        "" if local == 1 else "es",
        threads,
        "" if threads == 1 else "s",
        cores(),
        "" if cores() == 1 else "s",
    )
    if local * threads <= cores():
        refused("threads", "%d process%s of %d thread%s on %d core%s: nothing to cap" % here)
        return
    share = max(1, cores() // local)
    text = "%d process%s of %d thread%s on %d core%s: torch.set_num_threads(%d)" % (*here, share)
    on_device = facts.device is not None and not str(facts.device).startswith("cpu")
    if not on_device and not wanted.is_numeric and "threads" not in wanted.named:
        refused("threads", text + " changes the last digits on a CPU; use --apply numerics or --apply threads")
        return
    torch.set_num_threads(share)
    applied("threads", text, value=share)


def _capability(torch):
    if not torch.cuda.is_initialized():
        return None
    return torch.cuda.get_device_capability()


def _tf32(torch):
    capability = _capability(torch)
    if capability is None or capability < (8, 0):
        refused(
            "tf32", "no GPU with TF32 is used" if capability is None else "capability %d.%d has no TF32" % capability
        )
    elif torch.get_float32_matmul_precision() == "highest":
        torch.set_float32_matmul_precision("high")
        applied("tf32", 'torch.set_float32_matmul_precision("high")')
    else:
        refused("tf32", "it is already on")


def _cudnn_benchmark(torch):
    cudnn = torch.backends.cudnn
    if _capability(torch) is None:
        refused("cudnn_benchmark", "no GPU is used")
    elif cudnn.deterministic or torch.are_deterministic_algorithms_enabled():
        refused("cudnn_benchmark", "the script asks for deterministic algorithms")
    elif not cudnn.benchmark:
        cudnn.benchmark = True
        applied("cudnn_benchmark", "torch.backends.cudnn.benchmark = True")
    else:
        refused("cudnn_benchmark", "it is already on")
