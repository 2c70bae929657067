# SPDX-License-Identifier: Apache-2.0
# Changes that --apply was asked for but that were never tried: refused, with what prevented them so
# far. Computed whenever facts are written, so that the last version describes
# the end of the script.
from .apply import LEVELS, SAFE
from .apply_loader import NAMES as LOADER_NAMES
from .facts import facts
from .steps import steps


def unsettled(torch, wanted):
    known = {change["name"] for change in facts.changes}
    return [
        {
            "name": name,
            "level": LEVELS[name],
            "state": "refused",
            "text": _reason(torch, wanted, name),
            "loader": None,
            "value": None,
        }
        for name in wanted.values
        if name not in known
    ]


def _reason(torch, wanted, name):
    loaders = [entry for entry in facts.loaders if entry["starts"] and "library" not in entry]
    workers = [entry.get("num_workers") or 0 for entry in loaders]
    if name in LOADER_NAMES and not loaders:
        return "no PyTorch DataLoader was started"
    if name == "batched_fetch":
        if not any(entry.get("in_memory") for entry in loaders):
            return "no data set consists of tensors in memory"
        return "not needed so far: too few batches were measured, or batches are made in another way"
    if name == "num_workers":
        return "too few batches so far to tell whether workers pay off"
    if name == "pin_memory":
        return "no GPU is used" if not torch.cuda.is_initialized() else "it is already on"
    if name == "persistent_workers":
        if not any(workers):
            return "no loader has workers"
        return (
            "it is already on"
            if all(e.get("persistent_workers") for e in loaders)
            else "starting the workers takes hardly any time"
        )
    if name == "prefetch_factor":
        if wanted.number(name) is None:
            return "needs a number: prefetch_factor=4"
        return "no loader has workers" if not any(workers) else "it already has that value"
    if name == "set_to_none":
        return "zero_grad already sets gradients to None" if sum(steps.zero_grads) else "zero_grad was not called"
    if name in ("fused", "foreach"):
        if {"fused", "foreach"} <= set(wanted.values) and name == "foreach":
            return "fused was requested as well and takes precedence"
        return "no PyTorch optimizer that supports it was created"
    if name in SAFE:
        return "the script has not made a step yet"
    return "no module was called while training, or it already has it"
