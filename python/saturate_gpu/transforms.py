# SPDX-License-Identifier: Apache-2.0
"""What happens to an image between file and batch. Names and meanings are torchvision's; everything
runs in the loader process.

Use them in this order: one that sets the size, then flips, ColorJitter, Normalize. Grayscale may be
anywhere.
"""

import math


def _pair(size, what):
    if isinstance(size, (list, tuple)):
        if len(size) == 1:
            size = (size[0], size[0])
        height, width = size
    else:
        height = width = size
    if int(height) != height or int(width) != width or height < 1 or width < 1:
        raise ValueError(f"{what}: size {size}; expected whole numbers of at least 1")
    return int(height), int(width)


class Transform:
    """Base class of the transforms."""

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in vars(self).items())})"


class Resize(Transform):
    """Resizes to (height, width). A single number sets the shorter side; CenterCrop or RandomCrop
    must then follow."""

    def __init__(self, size, interpolation="bilinear"):
        is_short = not isinstance(size, (list, tuple)) or len(size) == 1
        self.size, self.is_short, self.interpolation = _pair(size, "Resize"), is_short, interpolation


class CenterCrop(Transform):
    """Crops the middle; images that are too small are padded."""

    def __init__(self, size):
        self.size = _pair(size, "CenterCrop")


class RandomCrop(Transform):
    """Crops at a random place, after adding `padding` pixels of `fill` (0 to 255) on every side.
    Images that are still too small are padded further."""

    def __init__(self, size, padding=0, fill=0):
        self.size, self.padding, self.fill = _pair(size, "RandomCrop"), int(padding), int(fill)


class RandomResizedCrop(Transform):
    """Crops a part of random area (`scale`) and aspect ratio (`ratio`), and resizes it to `size`."""

    def __init__(self, size, scale=(0.08, 1.0), ratio=(3 / 4, 4 / 3), interpolation="bilinear"):
        self.size, self.scale, self.ratio = _pair(size, "RandomResizedCrop"), tuple(scale), tuple(ratio)
        self.interpolation = interpolation


class HorizontalFlip(Transform):
    """Flips left and right with probability `p`."""

    def __init__(self, p=0.5):
        self.p = float(p)


class VerticalFlip(Transform):
    """Flips top and bottom with probability `p`."""

    def __init__(self, p=0.5):
        self.p = float(p)


RandomHorizontalFlip, RandomVerticalFlip = HorizontalFlip, VerticalFlip


class ColorJitter(Transform):
    """Changes brightness, contrast and saturation by random factors from [1 - x, 1 + x], and the
    hue by a random shift from [-hue, hue]."""

    def __init__(self, brightness=0, contrast=0, saturation=0, hue=0):
        self.brightness, self.contrast, self.saturation, self.hue = map(float, (brightness, contrast, saturation, hue))


class Grayscale(Transform):
    """Makes images of one channel."""


class Normalize(Transform):
    """Computes (pixel / 255 - mean) / std for each channel. Without it pixels are 0 to 1."""

    def __init__(self, mean, std):
        self.mean, self.std = [float(value) for value in mean], [float(value) for value in std]


def _defaults():
    return {
        "fit": "as_is",
        "width": 1,
        "height": 1,
        "interpolation": "bilinear",
        "resize_to": 1,
        "resize_width": 0,
        "resize_height": 0,
        "crop_anywhere": False,
        "area_low": 0.08,
        "area_high": 1.0,
        "aspect_low": 3 / 4,
        "aspect_high": 4 / 3,
        "pad": 0,
        "pad_value": 0,
        "flip_horizontal": 0.0,
        "flip_vertical": 0.0,
        "brightness": 0.0,
        "contrast": 0.0,
        "saturation": 0.0,
        "hue": 0.0,
        "mean": [],
        "std": [],
        "channels": 3,
    }


