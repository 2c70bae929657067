# SPDX-License-Identifier: Apache-2.0
"""Sorts small pictures into ten kinds. An ordinary training script with common mistakes: `saturate fix -- python train.py` finds them.

The pictures are made on the spot (pictures/, 2,000 files, a few megabytes), the first time it runs.
"""
import argparse
import json
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from data import Pictures, make_pictures


class Net(nn.Module):
    def __init__(self, width, kinds):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(16 * width, kinds))

    def forward(self, x):
        return self.layers(x)


def train(config, device):
    data = Pictures(config["data"]["folder"], config["data"]["size"])
    loader = DataLoader(
        data,
        batch_size=config["train"]["batch_size"],
        shuffle=True,
        num_workers=config["train"]["num_workers"],
    )
    model = Net(config["model"]["width"], 10).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=config["train"]["lr"])
    for epoch in range(config["train"]["epochs"]):
        start = time.time()
        total = 0.0
        for step, (x, y) in enumerate(loader):
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            out = model(x)
            loss = criterion(out, y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("epoch %d: loss %.4f, %.1f s" % (epoch, total / len(loader), time.time() - start))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="config.json")
    args = parser.parse_args()
    with open(args.config, encoding="utf-8") as file:
        config = json.load(file)
    if not os.path.isdir(config["data"]["folder"]):
        make_pictures(config["data"]["folder"])
    torch.set_num_threads(1)  # one core computes, the others load
    torch.manual_seed(config["seed"])
    train(config, torch.device("cuda" if torch.cuda.is_available() else "cpu"))


if __name__ == "__main__":
    main()
