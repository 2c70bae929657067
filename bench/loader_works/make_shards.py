# SPDX-License-Identifier: Apache-2.0
"""Packs a folder of images in classes into tar shards: make_shards.py IMAGES SHARDS.

A sample is two files of one stem, 000000.jpg and 000000.cls, as WebDataset has it; shuffled once.
"""

import io
import pathlib
import random
import sys
import tarfile

images, shards = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
paths = sorted(path for path in images.glob("*/*") if path.is_file())
random.Random(0).shuffle(paths)
classes = sorted({path.parent.name for path in paths})
shards.mkdir(parents=True, exist_ok=True)
per_shard = -(-len(paths) // 8)
for number in range(8):
    with tarfile.open(shards / f"shard-{number:04d}.tar", "w") as tar:
        for index in range(number * per_shard, min(len(paths), (number + 1) * per_shard)):
            path = paths[index]
            label = str(classes.index(path.parent.name)).encode()
            for ending, content in ((path.suffix, path.read_bytes()), (".cls", label)):
                entry = tarfile.TarInfo(f"{index:06d}{ending}")
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
