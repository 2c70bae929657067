# SPDX-License-Identifier: Apache-2.0
"""A peer of works A and B: peer_images_webdataset.py A|B SHARDS SECONDS"""

import pathlib
import sys
import time

STARTED = time.monotonic()
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import torch
import webdataset
from torchvision.io import ImageReadMode, decode_jpeg, decode_png
from torchvision.transforms import v2

from common import time_batches

work, folder, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
if work == "A":
    transform = v2.Compose(
        [
            v2.RandomResizedCrop(224, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        ]
    )
else:
    transform = v2.Compose([v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5], [0.25])])


def decoded(content):
    data = torch.frombuffer(bytearray(content), dtype=torch.uint8)
    return transform(
        decode_jpeg(data, mode=ImageReadMode.RGB) if work == "A" else decode_png(data, mode=ImageReadMode.GRAY)
    )


shards = sorted(str(path) for path in pathlib.Path(folder).glob("*.tar"))
dataset = (
    webdataset.WebDataset(shards, shardshuffle=len(shards), seed=1, empty_check=False)
    .shuffle(1000)
    .to_tuple("jpg" if work == "A" else "png", "cls")
    .map_tuple(decoded, int)
    .batched(64 if work == "A" else 128, partial=False)
)
loader = webdataset.WebLoader(dataset, batch_size=None, num_workers=2, persistent_workers=True)


def forever():
    while True:
        yield from loader


time_batches(forever(), seconds, lambda batch: len(batch[0]), STARTED)
