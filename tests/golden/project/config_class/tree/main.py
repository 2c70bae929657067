import argparse

import torch
from torch.utils.data import DataLoader

from settings import Manager


class Trainer:
    def __init__(self, config, loader):
        self.config = config
        self.loader = loader
        self.model = torch.nn.Linear(2, 2).cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=config["lr"])
        if config.get("compile_model", False):
            self.model = torch.compile(self.model)

    def train_epoch(self):
        losses = []
        for batch in self.loader:
            self.optimizer.zero_grad()
            loss = self.model(batch.cuda(non_blocking=True)).sum()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return sum(losses)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    config = Manager(parser.parse_args().config).as_dict()
    loader = DataLoader([torch.zeros(2)] * 10, batch_size=config["batch_size"], num_workers=config["num_workers"],
                        pin_memory=config.get("pin_memory", False))
    trainer = Trainer(config, loader)
    for epoch in range(3):
        print(trainer.train_epoch())


if __name__ == "__main__":
    main()
