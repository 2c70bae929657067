# SPDX-License-Identifier: Apache-2.0
"""The Python package of `saturate`, which shows why a GPU is idle, fixes it, and proves it.

saturate_gpu.Loader is its data loader (docs/loader.md)."""

_HOMES = {
    "Loader": "loader",
    "LoaderError": "errors",
    "LoaderProcessDied": "errors",
    "from_torchvision": "like",
    **dict.fromkeys(
        [
            "ImageFolder",
            "ImagePairs",
            "ImageTable",
            "Images",
            "ImageFiles",
            "TarShards",
            "Arrays",
            "Windows",
            "PythonDataset",
        ],
        "sources",
    ),
}
__all__ = [*_HOMES, "transforms"]


def __getattr__(name):
    import importlib

    if name == "transforms":
        return importlib.import_module(".transforms", __name__)
    if name not in _HOMES:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    return getattr(importlib.import_module("." + _HOMES[name], __name__), name)
