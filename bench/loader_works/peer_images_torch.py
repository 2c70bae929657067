# SPDX-License-Identifier: Apache-2.0
"""A peer of works A and B: peer_images_torch.py A|B FOLDER SECONDS PIL|torchvision.io WORKERS"""

import pathlib
import sys
import time

STARTED = time.monotonic()
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import torch
from PIL import Image
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.io import ImageReadMode, decode_jpeg, decode_png, read_file
from torchvision.transforms import v2

from common import time_batches

work, folder, seconds, kind, workers = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4], int(sys.argv[5])
to_float = [v2.ToDtype(torch.float32, scale=True)]
if work == "A":
    crop = [v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()]
    normalise = [v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]
else:
    crop, normalise = [], [v2.Normalize([0.5], [0.25])]


def read_pil(path):
    image = Image.open(path)
    return image.convert("RGB" if work == "A" else "L")


def read_tensor(path):
    if work == "A":
        return decode_jpeg(read_file(path), mode=ImageReadMode.RGB)
    return decode_png(read_file(path), mode=ImageReadMode.GRAY)


to_image = [v2.ToImage()] if kind == "PIL" else []
dataset = ImageFolder(
    folder, v2.Compose([*crop, *to_image, *to_float, *normalise]), loader=read_pil if kind == "PIL" else read_tensor
)
loader = DataLoader(
    dataset, 64 if work == "A" else 128, shuffle=True, num_workers=workers, persistent_workers=True, drop_last=True
)


def forever():
    while True:
        yield from loader


time_batches(forever(), seconds, lambda batch: len(batch[0]), STARTED)
