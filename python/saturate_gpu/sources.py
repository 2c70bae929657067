# SPDX-License-Identifier: Apache-2.0
"""The sources of samples. Each only describes the data; the loader process opens it."""

import array
import glob
import os


def _path(path):
    path = os.fspath(path)
    return os.path.abspath(os.fsdecode(path))


def _told_path(path):
    """Returns a path that can be sent to the loader process as text."""
    path = _path(path)
    try:
        path.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"the path {path!r} is not UTF-8: rename it, or give the files by ImageFiles(paths), which takes any name"
        ) from None
    return path


class Source:
    """Base class. has_images: transforms, dtype and cache can be used. blobs(): long
    lists sent as bytes."""

    has_images = True
    can_be_as_is = True
    can_cache = True

    def spec(self):
        raise NotImplementedError

    def blobs(self):
        return {}


class _Folder(Source):
    def __init__(self, root, layout, **other):
        self._spec = {
            "kind": "folder",
            "root": _told_path(root),
            "layout": layout,
            "input": "input",
            "target": "target",
            "table": "labels.csv",
            "points": False,
            "classes": [],
            **other,
        }

    def spec(self):
        return self._spec

    def __repr__(self):
        return f"{type(self).__name__}({self._spec['root']!r})"


class ImageFolder(_Folder):
    """Images in one folder per class, root/<class>/**/<image>. Gives images and labels (int64).

    `classes`: class names in the order of their labels; by default the folders
    found, sorted by name."""

    def __init__(self, root, classes=None):
        super().__init__(root, "classes", classes=list(classes or []))


class ImagePairs(_Folder):
    """Pairs of images, root/input/** and root/target/**, matched by path without ending. Both get
    the same crop and flips."""

    def __init__(self, root, input="input", target="target"):
        super().__init__(root, "pairs", input=input, target=target)


class ImageTable(_Folder):
    """Images with a CSV table next to them: file name, then numbers. Gives images and the numbers
    (float32).

    `points`: the numbers are x, y of points in pixels, which move with the image."""

    def __init__(self, root, table="labels.csv", points=False):
        super().__init__(root, "table", table=table, points=bool(points))


class Images(_Folder):
    """Images without labels, root/**/<image>."""

    def __init__(self, root):
        super().__init__(root, "plain")


class ImageFiles(Source):
    """Images from a list of paths, optionally with an int label for each."""

    def __init__(self, paths, labels=None, classes=None):
        self._paths = [_path(path) for path in paths]
        self._labels = None if labels is None else array.array("q", [int(label) for label in labels])
        self._classes = list(classes or [])
        if self._labels is not None and len(self._labels) != len(self._paths):
            raise ValueError(f"{len(self._labels)} labels for {len(self._paths)} paths")

    def spec(self):
        return {"kind": "files", "classes": self._classes}

    def blobs(self):
        out = {"paths": b"".join([os.fsencode(path) + b"\0" for path in self._paths])}
        if self._labels is not None:
            out["labels"] = self._labels.tobytes()
        return out

    def __repr__(self):
        return f"ImageFiles({len(self._paths)} paths)"


class TarShards(Source):
    """Images in tar files with WebDataset's names: 000123.jpg and 000123.cls are one sample.

    `paths`: tar files, folders of them, or patterns."""

    can_be_as_is = can_cache = False

    def __init__(self, paths):
        paths = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
        self._paths = []
        for path in map(_told_path, paths):
            found = [path] if os.path.exists(path) else sorted(glob.glob(path))
            self._paths += found or [path]

    def spec(self):
        return {"kind": "shards", "paths": self._paths}


class Arrays(Source):
    """Arrays from an .npy file, an .npz archive or a folder of .npy files. The first dimension is
    the sample; each array is a field."""

    has_images = can_cache = False

    def __init__(self, path):
        self._spec = {"kind": "arrays", "path": _told_path(path)}

    def spec(self):
        return self._spec


class Windows(Source):
    """Windows over the rows of a table (CSV, or a 2-D float32 .npy). Gives windows [length,
    columns] and the value of the target column `horizon` rows after the window.

    horizon=0 leaves the target out. The last validation_percent of the rows are the part
    "validation"; both parts are normalised by the training part."""

    has_images = can_cache = False

    def __init__(
        self,
        path,
        length,
        stride=1,
        horizon=1,
        target=None,
        validation_percent=20.0,
        normalise=True,
        channel=False,
        part="training",
    ):
        if part not in ("training", "validation"):
            raise ValueError(f'part={part!r}: expected "training" or "validation"')
        self._spec = {
            "kind": "windows",
            "path": _told_path(path),
            "length": int(length),
            "stride": int(stride),
            "horizon": int(horizon),
            "target": "" if target is None else str(target),
            "validation_percent": float(validation_percent),
            "normalise": bool(normalise),
            "channel": bool(channel),
            "part": part,
        }

    def spec(self):
        return self._spec


class PythonDataset:
    """The fallback for your own data set with __getitem__ and __len__: its Python code runs in
    worker processes, at Python's speed. Only order, sharding and state come from the loader."""

    def __init__(self, dataset, collate_fn=None):
        for needed in ("__getitem__", "__len__"):
            if not hasattr(dataset, needed):
                raise TypeError(
                    f"{type(dataset).__name__} has no {needed}: expected a data set with a length and numbered samples"
                )
        self.dataset, self.collate_fn = dataset, collate_fn
