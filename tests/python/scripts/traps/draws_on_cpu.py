# SPDX-License-Identifier: Apache-2.0
# Numbers drawn on the CPU: drawn elsewhere they would be other numbers.
# never: reads
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
        noise = torch.randint(0, 2, (len(x), 16)).float()
        x = x + 0.01 * noise.to(x.device)
        loss = criterion(model(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch %d loss %.9f" % (epoch, loss.item()), flush=True)
