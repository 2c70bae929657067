# SPDX-License-Identifier: Apache-2.0
# `saturate run --apply`: settings changed while the script runs. Every change has a level, a gate and a way back; one
# that fails is taken back and said. What was done is in facts (python.json, "changes") with the reason.
import os

from . import disable, replace, say
from .facts import facts
from .remedies import LEVELS, NEEDED, NUMERICS, SAFE  # made from src/remedies/catalogue.cpp
from .steps import steps


class Wanted:
    def __init__(self, text):
        self.values = {}
        self.is_named = text not in ("safe", "numerics", "auto")
        self.only_needed = text == "auto"  # what a finding asks for: waits and restarts are measured first
        if self.is_named:
            for part in text.split(","):
                name, _, value = part.strip().partition("=")
                self.values[name] = value
        else:
            for name in NEEDED if self.only_needed else SAFE + (NUMERICS if text == "numerics" else ()):
                self.values[name] = ""

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
    from . import apply_loader, apply_model

    if set(wanted.values) & set(apply_loader.NAMES):
        apply_loader.install(torch, wanted)
    if set(wanted.values) & set(apply_model.NAMES):
        apply_model.install(torch, wanted)
    if "set_to_none" in wanted:
        _set_to_none(torch)
    if set(wanted.values) & {"fused", "foreach"}:
        _optimizers(torch, wanted)
    if "threads" in wanted and wanted.number("threads"):
        torch.set_num_threads(wanted.number("threads"))
        applied("threads", "torch.set_num_threads(%d)" % wanted.number("threads"), value=wanted.number("threads"))
    _first_step(torch, wanted)


def _first_step(torch, wanted):
    """What can only be judged once the job stands: devices and ranks are known."""
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
    if local * threads <= cores():
        return
    share = max(1, cores() // local)
    text = "%d processes of %d threads on %d cores: torch.set_num_threads(%d)" % (local, threads, cores(), share)
    on_device = facts.device is not None and not str(facts.device).startswith("cpu")
    if not on_device and "tf32" not in wanted and not wanted.is_named:
        refused("threads", text + " changes last digits on a CPU; --apply numerics or threads does it")
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
        refused("tf32", "no GPU with TF32 is used" if capability is None else "capability %d.%d has no TF32" % capability)
    elif torch.get_float32_matmul_precision() == "highest":
        torch.set_float32_matmul_precision("high")
        applied("tf32", 'torch.set_float32_matmul_precision("high")')


def _cudnn_benchmark(torch):
    cudnn = torch.backends.cudnn
    if _capability(torch) is None:
        refused("cudnn_benchmark", "no GPU is used")
    elif cudnn.deterministic or torch.are_deterministic_algorithms_enabled():
        refused("cudnn_benchmark", "the script asks for deterministic algorithms")
    elif not cudnn.benchmark:
        cudnn.benchmark = True
        applied("cudnn_benchmark", "torch.backends.cudnn.benchmark = True")


def _set_to_none(torch):
    told = []

    def make(old):
        def zero_grad(self, set_to_none=True):
            if not set_to_none and not told:
                told.append(1)
                applied("set_to_none", "zero_grad(set_to_none=True)")
            return old(self, True)

        return zero_grad

    from importlib import import_module

    replace(import_module("torch.optim.optimizer").Optimizer, "zero_grad", make)
    replace(torch.nn.Module, "zero_grad", make)


def _optimizers(torch, wanted):
    import inspect

    choices = {"fused", "foreach", "capturable", "differentiable"}
    name = "fused" if "fused" in wanted else "foreach"

    def tensors(groups):
        for item in groups:
            if isinstance(item, dict):
                for tensor in item["params"] if not hasattr(item["params"], "dim") else [item["params"]]:
                    yield tensor[1] if isinstance(tensor, tuple) else tensor
            else:
                yield item[1] if isinstance(item, tuple) else item

    def make(old):
        def __init__(self, params, *args, **kwargs):
            if type(self).__mro__[0].__init__ is not type(self).__init__ or choices & set(kwargs):
                return old(self, params, *args, **kwargs)
            params = [dict(p, params=list(p["params"])) if isinstance(p, dict) else p for p in params]
            if not all(p.is_cuda and p.is_floating_point() for p in tensors(params)):
                refused(name, "%s has parameters that are not on a GPU" % type(self).__name__)
                return old(self, params, *args, **kwargs)
            try:
                old(self, params, *args, **dict(kwargs, **{name: True}))
                applied(name, "%s(..., %s=True)" % (type(self).__name__, name))
            except Exception as error:
                taken_back(name, str(error).split("\n")[0])
                old(self, params, *args, **kwargs)

        return __init__

    for kind in ("Adam", "AdamW", "SGD", "Adagrad"):
        optimizer = getattr(torch.optim, kind)
        if name in inspect.signature(optimizer.__init__).parameters:
            replace(optimizer, "__init__", make)
