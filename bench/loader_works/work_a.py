# SPDX-License-Identifier: Apache-2.0
"""Work A: photographs to batches for a classifier."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import images
from common import at_least, at_most, median, ratio

NAME = "A"
WHAT = "3,200 JPEGs of about 500x375, random resized crop 224, flip, normalise, float32, batch 64; images per second"
OURS = "saturate, 2 workers"
FROM_PYTHON = "saturate from Python, 2 workers"
TARGETS = ["bench_loader_images", "saturate"]


def prepare(setting):
    images.make_images(setting)
    images.make_shards(setting)
    images.read_all(setting, NAME)


def contenders(setting):
    native, folder = setting.build / "bench_loader_images", setting.cache / "images/A/train"
    return [
        (FROM_PYTHON, images.from_python(setting, "A", folder, images.seconds(setting))),
        (OURS, [native, "photos", folder, "loader", 2, images.seconds(setting)]),
        ("saturate, 1 worker", [native, "photos", folder, "loader", 1, images.seconds(setting)]),
        (
            "saturate, 2 workers, tar shards",
            [native, "photos", setting.cache / "shards/A", "tar", 2, images.seconds(setting)],
        ),
        ("bare loop, region decode, 2 threads", [native, "photos", folder, "bare", 2, images.seconds(setting)]),
        ("bare loop, full decode, 2 threads", [native, "photos", folder, "exact", 2, images.seconds(setting)]),
        *images.peers(setting, "A"),
    ]


def checks(fields):
    ours = median(fields, OURS)
    torch = [name for name in fields if name.startswith("PyTorch")]
    best = max(torch, key=lambda name: median(fields, name), default=None)
    others = [median(fields, name) for name in fields if not name.startswith(("saturate", "bare"))]
    return [
        *at_least("of the C++ loader, from Python", ratio(median(fields, FROM_PYTHON), ours), 0.95),
        *at_least("times PyTorch's best, from Python", ratio(median(fields, FROM_PYTHON), median(fields, best)), 2.5),
        *at_least("times PyTorch's best", ratio(ours, median(fields, best)), 2.2),
        *at_least("times the best peer", ratio(ours, max(others, default=None)), 1),
        *at_least("of the bare loop", ratio(ours, median(fields, "bare loop, region decode, 2 threads")), 0.9),
        *at_most("seconds to the first batch", median(fields, OURS, "first_seconds"), 0.3),
        *at_most(
            "of the memory of PyTorch's best",
            ratio(median(fields, OURS, "memory_bytes"), median(fields, best, "memory_bytes")),
            0.25,
        ),
    ]
