# SPDX-License-Identifier: Apache-2.0
"""Converts torchvision's data sets and PyTorch's DataLoader to a Loader. Unsupported parts are
refused by name, with advice."""

import sys
import warnings

from . import transforms as T  # not the loader: `saturate run` asks refusal() in jobs that have none
from .ranks import are_shared_out, found
from .sources import ImageFiles

ENDINGS = (".jpg", ".jpeg", ".png", ".webp")


class NotKnown(ValueError):
    """The Loader does not support what was asked for."""


def _torchvision(*names):
    """Returns the classes of these names in transforms and transforms.v2, if the program has
    imported them."""
    homes = [sys.modules.get("torchvision.transforms"), sys.modules.get("torchvision.transforms.v2")]
    return tuple(getattr(home, name) for home in homes if home is not None for name in names if hasattr(home, name))


def _flat(transform):
    if transform is None:
        return []
    if type(transform) in _torchvision("Compose"):
        return [each for part in transform.transforms for each in _flat(part)]
    if isinstance(transform, (list, tuple)) or type(transform) is getattr(
        sys.modules.get("torch.nn"), "Sequential", None
    ):
        return [each for part in transform for each in _flat(part)]
    return [transform]


def _interpolation(of):
    name = getattr(of.interpolation, "value", of.interpolation)
    if name not in ("bilinear", "bicubic"):
        raise NotKnown(f"{type(of).__name__} with interpolation {name}: bilinear and bicubic are there")
    return name


def _size(of):
    size = of.size
    return list(size) if isinstance(size, (list, tuple)) else [size]


def _spread(of, name, centre):
    """Returns x of a jitter drawn from [centre - x, centre + x]; torchvision
    stores the two ends."""
    value = getattr(of, name)
    if value is None:
        return 0.0
    low, high = value
    spread = high - centre
    if abs(low - max(0.0 if centre else -0.5, centre - spread)) > 1e-9:
        raise NotKnown(
            f"ColorJitter({name}=({low}, {high})): only ranges around {centre} are there, {name}={spread:g} for example"
        )
    return spread


def _padding(of):
    padding = of.padding
    if isinstance(padding, (list, tuple)):
        if len(set(padding)) > 1:
            raise NotKnown(f"RandomCrop(padding={list(padding)}): the same on all sides is there")
        padding = padding[0]
    return padding or 0


def _fill(of):
    fill = of.fill
    if isinstance(fill, dict):
        fill = set(fill.values())
        fill = fill.pop() if len(fill) == 1 else tuple(fill)
    if isinstance(fill, (list, tuple)) and len(set(fill)) == 1:
        fill = fill[0]
    if fill is None:
        return 0
    if not isinstance(fill, (int, float)) or fill != int(fill):
        raise NotKnown(f"RandomCrop(fill={fill}): one whole number for all channels is there")
    return int(fill)


def _crop(of):
    # Without pad_if_needed torchvision raises an error for an image that is too
    # small; here it is padded.
    if of.padding_mode != "constant":
        raise NotKnown(f"RandomCrop(padding_mode={of.padding_mode!r}): \"constant\" is there")
    return T.RandomCrop(_size(of), _padding(of), _fill(of))


def _resize(of):
    if getattr(of, "max_size", None) is not None:
        raise NotKnown(f"Resize(max_size={of.max_size}) is not supported; resize to (height, width)")
    if getattr(of, "antialias", True) is False:
        raise NotKnown("Resize(antialias=False) is not supported: the loader always antialiases, as PIL does")
    size = _size(of)
    return T.Resize(size if len(size) == 2 else size[0], _interpolation(of))


def _resized_crop(of):
    if getattr(of, "antialias", True) is False:
        raise NotKnown(
            "RandomResizedCrop(antialias=False) is not supported: the loader always antialiases, as PIL does"
        )
    return T.RandomResizedCrop(_size(of), of.scale, of.ratio, _interpolation(of))


def _jitter(of):
    return T.ColorJitter(
        _spread(of, "brightness", 1), _spread(of, "contrast", 1), _spread(of, "saturation", 1), _spread(of, "hue", 0)
    )


def _grey(of):
    if of.num_output_channels != 1:
        raise NotKnown(
            "Grayscale(num_output_channels=3) is not supported; Grayscale() and images.expand(-1, 3, -1, -1) in the "
            "training loop give the same"
        )
    return T.Grayscale()


KNOWN = {
    "Resize": _resize,
    "CenterCrop": lambda of: T.CenterCrop(_size(of)),
    "RandomCrop": _crop,
    "RandomResizedCrop": _resized_crop,
    "RandomHorizontalFlip": lambda of: T.HorizontalFlip(of.p),
    "RandomVerticalFlip": lambda of: T.VerticalFlip(of.p),
    "ColorJitter": _jitter,
    "Grayscale": _grey,
    "Normalize": lambda of: T.Normalize(_list(of.mean), _list(of.std)),
}
NOTHING = ("Identity", "RGB", "ToImage", "ToPILImage", "ToPureTensor", "PILToTensor")  # only the type changes


