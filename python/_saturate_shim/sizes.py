# SPDX-License-Identifier: Apache-2.0
# Finds the number of samples per step if no loader tells it. A data set that returns whole batches
# is read with DataLoader(batch_size=1); each batch is then [1, n, ...] and the script removes the
# first dimension. Or a script has no DataLoader at all. A step then has as many samples as the
# model gets. That is measured in single steps by a hook on all modules, which is removed when the
# step is over.
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
        self.module = None  # the first module called is the model

    def after_step(self, entries, is_due):
        """entries: the loaders as in the facts."""
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
        # The hook would make torch.compile compile a model again.
        if is_due and not _compiles() and (without_loader or any(entry.get("batch_size") == 1 for entry in entries)):
            self.clear()
            self.handle = self.torch.nn.modules.module.register_module_forward_pre_hook(self.look)

    def look(self, module, arguments):
        if not module.training or self.module not in (None, id(module)):
            return
        for value in arguments:
            if isinstance(value, self.torch.Tensor) and value.dim() < 2:
                continue
            # [time, 1, features] is one sample in the order that recurrent layers use.
            is_turned = isinstance(value, self.torch.Tensor) and value.dim() == 3 and value.shape[1] == 1
            size = 1 if is_turned else size_of(value, self.torch.Tensor)
            if size:
                self.module = id(module)
                self.seen = self.seen or size
                self.total += size
                return
