# SPDX-License-Identifier: Apache-2.0
# Checks whether saturate_gpu.Loader.like would accept a DataLoader of the script. Uses that
# package's own rules, which come with the program (translation/), so that the script's process
# imports nothing else and nothing in it changes.
import sys


def answer(loader):
    """Returns {"takes", "why" (not), "is_installed"}, or None if the data set is not one
    of torchvision's."""
    if "torchvision" not in sys.modules:
        return None
    folder = sys.modules.get("torchvision.datasets.folder")
    dataset = loader.dataset
    while type(dataset).__name__ == "Subset":
        dataset = dataset.dataset
    if folder is None or not isinstance(dataset, folder.DatasetFolder):
        return None
    from importlib.util import find_spec

    from .translation.like import refusal

    why = refusal(loader)
    return {"takes": why is None, "why": why, "is_installed": find_spec("saturate_gpu") is not None}
