# SPDX-License-Identifier: Apache-2.0
# Errors are caught around the step: a change that makes many batches fail looks fast.
# never: num_workers
# kept: threads
# level: numerics
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

EPOCHS = int(os.environ.get("EPOCHS", 1000))
torch.manual_seed(5)
torch.set_num_threads(64)

class Rows(Dataset):
    def __init__(self):
        self.owner = os.getpid()

    def __len__(self):
        return 128

    def __getitem__(self, index):
        if os.getpid() != self.owner and index % 16 == 0:
            raise OSError("the handle belongs to another process")
        time.sleep(0.01)  # slow storage
        generator = torch.Generator().manual_seed(index)
        x = torch.randn(16, generator=generator)
        return x, (x.sum() > 0).float()


model = nn.Sequential(nn.Unflatten(1, (1, 4, 4)), nn.Conv2d(1, 256, 3, padding=1), nn.ReLU(), nn.Conv2d(256, 64, 3, padding=1), nn.ReLU(),
                      nn.Flatten(), nn.Linear(1024, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = DataLoader(Rows(), batch_size=8, shuffle=True)

for epoch in range(EPOCHS):
    batches = iter(loader)
    while True:
        try:
            x, y = next(batches)
            loss = criterion(model(x).squeeze(1), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        except StopIteration:
            break
        except Exception:
            continue
    print("epoch %d loss %.9f" % (epoch, loss.item()), flush=True)
