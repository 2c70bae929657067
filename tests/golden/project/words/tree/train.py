import argparse
import random

import torch

SEED = 1
VAL_BATCH_SIZE = 4
random.seed(SEED)


class Config:
    width = 8
    depth = 2
    height = 3


def worker_init_fn(worker):
    random.seed(worker)


def truth(text):
    if text.lower() in ["yes", "true", 1]:
        return True
    return False


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=["fast", "slow"], default="slow")
    parser.add_argument("--scheduler", choices=["cosine", "steps", "none"], default="cosine")
    parser.add_argument("--steps", default="10,20", type=str)
    parser.add_argument("--classes", default=10, type=int)
    parser.add_argument("--max_steps", default=1000, type=int)
    parser.add_argument("--epochs", default=5, type=int)
    parser.add_argument("--extra", default=True, type=truth)
    parser.add_argument("--kept", default=1, type=int)
    parser.add_argument("--listed", default=1, type=int)
    return parser.parse_args()


def main():
    args = get_args()
    shape = Config()
    print(shape.width, shape.depth)
    folder = "run_" + str(args.max_steps) + ("_x" if args.extra else "")
    args.classes = {"fast": 3, "slow": 4}[args.mode]
    if args.kept > 3:
        args.kept = 3
    for name in ["listed"]:
        print(getattr(args, name))
    model = torch.nn.Linear(args.classes, args.kept).cuda()
    if args.mode == "slow":
        optimizer = torch.optim.SGD(model.parameters(), lr=1)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=1)
    if args.scheduler == "cosine":
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    elif args.scheduler == "steps":
        scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [int(s) for s in args.steps.split(",")])
    else:
        scheduler = None
    max_steps = args.epochs * 100
    for step in range(max_steps):
        loss = model(torch.zeros(1, 3).cuda()).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if args.scheduler == "cosine":
            scheduler.step()
    print(folder)


if __name__ == "__main__":
    main()
