# SPDX-License-Identifier: Apache-2.0
# The value that is read decides what happens next: it must be read in every step.
# never: reads, log_interval
# kept: num_workers
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

EPOCHS = int(os.environ.get("EPOCHS", 1000))
torch.manual_seed(5)
torch.set_num_threads(1)

class Rows(Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, index):
        time.sleep(0.01)  # slow storage
        generator = torch.Generator().manual_seed(index)
        x = torch.randn(16, generator=generator)
        return x, (x.sum() > 0).float()


model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = DataLoader(Rows(), batch_size=8, shuffle=True)
for epoch in range(EPOCHS):
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x).squeeze(1), y)
        if loss.item() > 10:
            print("skipped", flush=True)
            continue
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch %d loss %.9f" % (epoch, loss.item()), flush=True)
