# SPDX-License-Identifier: Apache-2.0
# The data set draws its order anew after every epoch, in the training process.
# never: persistent_workers
# kept: num_workers
import os
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

EPOCHS = int(os.environ.get("EPOCHS", 1000))
torch.manual_seed(5)
random.seed(5)
torch.set_num_threads(1)

class Rows(Dataset):
    def __init__(self):
        self.mapping = list(range(512))

    def shuffle(self):
        random.shuffle(self.mapping)

    def __len__(self):
        return 512

    def __getitem__(self, index):
        time.sleep(0.01)  # slow storage
        generator = torch.Generator().manual_seed(self.mapping[index])
        x = torch.randn(16, generator=generator)
        return x, (x.sum() > 0).float()


model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
data = Rows()
loader = DataLoader(data, batch_size=8, num_workers=1)
for epoch in range(EPOCHS):
    data.shuffle()
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch %d loss %.9f" % (epoch, loss.item()), flush=True)
