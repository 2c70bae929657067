# SPDX-License-Identifier: Apache-2.0
# Data sets whose samples are rows of tensors in memory: workers only cost time, and one index
# operation makes a batch.


def tensors_of(torch, dataset):
    """Returns (tensors, index maps from the outermost Subset inwards), or None."""
    data = torch.utils.data
    maps = []
    while type(dataset) is data.Subset:
        maps.append(dataset.indices)
        dataset = dataset.dataset
    if type(dataset) is not data.TensorDataset:
        return None
    return dataset.tensors, maps
