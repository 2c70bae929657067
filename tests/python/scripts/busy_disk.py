# SPDX-License-Identifier: Apache-2.0
# Well written, and slow all the same: its disk gives 250 samples a second, to whoever asks.
import multiprocessing
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Disk:
    def __init__(self):
        self.free_at = multiprocessing.Value("d", 0.0)

    def read(self):
        with self.free_at.get_lock():
            self.free_at.value = until = max(self.free_at.value, time.monotonic()) + 0.004
        time.sleep(max(0.0, until - time.monotonic()))


class Rows(Dataset):
    def __init__(self):
        self.disk = Disk()

    def __len__(self):
        return 512

    def __getitem__(self, index):
        self.disk.read()
        generator = torch.Generator().manual_seed(index)
        x = torch.randn(64, generator=generator)
        return x, int(x.sum() > 0)


def main():
    torch.manual_seed(7)
    torch.set_num_threads(1)
    loader = DataLoader(Rows(), batch_size=16, shuffle=True, num_workers=2, persistent_workers=True)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(500):
        total = 0.0
        for inputs, labels in loader:
            loss = nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("epoch %d loss %.9f" % (epoch, total / len(loader)), flush=True)


if __name__ == "__main__":
    main()
