# SPDX-License-Identifier: Apache-2.0
"""Work C: windows of 60x16 over a table of a million rows."""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import images
from common import at_least, median, ratio

NAME = "C"
WHAT = "windows of 60x16 over 1,000,000 rows, batch 256, shuffled; windows per second"
OURS = "saturate, 2 workers"
FROM_PYTHON = "saturate from Python, 2 workers"
TARGETS = ["bench_loader_windows", "saturate"]


def prepare(setting):
    table = setting.cache / "table.npy"
    if not table.exists():
        subprocess.run(
            [
                setting.python,
                "-c",
                "import numpy, sys; numpy.save(sys.argv[1], "
                "numpy.random.default_rng(0).standard_normal((1_000_000, 16), dtype=numpy.float32))",
                table,
            ],
            check=True,
        )


def contenders(setting):
    native, table = setting.build / "bench_loader_windows", setting.cache / "table.npy"
    peer = [setting.python, setting.works / "peer_windows.py", table, setting.seconds]
    return [
        (FROM_PYTHON, images.from_python(setting, "C", table, setting.seconds)),
        (OURS, [native, "windows", table, 2, setting.seconds]),
        ("saturate, no workers", [native, "windows", table, 0, setting.seconds]),
        ("memcpy by hand, 2 threads", [native, "memcpy", table, 2, setting.seconds]),
        ("DataLoader, batched fetch, no workers", [*peer, "batched", 0]),
        ("DataLoader, batched fetch, 2 workers", [*peer, "batched", 2]),
        ("DataLoader, item by item, no workers", [*peer, "items", 0]),
        ("indexing by hand in PyTorch", [*peer, "by_hand", 0]),
    ]


def checks(fields):
    ours = median(fields, OURS)
    best = max((median(fields, name) for name in fields if name.startswith("DataLoader")), default=None)
    return [
        *at_least("of the C++ loader, from Python", ratio(median(fields, FROM_PYTHON), ours), 0.95),
        *at_least("times DataLoader's best", ratio(ours, best), 3.5),
        *at_least("of memcpy on 2 threads", ratio(ours, median(fields, "memcpy by hand, 2 threads")), 0.8),
    ]
