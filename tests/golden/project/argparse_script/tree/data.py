import torch


class Pictures(torch.utils.data.Dataset):
    def __init__(self, split):
        self.split = split

    def __len__(self):
        return 100

    def __getitem__(self, index):
        return torch.zeros(3), 0
