import torch
from ignite.engine import Engine, Events
from torch.utils.data import DataLoader


def make_loader(cfg):
    workers = cfg.DATA.WORKERS
    return DataLoader([0] * cfg.DATA.SIZE, num_workers=workers)


def groups(cfg, model):
    params = []
    for name, value in model.named_parameters():
        params += [{"params": [value], "lr": cfg.SOLVER.LR * (2 if "bias" in name else 1)}]
    return params


def make_optimizer(cfg, model):
    return getattr(torch.optim, cfg.SOLVER.NAME)(groups(cfg, model), lr=cfg.SOLVER.LR)


def make_trainer(model, optimizer, loss_fn, device):
    def update(engine, batch):
        x, y = batch
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return Engine(update)
