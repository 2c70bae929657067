# SPDX-License-Identifier: Apache-2.0
# Trains until a profiler window has been written, or a minute. "old": as a torch that does not ask for one.
import glob
import os
import sys
import time

if "old" in sys.argv:
    os.environ.pop("KINETO_USE_DAEMON")
import torch
from torch import nn

if "old" in sys.argv:
    torch.__version__ = "2.6.0"
torch.set_num_threads(1)
data = torch.utils.data.TensorDataset(torch.randn(3200, 64), torch.randint(0, 4, (3200,)))
loader = torch.utils.data.DataLoader(data, batch_size=32)
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
began, size = time.monotonic(), 0
while time.monotonic() - began < 60:
    for inputs, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    # Whole is what no longer grows over an epoch.
    files = glob.glob(os.path.join(os.environ["SATURATE_RUN_DIR"], "trace_*.json"))
    before, size = size, sum(os.path.getsize(file) for file in files)
    if size and size == before:
        break
print("traced" if size else "not traced")
