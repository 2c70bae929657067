# SPDX-License-Identifier: Apache-2.0
"""ResNet-18 on an image folder, by PyTorch's DataLoader and by Loader.like of it: the same training, timed.

training.py FOLDER [--size N] [--batch N] [--epochs N] [--workers N] [--step-ms MS] [--rounds N] [--make N]: FOLDER/<class>/<image>; --make
makes N pictures there first, in four classes that differ in colour. Both in turns, each round with another seed; a line of JSON for each:
samples per second of the epochs, accuracy on one image of ten that was held back. At the end medians and ranges. --step-ms leaves the
model out and sleeps as long as a GPU would take for a step: what the loader alone feeds.
"""

import argparse
import json
import pathlib
import random
import statistics
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
    crop = (
        [v2.RandomResizedCrop(size, scale=(0.5, 1.0)), v2.RandomHorizontalFlip()]
        if train
        else [v2.Resize((size, size))]
    )
    return v2.Compose([v2.ToImage(), *crop, v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])


def make(folder, count):
    """Photographs of 500x375, about 60 KB; what stands on them follows the class, with some noise."""
    import numpy
    from PIL import Image

    dice = numpy.random.default_rng(0)
    for i in range(count):
        (folder / f"class{i % 4}").mkdir(parents=True, exist_ok=True)
        coarse = dice.integers(0, 255, (12, 16, 3)).astype(numpy.float32)
        coarse[:, :, 0] *= 0.7 + 0.1 * (i % 4) + dice.normal(0, 0.08)
        pixels = numpy.asarray(
            Image.fromarray(coarse.clip(0, 255).astype(numpy.uint8)).resize((500, 375), Image.BICUBIC)
        ).astype(numpy.int16)
        pixels = (pixels + dice.normal(0, 9, pixels.shape)).clip(0, 255).astype(numpy.uint8)
        Image.fromarray(pixels).save(folder / f"class{i % 4}" / f"{i:05}.jpg", quality=90)


def loaders(options):
    train, test = (ImageFolder(options.folder, transform(options.size, train)) for train in (True, False))
    numbers = list(range(len(train)))
    random.Random(0).shuffle(numbers)
    held = len(numbers) // 10
    return (
        DataLoader(
            Subset(train, numbers[held:]),
            options.batch,
            shuffle=True,
            drop_last=True,
            num_workers=options.workers,
            persistent_workers=options.workers > 0,
        ),
        DataLoader(Subset(test, numbers[:held]), options.batch),
        len(train.classes),
    )


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
    found = {
        "loader": name,
        "rate": samples / seconds,
        "samples": samples,
        "seconds": seconds,
        "accuracy": None if options.step_ms else accuracy(model, test),
    }
    print(json.dumps(found), flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    for name, value in (
        ("size", 64),
        ("batch", 32),
        ("epochs", 1),
        ("workers", 2),
        ("step-ms", 0.0),
        ("rounds", 1),
        ("make", 0),
    ):
        parser.add_argument(f"--{name}", type=type(value), default=value)
    options = parser.parse_args()
    if options.make and not options.folder.exists():
        make(options.folder, options.make)
    found = []
    for seed in range(options.rounds):
        torch.manual_seed(seed)
        found.append(train("DataLoader", options, *loaders(options)))
        torch.manual_seed(seed)
        theirs, test, classes = loaders(options)
        with Loader.like(theirs) as ours, Loader.like(test) as our_test:
            found.append(train("Loader.like", options, ours, our_test, classes))
    for name in ("DataLoader", "Loader.like"):
        for what in ("rate", "accuracy"):
            values = [one[what] for one in found if one["loader"] == name and one[what] is not None]
            if values:
                print(
                    f"{name}: {what} {statistics.median(values):.4g} (n={len(values)}, {min(values):.4g}..{max(values):.4g})"
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