def _list(values):
    return values.tolist() if hasattr(values, "tolist") else list(values)


class _Numbers:
    """Tracks the dtype of the result: 8 bits until a transform makes floats from 0 to 1."""

    def __init__(self, is_tensor=False):
        self.is_tensor, self.dtype = is_tensor, "uint8"

    def take(self, of):
        """Returns True if this transform only changes the type."""
        if type(of) in _torchvision("ToTensor"):
            self.is_tensor, self.dtype = True, "float32"
            return True
        if type(of) in _torchvision(*NOTHING):
            self.is_tensor = self.is_tensor or type(of).__name__ in ("ToImage", "PILToTensor")
            return True
        if type(of) in _torchvision("ToDtype", "ConvertImageDtype"):
            dtype = str(next(iter(of.dtype.values())) if isinstance(of.dtype, dict) else of.dtype).replace("torch.", "")
            scaled = getattr(of, "scale", True)
            if dtype in ("float32", "bfloat16") and scaled:
                self.dtype = dtype
            elif dtype != "uint8" or self.dtype != "uint8":
                raise NotKnown(
                    f"{type(of).__name__}({dtype}{'' if scaled else ', scale=False'}): float32 and bfloat16 with scale=True are "
                    "there, and uint8 as it is read"
                )
            return True
        return False


def transforms_of(transform):
    """Converts torchvision's transforms. Returns ours and the resulting dtype."""
    out, numbers = [], _Numbers()
    for of in _flat(transform):
        name = getattr(of, "__name__", type(of).__name__)  # functions have a name of their own
        if numbers.take(of):
            continue
        if type(of) not in _torchvision(*KNOWN):  # a derived class may do something else
            raise NotKnown(
                f"the transform {name} is not known to the loader; take it out of the Compose and apply it to the "
                "batch in the training loop, or keep the DataLoader (saturate_gpu.PythonDataset is the slow way)"
            )
        out.append(KNOWN[name](of))
    if not numbers.is_tensor:
        raise NotKnown("the transforms leave PIL images, which make no batch: ToTensor() is missing")
    try:
        T.resolved(_ordered(out))
    except ValueError as problem:
        raise NotKnown(f"these transforms in this order: {problem}") from None
    return _ordered(out), numbers.dtype


def _ordered(transforms):
    """Moves flips behind crops and resizes, which gives the same images except
    for the random draw."""
    flips = [each for each in transforms if isinstance(each, (T.HorizontalFlip, T.VerticalFlip))]
    sizes = [each for each in transforms if T.STAGE.get(type(each), 9) < 2]
    rest = [each for each in transforms if each not in flips and each not in sizes]
    first_colour = next(
        (i for i, each in enumerate(transforms) if isinstance(each, (T.ColorJitter, T.Normalize))), len(transforms)
    )
    if any(each in sizes for each in transforms[first_colour:]):
        return transforms  # refused later, by name
    return sizes + flips + rest


def _subset(dataset):
    """Returns the data set below all Subsets, and the indices that they select."""
    from torch.utils.data import Subset

    indices = None
    while type(dataset) is Subset:
        inner = _list(dataset.indices)
        indices = inner if indices is None else [inner[i] for i in indices]
        dataset = dataset.dataset
    return dataset, indices


