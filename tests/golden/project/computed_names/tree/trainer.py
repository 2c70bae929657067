import torch


class Base:
    def fit(self):
        for epoch in range(3):
            self.epoch(epoch)

    def epoch(self, number):
        raise NotImplementedError


class Trainer(Base):
    def __init__(self, args, model, data):
        self.args = args
        self.model = model.cuda()
        self.loader = data.train
        self.optimizer = {"adam": torch.optim.Adam(model.parameters()), "sgd": torch.optim.SGD(model.parameters(), lr=1)}["adam"]

    def prepare(self, *parts):
        return [part.to("cuda") for part in parts]

    def epoch(self, number):
        for x, y in self.loader:
            x, y = self.prepare(x, y)
            loss = (self.model(x) - y).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
