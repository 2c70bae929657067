# SPDX-License-Identifier: Apache-2.0
"""ResNet-18 on an image folder, by PyTorch's DataLoader and by Loader.like of it: the same training, timed.

training.py FOLDER [--size N] [--batch N] [--epochs N] [--workers N] [--step-ms MS]: FOLDER/<class>/<image>. One line of JSON for each:
samples per second of the epochs, accuracy on one image of ten that was held back. --step-ms leaves the model out and sleeps as long as a
GPU would take for a step: what the loader alone feeds.
"""
import argparse
import json
import pathlib
import random
import sys
import time

import torch
import torchvision
from torch.utils.data import DataLoader, Subset
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

from saturate_gpu import Loader

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def transform(size, train):
    crop = [v2.RandomResizedCrop(size, scale=(0.5, 1.0)), v2.RandomHorizontalFlip()] if train else [v2.Resize((size, size))]
    return v2.Compose([v2.ToImage(), *crop, v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])


def loaders(options):
    train, test = (ImageFolder(options.folder, transform(options.size, train)) for train in (True, False))
    numbers = list(range(len(train)))
    random.Random(0).shuffle(numbers)
    held = len(numbers) // 10
    return (DataLoader(Subset(train, numbers[held:]), options.batch, shuffle=True, drop_last=True, num_workers=options.workers,
                       persistent_workers=options.workers > 0),
            DataLoader(Subset(test, numbers[:held]), options.batch), len(train.classes))


def accuracy(model, batches):
    model.eval()
    right = count = 0
    with torch.no_grad():
        for images, labels in batches:
            right += (model(images).argmax(1) == labels).sum().item()
            count += len(labels)
    model.train()
    return right / count


def train(name, options, batches, test, classes):
    torch.manual_seed(0)
    model = torchvision.models.resnet18(num_classes=classes)
    optimizer, samples, start = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9), 0, time.monotonic()
    for _ in range(options.epochs):
        for images, labels in batches:
            samples += len(labels)
            if options.step_ms:
                time.sleep(options.step_ms / 1000)
                continue
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
    seconds = time.monotonic() - start
    print(json.dumps({"loader": name, "rate": samples / seconds, "samples": samples, "seconds": seconds,
                      "accuracy": None if options.step_ms else accuracy(model, test)}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    for name, value in (("size", 64), ("batch", 32), ("epochs", 1), ("workers", 2), ("step-ms", 0)):
        parser.add_argument(f"--{name}", type=type(value), default=value)
    options = parser.parse_args()
    theirs, test, classes = loaders(options)
    train("DataLoader", options, theirs, test, classes)
    del theirs
    theirs, test, classes = loaders(options)
    with Loader.like(theirs) as ours, Loader.like(test) as our_test:
        train("Loader.like", options, ours, our_test, classes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
