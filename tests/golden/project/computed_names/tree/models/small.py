import torch


def make(options):
    return torch.nn.Linear(options.width, 1)


class Block:
    def __init__(self, act=None):
        self.act = act
        self.debug = False

    def forward(self, x):
        return self.act(x) if self.debug else x
