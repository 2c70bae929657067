import random

import lmdb
import numpy as np
import torch
import torch.nn as nn
import wandb
from torch.utils.data import DataLoader, Dataset
torch.multiprocessing.set_start_method("spawn")

class Stored(Dataset):
    def __init__(self, path):
        self.env = lmdb.open(path)
        self.scale = 1

    def set_scale(self, scale):
        self.scale = scale

    def __getitem__(self, index):
        return torch.zeros(3), self.scale


class OnDevice(Dataset):
    def __init__(self, data):
        self.data = data.cuda()

    def __getitem__(self, index):
        return self.data[index]


def pad(batch):
    longest = max(len(x) for x, _ in batch)
    out = torch.zeros(len(batch), longest)
    return out


def train(seed):
    wandb.init(project="x")
    data = Stored("db")
    sampler = torch.utils.data.BatchSampler(range(10), batch_size=4, drop_last=False)

    def seed_worker(worker):
        np.random.seed(seed + worker)

    first = DataLoader(data, batch_sampler=sampler, num_workers=2, collate_fn=pad, worker_init_fn=seed_worker)
    second = DataLoader(OnDevice(torch.zeros(9)), batch_size=3)
    model = nn.DataParallel(nn.Linear(3, 3).cuda())
    criterion = nn.BCELoss()
    params = []
    for name, p in model.named_parameters():
        params.append({"params": p, "lr": 0.1})
    optimizer = torch.optim.Adam(params)
    other = torch.optim.RMSprop(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1, total_steps=1000)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    bad_epochs = 0
    for epoch in range(5):
        data.set_scale(random.choice([1, 2]))
        fresh = DataLoader(data, batch_size=2)
        for x, y in first:
            try:
                noise = torch.randn(3, 3).to("cuda")
                loss = criterion(model(x.cuda() + noise), y.cuda())
                loss.backward()
                optimizer.step()
                other.step()
                schedule.step()
                optimizer.zero_grad()
            except Exception as error:
                print(error)
                continue
        plateau.step(0)
        with open("log.txt", "a") as file:
            file.write("done")
        torch.save(model.state_dict(), "last.pt")
        bad_epochs += 1
        if bad_epochs > 3:
            break


checkpoint = torch.load("last.pt")
train(1)
