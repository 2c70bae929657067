# SPDX-License-Identifier: Apache-2.0
# Workers are spawned and the collate function is a closure: it cannot be sent to them.
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
    def __len__(self):
        return 128

    def __getitem__(self, index):
        time.sleep(0.01)  # slow storage
        generator = torch.Generator().manual_seed(index)
        x = torch.randn(16, generator=generator)
        return x, (x.sum() > 0).float()


model = nn.Sequential(nn.Unflatten(1, (1, 4, 4)), nn.Conv2d(1, 256, 3, padding=1), nn.ReLU(), nn.Conv2d(256, 64, 3, padding=1), nn.ReLU(),
                      nn.Flatten(), nn.Linear(1024, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

def main():
    scale = 2.0

    def collate(rows):
        return torch.stack([x for x, _ in rows]) * scale, torch.stack([y for _, y in rows])

    torch.multiprocessing.set_start_method("spawn")
    loader = DataLoader(Rows(), batch_size=8, shuffle=True, collate_fn=collate)
    for epoch in range(EPOCHS):
        for step, (x, y) in enumerate(loader):
            loss = criterion(model(x).squeeze(1), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch %d loss %.9f" % (epoch, loss.item()), flush=True)


if __name__ == "__main__":
    main()
