# SPDX-License-Identifier: Apache-2.0
"""What torchvision's v2 transforms make of the cases of transform_test.cpp.

torchvision_transforms.py CASES.json FOLDER: writes <case>.f32 (float images of 0 to 1 through
antialiased resizing) and <case>.u8 (8-bit images through it), planes of channel, row, column.
"""

import json
import pathlib
import sys

import torch
from torchvision.io import ImageReadMode, decode_image
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2 import functional as F


def transform(image, case):
    mode = InterpolationMode.BICUBIC if case["bicubic"] else InterpolationMode.BILINEAR
    if case["shorter"]:
        image = F.resize(image, [case["shorter"]], mode, antialias=True)
        image = F.center_crop(image, [case["height"], case["width"]])
    elif case["pad_crop"]:
        left, top = case["left"], case["top"]
        image = F.pad(image, [60, 60, 60, 60], fill=case["pad_value"] / (1 if image.dtype == torch.uint8 else 255))
        image = F.crop(image, top + 60, left + 60, case["height"], case["width"])
    else:
        image = F.resized_crop(
            image,
            case["top"],
            case["left"],
            case["crop_height"],
            case["crop_width"],
            [case["height"], case["width"]],
            mode,
            antialias=True,
        )
    if case["bicubic"] and image.dtype != torch.uint8:
        image = image.clamp(0, 1)  # as on 8 bits, where the pixels come from
    if case["mirror"]:
        image = F.horizontal_flip(image)
    if case["upend"]:
        image = F.vertical_flip(image)
    for name, factor in case["jitter"]:
        image = getattr(F, f"adjust_{name}")(image, factor)
    return image


def main():
    cases, folder = json.loads(pathlib.Path(sys.argv[1]).read_text()), pathlib.Path(sys.argv[2])
    for case in cases:
        mode = ImageReadMode.GRAY if case["channels"] == 1 else ImageReadMode.RGB
        image = decode_image(case["file"], mode)
        floats = transform(image.float() / 255, case)
        if case["mean"]:
            floats = F.normalize(floats, case["mean"], case["deviation"])
        (folder / f"{case['name']}.f32").write_bytes(floats.contiguous().numpy().tobytes())
        (folder / f"{case['name']}.u8").write_bytes(transform(image, case).contiguous().numpy().tobytes())


main()
