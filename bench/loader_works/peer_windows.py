# SPDX-License-Identifier: Apache-2.0
"""A peer of work C: peer_windows.py TABLE SECONDS batched|items|by_hand WORKERS"""

import pathlib
import sys
import time

STARTED = time.monotonic()
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import numpy
import torch
from torch.utils.data import DataLoader, Dataset

from common import time_batches

path, seconds, kind, workers = sys.argv[1], float(sys.argv[2]), sys.argv[3], int(sys.argv[4])
LENGTH, BATCH = 60, 256
table = torch.from_numpy(numpy.load(path))
steps = torch.arange(LENGTH)


class Items(Dataset):
    def __len__(self):
        return len(table) - LENGTH + 1

    def __getitem__(self, index):
        return table[index : index + LENGTH]


class Batched(Items):
    def __getitems__(self, indices):
        return table[torch.tensor(indices)[:, None] + steps]


def by_hand():
    order = torch.randperm(len(table) - LENGTH + 1)
    for at in range(0, len(order) - BATCH + 1, BATCH):
        yield table[order[at : at + BATCH, None] + steps]


def forever():
    dataset = Batched() if kind == "batched" else Items()
    extra = {"collate_fn": lambda batch: batch} if kind == "batched" else {}
    loader = DataLoader(
        dataset, BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0, drop_last=True, **extra
    )
    while True:
        yield from by_hand() if kind == "by_hand" else loader


time_batches(forever(), seconds, len, STARTED)
