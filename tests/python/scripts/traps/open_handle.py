# SPDX-License-Identifier: Apache-2.0
# A file is opened in __init__ and read by seeking: forked workers would share its position.
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

with open("rows.bin", "wb") as file:
    file.write(torch.randn(128, 16).numpy().tobytes())


class Rows(Dataset):
    def __init__(self):
        self.file = open("rows.bin", "rb")

    def __len__(self):
        return 128

    def __getitem__(self, index):
        time.sleep(0.01)  # slow storage
        self.file.seek(index * 64)
        x = torch.frombuffer(bytearray(self.file.read(64)), dtype=torch.float32)
        return x, (x.sum() > 0).float()


model = nn.Sequential(nn.Unflatten(1, (1, 4, 4)), nn.Conv2d(1, 256, 3, padding=1), nn.ReLU(), nn.Conv2d(256, 64, 3, padding=1), nn.ReLU(),
                      nn.Flatten(), nn.Linear(1024, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = DataLoader(Rows(), batch_size=8, shuffle=True)
for epoch in range(EPOCHS):
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch %d loss %.9f" % (epoch, loss.item()), flush=True)
