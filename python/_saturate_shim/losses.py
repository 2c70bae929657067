# SPDX-License-Identifier: Apache-2.0
# Losses of a job on a device, for `run --losses`. They stay on the device and are read together
# when facts are written, so that no step waits for its own loss. Of a long run the first ones and
# some of the later ones are kept.
import os

from .steps import steps

IS_ASKED = bool(os.environ.get("SATURATE_LOSSES"))
FIRST, TAIL = 64, 64


class Late:
    def __init__(self):
        self.known = []  # [step, value]; value None: not finite
        self.kept = []  # [step, tensor]
        self.stride = 1

    def add(self, tensor):
        number = steps.training
        if self.kept and self.kept[-1][0] == number:
            self.kept[-1][1] += tensor.detach()
        elif tensor.numel() == 1 and (number < FIRST or number % self.stride == 0):
            self.kept.append([number, tensor.detach().clone()])
            if len(self.kept) + len(self.known) > FIRST + TAIL:
                self.thin()

    def thin(self):
        self.stride *= 2
        self.known = [one for one in self.known if one[0] < FIRST or one[0] % self.stride == 0]
        self.kept = [one for one in self.kept if one[0] < FIRST or one[0] % self.stride == 0]

    def read(self, torch):
        """Reads all losses except that of the open step."""
        done = [one for one in self.kept if one[0] < steps.training]
        if done:
            values = torch.stack([value.reshape(()).float() for _, value in done]).tolist()
            self.known += [[step, value if value - value == 0 else None] for (step, _), value in zip(done, values)]
            self.kept = self.kept[len(done) :]
        return self.known
