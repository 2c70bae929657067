# SPDX-License-Identifier: Apache-2.0
"""Makes the images of bench/loader: make_images.py FOLDER [--photos N] [--greys N].

FOLDER/A/train/cNN/*.jpg: photo-like colour images of about 500x375 and 60 to 110 KB (noise with the
spectrum of photographs, shapes with edges, sensor noise; quality 90, 4:2:0). FOLDER/B/train/cNN/*.png:
grey images of 128x128. Runs in a Python with numpy and Pillow; the same files on every machine.
"""

import argparse
import multiprocessing
import pathlib

import numpy
from PIL import Image, ImageDraw

FOLDER = None


def field(rng, height, width, slope):
    """Noise whose amplitude falls with frequency to the power of `slope`, as in photographs."""
    fy, fx = numpy.fft.fftfreq(height)[:, None], numpy.fft.rfftfreq(width)[None, :]
    frequency = numpy.sqrt(fy * fy + fx * fx)
    frequency[0, 0] = 1
    amplitude = frequency**-slope
    amplitude[0, 0] = 0
    phase = rng.normal(size=amplitude.shape) + 1j * rng.normal(size=amplitude.shape)
    noise = numpy.fft.irfft2(amplitude * phase, s=(height, width))
    return noise / noise.std()


def clipped(values):
    return Image.fromarray(numpy.clip(values, 0, 255).astype(numpy.uint8))


def photo(index):
    rng = numpy.random.default_rng(1000 + index)
    width, height = (500, 375) if rng.random() < 0.75 else (375, 500)
    light = field(rng, height, width, rng.uniform(1.15, 1.45)) * 48
    warm, cold = field(rng, height, width, 1.8), field(rng, height, width, 1.8)
    colours = numpy.stack([light + warm * 22, light + cold * 10, light - warm * 12 - cold * 18], -1)
    image = clipped(colours + rng.uniform(90, 150, 3))
    draw = ImageDraw.Draw(image)
    for _ in range(rng.integers(4, 14)):
        x, y, radius = int(rng.integers(0, width)), int(rng.integers(0, height)), int(rng.integers(8, 90))
        colour = tuple(int(value) for value in rng.integers(0, 255, 3))
        kind = rng.integers(0, 3)
        if kind == 0:
            draw.ellipse([x - radius, y - radius, x + radius, y + radius // 2 + 1], fill=colour)
        elif kind == 1:
            draw.rectangle([x - radius, y - radius // 2, x + radius, y + radius], fill=colour)
        else:
            end = int(rng.integers(0, width)), int(rng.integers(0, height))
            draw.line([x, y, *end], fill=colour, width=int(rng.integers(1, 9)))
    values = numpy.asarray(image).astype(numpy.float32)
    values += (field(rng, height, width, 0.9) * rng.uniform(8, 14))[..., None]
    values += rng.normal(size=values.shape) * rng.uniform(1.0, 3.5)
    clipped(values).save(FOLDER / f"A/train/c{index % 10:02d}/{index:05d}.jpg", quality=90)


def grey(index):
    rng = numpy.random.default_rng(9_000_000 + index)
    image = clipped(field(rng, 128, 128, 1.5) * 40 + 120)
    draw = ImageDraw.Draw(image)
    for _ in range(rng.integers(1, 5)):
        (x, y), radius = rng.integers(0, 128, 2).tolist(), int(rng.integers(4, 30))
        draw.ellipse([x - radius, y - radius, x + radius, y + radius], fill=int(rng.integers(0, 255)))
    values = numpy.asarray(image).astype(numpy.float32) + rng.normal(size=(128, 128)) * 2
    clipped(values).save(FOLDER / f"B/train/c{index % 10:02d}/{index:05d}.png")


def main():
    global FOLDER
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--photos", type=int, default=3200)
    parser.add_argument("--greys", type=int, default=12800)
    options = parser.parse_args()
    FOLDER = options.folder
    for work in "AB":
        for number in range(10):
            (FOLDER / work / "train" / f"c{number:02d}").mkdir(parents=True, exist_ok=True)
    with multiprocessing.Pool() as pool:
        pool.map(photo, range(options.photos), chunksize=25)
        pool.map(grey, range(options.greys), chunksize=100)


if __name__ == "__main__":
    main()