# The allowed order: sizes, flips, colours, numbers.
STAGE = {
    Resize: 0,
    CenterCrop: 1,
    RandomCrop: 1,
    RandomResizedCrop: 1,
    HorizontalFlip: 2,
    VerticalFlip: 2,
    ColorJitter: 3,
    Normalize: 4,
}


def resolved(transforms):
    """Converts the list to one description for the loader process. Raises ValueError if the order
    is not possible."""
    out, stage, resize, seen = _defaults(), -1, None, set()
    if isinstance(transforms, Transform) or not hasattr(transforms, "__iter__"):
        raise TypeError(
            f"transforms={transforms!r}: expected a list of saturate_gpu.transforms; from_torchvision() takes torchvision's"
        )
    for transform in transforms:
        kind = type(transform)
        if kind is Grayscale:
            out["channels"] = 1
            continue
        if kind not in STAGE:
            raise TypeError(
                f"{transform!r} is not one of saturate_gpu.transforms; from_torchvision() takes torchvision's"
            )
        if STAGE[kind] < stage:
            raise ValueError(f"{kind.__name__} comes too late: sizes come first, then flips, ColorJitter and Normalize")
        if kind in seen or (STAGE[kind] == 1 and stage == 1):
            raise ValueError(
                f"{kind.__name__} appears once too often: there can be one resize, one crop and one of each other kind"
            )
        stage = max(stage, STAGE[kind])
        seen.add(kind)
        resize = _add(out, transform, resize)
    if resize is not None and resize.is_short and out["fit"] == "as_is":
        raise ValueError(
            f"Resize({resize.size[0]}) leaves images of different shapes; Resize((height, width)), or a "
            "CenterCrop after it"
        )
    for name in ("mean", "std"):
        if len(out[name]) == 1:  # one value for all channels, as in torchvision
            out[name] = out[name] * out["channels"]
    if out["channels"] == 1 and (len(out["mean"]) > 1 or len(out["std"]) > 1):
        raise ValueError("Normalize has several channels, Grayscale leaves one")
    return out


def _add(out, transform, resize):
    kind = type(transform)
    if kind is Resize:
        out["interpolation"] = transform.interpolation
        if not transform.is_short:
            out.update(fit="stretch", height=transform.size[0], width=transform.size[1])
        return transform
    if kind in (CenterCrop, RandomCrop):
        out["height"], out["width"] = transform.size
        anywhere = kind is RandomCrop
        padding = transform.padding if anywhere else 0
        if resize is None:
            out.update(
                fit="random_crop" if anywhere else "centre_crop",
                pad=padding,
                pad_value=transform.fill if anywhere else 0,
            )
        elif padding:
            raise ValueError(
                "RandomCrop with padding after Resize is not supported: leave the padding out, or resize with "
                "RandomResizedCrop"
            )
        elif resize.is_short:
            out.update(fit="shorter_side", resize_to=resize.size[0], crop_anywhere=anywhere)
        else:
            out.update(
                fit="resized_sides", resize_height=resize.size[0], resize_width=resize.size[1], crop_anywhere=anywhere
            )
    elif kind is RandomResizedCrop:
        if resize is not None:
            raise ValueError("RandomResizedCrop after Resize: leave the Resize out, the crop makes the size")
        out.update(
            fit="random_resized_crop",
            height=transform.size[0],
            width=transform.size[1],
            interpolation=transform.interpolation,
            area_low=float(transform.scale[0]),
            area_high=float(transform.scale[1]),
            aspect_low=float(transform.ratio[0]),
            aspect_high=float(transform.ratio[1]),
        )
    elif kind in (HorizontalFlip, VerticalFlip):
        if not 0 <= transform.p <= 1 or math.isnan(transform.p):
            raise ValueError(f"{transform!r}: p is a probability, 0 to 1")
        out["flip_horizontal" if kind is HorizontalFlip else "flip_vertical"] = transform.p
    elif kind is ColorJitter:
        out.update(vars(transform))
    else:
        out.update(mean=transform.mean, std=transform.std)
    return resize
