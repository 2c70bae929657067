# SPDX-License-Identifier: Apache-2.0
# The data set holds tensors of the device: on a GPU workers and pinned memory would raise.
# never: pin_memory
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
    def __init__(self, device):
        self.x = torch.randn(512, 16, device=device)

    def __len__(self):
        return 512

    def __getitem__(self, index):
        time.sleep(0.01)  # a lookup beside it
        x = self.x[index]
        return x, (x.sum() > 0).float()


model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model.to(device)
loader = DataLoader(Rows(device), batch_size=8, shuffle=True)
for epoch in range(EPOCHS):
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch %d loss %.9f" % (epoch, loss.item()), flush=True)
