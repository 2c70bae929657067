# SPDX-License-Identifier: Apache-2.0
# Trains until a profiler window is open, or a minute, and ends; "own": begins a profiler of its own first.
import os
import struct
import sys
import time

import torch
from torch import nn

torch.set_num_threads(1)
model = nn.Linear(64, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
ring = os.path.join(os.environ["SATURATE_RUN_DIR"], "ring.%d" % os.getpid())
inputs = torch.randn(32, 64)


def step():
    optimizer.zero_grad()
    model(inputs).square().mean().backward()
    optimizer.step()


def is_open():
    with open(ring, "rb") as file:
        file.seek(80)
        return struct.unpack("<q", file.read(8))[0] != 0


began = time.monotonic()
step()
while not is_open() and time.monotonic() - began < 60:
    for _ in range(20):
        step()
print("open" if is_open() else "never open")
if "own" in sys.argv:
    with torch.profiler.profile() as profile:
        print("closed" if not is_open() else "still open")
        step()
    print("profiled", len(profile.key_averages()) > 0)
