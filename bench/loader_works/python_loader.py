# SPDX-License-Identifier: Apache-2.0
"""Our loader from Python, as a contender of works A, B and C: python_loader.py A|B|C PATH SECONDS WORKERS"""

import pathlib
import sys
import time

STARTED = time.monotonic()
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import torch  # batches are tensors where it is imported

from common import time_batches
from saturate_gpu import ImageFolder, Loader, Windows, transforms as T

work, path, seconds, workers = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
if work == "A":
    source, size = ImageFolder(path), 64
    transforms = [
        T.RandomResizedCrop(224),
        T.HorizontalFlip(),
        T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ]
elif work == "B":
    source, size = ImageFolder(path), 128
    transforms = [T.Grayscale(), T.Resize((128, 128)), T.Normalize([0.5], [0.25])]
else:
    source, size, transforms = Windows(path, 60, horizon=0, validation_percent=0, normalise=False), 256, None
loader = Loader(source, size, shuffle=True, drop_last=True, transforms=transforms, workers=workers)


def forever():
    while True:
        yield from loader


time_batches(forever(), seconds, len if work == "C" else lambda batch: len(batch[0]), STARTED)
