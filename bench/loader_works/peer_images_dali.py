# SPDX-License-Identifier: Apache-2.0
"""A peer of works A and B: peer_images_dali.py A|B FOLDER SECONDS fused|separate

fused decodes only the crop, separate the whole image before it crops; both on the CPU, 2 threads.
"""

import pathlib
import sys
import time

STARTED = time.monotonic()
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from nvidia.dali import fn, pipeline_def, types

from common import time_batches

work, folder, seconds, kind = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
BATCH = 64 if work == "A" else 128
SHAPE = {"random_aspect_ratio": [3 / 4, 4 / 3], "random_area": [0.08, 1.0]}


@pipeline_def(batch_size=BATCH, num_threads=2, device_id=None, prefetch_queue_depth=2, seed=7)
def photos():
    files, labels = fn.readers.file(file_root=folder, random_shuffle=True, name="files", seed=1)
    if kind == "fused":
        images = fn.resize(fn.decoders.image_random_crop(files, device="cpu", **SHAPE), size=(224, 224), antialias=True)
    else:
        images = fn.random_resized_crop(
            fn.decoders.image(files, device="cpu"), size=(224, 224), antialias=True, **SHAPE
        )
    return fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mirror=fn.random.coin_flip(),
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
        std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
    ), labels


@pipeline_def(batch_size=BATCH, num_threads=2, device_id=None, prefetch_queue_depth=2, seed=7)
def greys():
    files, labels = fn.readers.file(file_root=folder, random_shuffle=True, name="files", seed=1)
    images = fn.decoders.image(files, device="cpu", output_type=types.GRAY)
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", mean=[127.5], std=[63.75]), labels


pipeline = photos() if work == "A" else greys()
pipeline.build()


def forever():
    while True:
        yield pipeline.run()[0].as_array()


time_batches(forever(), seconds, len, STARTED)
