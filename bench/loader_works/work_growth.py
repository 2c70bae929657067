# SPDX-License-Identifier: Apache-2.0
"""Cost as work grows: samples in the source, epochs, workers."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from common import at_least, at_most, median, ratio

NAME = "growth"
WHAT = "computed samples, 2 workers; samples per second as their number grows, memory over 50 epochs, 1 to 2 workers"
OURS = "1,000,000 samples"
TARGETS = ["bench_loader_windows"]
SIZES = {
    "1,000 samples": 1_000,
    "10,000 samples": 10_000,
    "100,000 samples": 100_000,
    OURS: 1_000_000,
    "100,000,000 samples": 100_000_000,
}


def prepare(setting):
    pass


def contenders(setting):
    native = setting.build / "bench_loader_windows"
    return [
        *((name, [native, "growth", size, setting.seconds]) for name, size in SIZES.items()),
        ("50 epochs", [native, "epochs", 50]),
        ("200 us each, 1 worker", [native, "scaling", 1, setting.seconds]),
        ("200 us each, 2 workers", [native, "scaling", 2, setting.seconds]),
    ]


def checks(fields):
    memory = ratio(median(fields, "50 epochs", "after_last_bytes"), median(fields, "50 epochs", "after_first_bytes"))
    return [
        *at_least("1,000,000 samples to 1,000", ratio(median(fields, OURS), median(fields, "1,000 samples")), 0.9),
        *at_most("memory after 50 epochs to after 1", memory, 1.05),
        *at_least(
            "2 workers to 1",
            ratio(median(fields, "200 us each, 2 workers"), median(fields, "200 us each, 1 worker")),
            1.8,
        ),
    ]
