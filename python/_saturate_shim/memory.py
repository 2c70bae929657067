# SPDX-License-Identifier: Apache-2.0
# Data sets whose samples are rows of tensors in memory: for them workers only cost, and a batch can be cut out at once.


def tensors_of(torch, dataset):
    """(tensors, index maps from the outside in), or None."""
    data = torch.utils.data
    maps = []
    while type(dataset) is data.Subset:
        maps.append(dataset.indices)
        dataset = dataset.dataset
    if type(dataset) is not data.TensorDataset:
        return None
    return dataset.tensors, maps