def _check_dataset(dataset, looks=None):
    """Refuses unsupported data sets. looks: checks at most about this many of the file names."""
    folder = sys.modules.get("torchvision.datasets.folder")
    name = type(dataset).__name__
    if folder is None or not isinstance(dataset, folder.DatasetFolder):
        raise NotKnown(
            f"the data set {name} is not known to the loader: torchvision's ImageFolder, DatasetFolder and Subsets of them are; "
            f"saturate_gpu.ImageFiles(paths, labels) takes any list of images, saturate_gpu.PythonDataset(...) any data set"
        )
    if type(dataset).__getitem__ is not folder.DatasetFolder.__getitem__:
        raise NotKnown(
            f"{name} has a __getitem__ of its own, which the loader would not run; saturate_gpu.ImageFiles(paths, labels) "
            "takes the images without it"
        )
    if dataset.target_transform is not None:
        raise NotKnown(f"{name} has a target_transform; apply it to the labels in the training loop")
    # The loader decodes to RGB like these functions of torchvision.
    if dataset.loader not in (folder.default_loader, folder.pil_loader, folder.accimage_loader):
        raise NotKnown(
            f"the data set's own loader function {getattr(dataset.loader, '__name__', dataset.loader)} would not be run; "
            "with torchvision's default_loader the loader gives the same, Grayscale() makes one channel"
        )
    samples = dataset.samples
    step = max(1, len(samples) // looks) if looks else 1
    other = next((path for path, _ in samples[::step] if not path.lower().endswith(ENDINGS)), None)
    if other is not None:
        raise NotKnown(f"{other}: JPEG, PNG and WebP are there")


def from_torchvision(dataset, batch_size=1, **settings):
    """Makes a Loader from torchvision's ImageFolder, DatasetFolder or a Subset of one, with its
    transforms.

    Like torchvision it decodes JPEGs exactly and ignores their EXIF orientation. `settings` are
    arguments of Loader. Unsupported data sets and transforms raise ValueError with advice."""
    from .loader import Loader

    whole, indices = _subset(dataset)
    _check_dataset(whole)
    source = ImageFiles([path for path, _ in whole.samples], [label for _, label in whole.samples], whole.classes)
    transforms, dtype = transforms_of(whole.transform)
    settings = {"transforms": transforms, "dtype": dtype, "decode": "exact", "exif": False, "as_": "torch", **settings}
    if indices is not None:
        chosen = settings.get("subset")
        settings["subset"] = indices if chosen is None else [indices[i] for i in chosen]
    return Loader(source, batch_size, **settings)


def _sampler(loader, settings):
    from torch.utils.data import (
        DistributedSampler,
        RandomSampler,
        SequentialSampler,
        SubsetRandomSampler,
        WeightedRandomSampler,
    )

    sampler, kind = loader.sampler, type(loader.sampler)
    size = len(loader.dataset)
    if kind is SequentialSampler:
        settings["shuffle"] = False
    elif kind is RandomSampler:
        if sampler.replacement or sampler.num_samples != size:
            raise NotKnown(
                "RandomSampler with replacement or num_samples does not exist; weights=[1] * len(dataset) draws with replacement"
            )
        settings["shuffle"] = True
    elif kind is SubsetRandomSampler:
        settings.update(shuffle=True, subset=_list(sampler.indices))
    elif kind is WeightedRandomSampler:
        if not sampler.replacement or sampler.num_samples != size:
            raise NotKnown("WeightedRandomSampler is there with replacement and num_samples=len(dataset)")
        settings["weights"] = _list(sampler.weights)
    elif kind is DistributedSampler:
        settings.update(shuffle=sampler.shuffle, seed=sampler.seed, rank=sampler.rank, world=sampler.num_replicas)
    else:
        raise NotKnown(
            f"the sampler {kind.__name__} is not known to the loader; shuffle=, weights= and subset= of Loader are there"
        )


def _settings(loader):
    from torch.utils.data import BatchSampler, DataLoader, default_collate

    if not isinstance(loader, DataLoader):
        raise TypeError(f"{type(loader).__name__} is not a PyTorch DataLoader; from_torchvision() takes a data set")
    if loader.batch_sampler is None or type(loader.batch_sampler) is not BatchSampler:
        raise NotKnown("a DataLoader without batches or with a batch_sampler of its own is not known to the loader")
    if loader.collate_fn is not default_collate:
        raise NotKnown(
            f"the collate_fn {getattr(loader.collate_fn, '__name__', loader.collate_fn)} would not be run; do in the training loop "
            "what it does, and take the default"
        )
    settings = {"drop_last": loader.drop_last, "pin_memory": True if loader.pin_memory else None}
    _sampler(loader, settings)
    if "rank" not in settings:
        _ranks(loader, settings)
    return settings


def _ranks(loader, settings):
    """Sets the seed, and rank 0 of 1, for a DataLoader without a DistributedSampler."""
    import torch

    settings.update(
        rank=0, world=1, seed=torch.initial_seed() if loader.generator is None else loader.generator.initial_seed()
    )


def like(loader, changes):
    settings = {**_settings(loader), **changes}
    if "rank" in changes or "world" in changes:
        settings.update(rank=changes.get("rank"), world=changes.get("world"))
    elif (
        settings["world"] == 1
        and not are_shared_out()
        and (settings.get("shuffle") or "weights" in settings)
        and found()[1] > 1
    ):
        warnings.warn(
            f"this DataLoader has no DistributedSampler: each of the {found()[1]} processes gets all samples; "
            "Loader.like(loader, rank=..., world=...) gives each its part",
            stacklevel=3,
        )
    out = from_torchvision(loader.dataset, loader.batch_size, **settings)
    # For scripts that use len(loader.dataset), and for Lightning, which looks at the samplers.
    out.dataset, out.sampler, out.batch_sampler = loader.dataset, loader.sampler, loader.batch_sampler
    if type(loader.sampler).__name__ == "DistributedSampler":
        out._follows, out._followed = loader.sampler, loader.sampler.epoch
        out.set_epoch(loader.sampler.epoch)
    else:
        out._may_be_shared_out, out._has_own_seed = "rank" not in changes, "seed" in changes
    return out


LOOKS = 10_000


def refusal(loader):
    """Returns in one line why like() would refuse this DataLoader, or None. Opens no
    file, changes nothing."""
    try:
        _settings(loader)
        whole, _ = _subset(loader.dataset)
        _check_dataset(whole, LOOKS)
        transforms_of(whole.transform)
    except NotKnown as problem:
        return str(problem)
    return None
