# SPDX-License-Identifier: Apache-2.0
# The loop changes its data set between epochs: workers that stay would not see it.
# never: persistent_workers
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
    def __init__(self):
        self.scale = 1.0

    def set_scale(self, scale):
        self.scale = scale

    def __len__(self):
        return 512

    def __getitem__(self, index):
        time.sleep(0.01)  # slow storage
        generator = torch.Generator().manual_seed(index)
        x = torch.randn(16, generator=generator)
        return x * self.scale, (x.sum() > 0).float()


model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
data = Rows()
loader = DataLoader(data, batch_size=8, shuffle=True, num_workers=2)
for epoch in range(EPOCHS):
    data.set_scale(1 + epoch % 3)
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch %d loss %.9f" % (epoch, loss.item()), flush=True)
