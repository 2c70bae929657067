# SPDX-License-Identifier: Apache-2.0
"""Work B: small grey images, where everything but decoding shows."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import images
from common import at_least, median, ratio

NAME = "B"
WHAT = "12,800 grey PNGs of 128x128, normalise, float32, batch 128; images per second"
OURS = "saturate, 2 workers"
FROM_PYTHON = "saturate from Python, 2 workers"
TARGETS = ["bench_loader_images", "saturate"]


def prepare(setting):
    images.make_images(setting)
    images.make_shards(setting)
    images.read_all(setting, NAME)


def contenders(setting):
    native, folder = setting.build / "bench_loader_images", setting.cache / "images/B/train"
    return [
        (FROM_PYTHON, images.from_python(setting, "B", folder, images.seconds(setting))),
        (OURS, [native, "greys", folder, "loader", 2, images.seconds(setting)]),
        ("bare loop, 2 threads", [native, "greys", folder, "bare", 2, images.seconds(setting)]),
        *images.peers(setting, "B"),
    ]


def checks(fields):
    ours = median(fields, OURS)
    best = max((median(fields, name) for name in fields if name.startswith("PyTorch")), default=None)
    others = [median(fields, name) for name in fields if not name.startswith(("saturate", "bare"))]
    return [
        *at_least("of the C++ loader, from Python", ratio(median(fields, FROM_PYTHON), ours), 0.95),
        *at_least("times PyTorch's best", ratio(ours, best), 3),
        *at_least("times the best peer", ratio(ours, max(others, default=None)), 1),
    ]
