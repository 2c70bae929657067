import torch
from torch.utils.data import DataLoader

from options import args
from other import evaluate_all


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.measure = False

    @staticmethod
    def fold(x, parts):
        return x.reshape(int(parts), -1)

    def forward(self, x):
        if not self.training and self.measure:
            print(x.mean().item())
        return self.fold(self.layer(x), 2)


class Trainer:
    def __init__(self, loaders):
        self.steps = 0
        self.loader = loaders[0]
        self.net = Net().cuda()
        name = args.optimizer.lower().split("_")[0]
        if name == "sgd":
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=1)
        elif name == "adamw":
            self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1)

    def epoch(self):
        first = True
        for x in self.loader:
            x = x.to("cuda")
            loss = self.net(x).sum()
            if self.steps > 10:
                loss = loss * 2
                print("late", loss.item())
            if not first:
                print("not the first", loss.item())
            first = False
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.steps += 1
            index = x.cpu()
            array = index.numpy()
            for value in index.tolist():
                print(value, array)


def make_loaders(sizes):
    loaders = []
    for size in sizes:
        loader = DataLoader(list(range(100)), batch_size=size * args.scale)
        loaders.append(loader)
    return loaders


def worker(rank):
    args.rank = rank
    if args.warm:
        print("warm")
        return
    trainer = Trainer(make_loaders([4, 8]))
    for number in range(3):
        trainer.epoch()


def choose(kind="plain"):
    if kind == "plain":
        return worker(0)
    loader = DataLoader([1], batch_size=1)
    for x in loader:
        print(evaluate_all(x))


if __name__ == "__main__":
    choose()
