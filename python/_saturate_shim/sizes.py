# SPDX-License-Identifier: Apache-2.0
# Samples where no loader tells them. A data set that gives whole batches is read with DataLoader(batch_size=1): every batch
# is then [1, n, ...], and the script takes it out of its shell; and a script may have no loader of torch's at all. How many
# samples a step holds is what the model is given: looked at in single steps, through a hook on all modules that is out
# again when the step is over.
import sys

from .steps import size_of, steps

NO_LOADER = -1


def _compiles():
    dynamo = sys.modules.get("torch._dynamo.utils")
    return dynamo is not None and bool(dynamo.counters["stats"])


class ReadyMade:
    def __init__(self, torch):
        self.torch = torch
        self.handle = None
        self.clear()

    def clear(self):
        self.seen = 0  # samples of one call
        self.total = 0  # of all calls of the same module in the step
        self.module = None  # the first that is called is the model

    def after_step(self, entries, is_due):
        """entries: the loaders, as facts describe them."""
        without_loader = steps.loop in ("optimizer", "backward")
        if self.handle is not None:
            self.handle.remove()
            self.handle = None
            if without_loader:
                steps.set_samples(NO_LOADER, self.total)
            elif self.seen > 1:
                for entry in entries:
                    if entry.get("batch_size") == 1:
                        entry["ready_made"] = self.seen
                        steps.set_samples(entry["id"], self.seen)
        # A model that is compiled would be compiled anew for the hook.
        if is_due and not _compiles() and (without_loader or any(entry.get("batch_size") == 1 for entry in entries)):
            self.clear()
            self.handle = self.torch.nn.modules.module.register_module_forward_pre_hook(self.look)

    def look(self, module, arguments):
        if not module.training or self.module not in (None, id(module)):
            return
        for value in arguments:
            if isinstance(value, self.torch.Tensor) and value.dim() < 2:
                continue
            # [time, 1, features] is one sample in the order that recurrent layers take.
            is_turned = isinstance(value, self.torch.Tensor) and value.dim() == 3 and value.shape[1] == 1
            size = 1 if is_turned else size_of(value, self.torch.Tensor)
            if size:
                self.module = id(module)
                self.seen = self.seen or size
                self.total += size
                return
