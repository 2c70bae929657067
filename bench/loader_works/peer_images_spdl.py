# SPDX-License-Identifier: Apache-2.0
"""A peer of works A and B: peer_images_spdl.py A|B FOLDER SECONDS ffmpeg|torchvision.io

Two threads either way; its own decoder needs the system's FFmpeg libraries.
"""

import math
import pathlib
import random
import sys
import time

STARTED = time.monotonic()
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import numpy
from spdl.pipeline import PipelineBuilder

from common import time_batches

work, folder, seconds, kind = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
BATCH = 64 if work == "A" else 128
paths = sorted(str(path) for path in pathlib.Path(folder).glob("*/*"))


def random_crop(width, height):
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        shape = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, width - w), random.randint(0, height - h), w, h
    side = min(width, height)
    return (width - side) // 2, (height - side) // 2, side, side


if kind == "ffmpeg":
    import spdl.io

    MEAN = numpy.array([0.485, 0.456, 0.406], numpy.float32).reshape(1, 3, 1, 1) * 255
    DEVIATION = numpy.array([0.229, 0.224, 0.225], numpy.float32).reshape(1, 3, 1, 1) * 255

    def decode(path):
        packets = spdl.io.demux_image(path)
        if work == "B":
            return spdl.io.decode_packets(packets, filter_desc="format=pix_fmts=gray")
        x, y, w, h = random_crop(packets.codec.width, packets.codec.height)
        flip = ",hflip" if random.random() < 0.5 else ""
        return spdl.io.decode_packets(
            packets,
            filter_desc=f"crop={w}:{h}:{x}:{y}:exact=1,scale=224:224:flags=bilinear{flip},format=pix_fmts=rgb24",
        )

    def collate(frames):
        images = spdl.io.to_numpy(spdl.io.convert_frames(frames))
        if work == "B":
            return (images.reshape(-1, 1, 128, 128).astype(numpy.float32) - 127.5) / 63.75
        planes = numpy.ascontiguousarray(images.transpose(0, 3, 1, 2)).astype(numpy.float32)
        return (planes - MEAN) / DEVIATION
else:
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg, decode_png, read_file
    from torchvision.transforms import v2

    torch.set_num_threads(1)
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

    def decode(path):
        content = read_file(path)
        return transform(
            decode_jpeg(content, mode=ImageReadMode.RGB)
            if work == "A"
            else decode_png(content, mode=ImageReadMode.GRAY)
        )

    def collate(images):
        return torch.stack(images)


try:
    collate([decode(path) for path in paths[:2]])  # inside the pipeline an error would only drop the sample
except RuntimeError as error:
    sys.exit(str(error)[:120])


def forever():
    epoch = 0
    while True:
        order = list(paths)
        random.Random(epoch).shuffle(order)
        epoch += 1
        pipeline = (
            PipelineBuilder()
            .add_source(order)
            .pipe(decode, concurrency=2)
            .aggregate(BATCH, drop_last=True)
            .pipe(collate, concurrency=1)
            .add_sink(3)
            .build(num_threads=2)
        )
        with pipeline.auto_stop():
            yield from pipeline.get_iterator()


time_batches(forever(), seconds, len, STARTED)
