# SPDX-License-Identifier: Apache-2.0
# Trains for so many seconds: timed.py SECONDS [own: with a profiler of its own at the end].
import sys
import time

import torch
from torch import nn

torch.set_num_threads(1)
data = torch.utils.data.TensorDataset(torch.randn(3200, 64), torch.randint(0, 4, (3200,)))
loader = torch.utils.data.DataLoader(data, batch_size=32)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def train(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for inputs, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
            if time.monotonic() >= until:
                return


seconds = float(sys.argv[1])
if "own" in sys.argv:
    train(seconds - 0.1)
    with torch.profiler.profile() as profile:
        train(0.1)
    print("own profile", len(profile.key_averages()) > 0)
else:
    train(seconds)
print("trained")
