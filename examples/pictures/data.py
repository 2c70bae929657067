# SPDX-License-Identifier: Apache-2.0
"""Pictures as files: made once, read and turned again for every sample."""
import os
import random
import struct
import time
import zlib

import torch
from torch.utils.data import Dataset

KINDS, COUNT, SIDE = 10, 2000, 96
LATENCY = 0.004  # seconds until a file comes: stands for a network disk


def make_pictures(folder):
    """Writes compressed pictures, KINDS of them, from a fixed seed."""
    draw = random.Random(1)
    os.makedirs(folder)
    for number in range(COUNT):
        kind = number % KINDS
        noise = draw.randbytes(SIDE * SIDE)
        rows = bytes((x * (kind + 1) + y * (kind + 3) + noise[y * SIDE + x] % 24) % 256
                     for y in range(SIDE) for x in range(SIDE))
        with open(os.path.join(folder, "%d_%05d.picture" % (kind, number)), "wb") as file:
            file.write(struct.pack("<HH", SIDE, kind) + zlib.compress(rows, 9))


class Pictures(Dataset):
    def __init__(self, folder, size):
        self.files = sorted(os.path.join(folder, name) for name in os.listdir(folder))
        self.size = size

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        time.sleep(LATENCY)
        with open(self.files[index], "rb") as file:
            content = file.read()
        side, kind = struct.unpack("<HH", content[:4])
        grey = torch.tensor(list(zlib.decompress(content[4:])), dtype=torch.float32).view(1, 1, side, side)
        grey = torch.nn.functional.interpolate(grey, (self.size, self.size), mode="bilinear", antialias=True)
        return (grey[0] / 255).expand(3, -1, -1).contiguous(), kind
