import argparse

import torch
from torch.utils.data import DataLoader as Loader

from data import Pictures


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", "--learning-rate", type=float, default=0.01)
    parser.add_argument("-b", "--batch-size", default=16, type=int)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--amp", type=bool, default=False)
    parser.add_argument("--betas", type=tuple, default=(0.9, 0.999))
    parser.add_argument("--momentum", type=float, default=0.9, help="never read")
    parser.add_argument("--out", default="runs")
    return parser.parse_args()


def accuracy(scores, labels):
    return (scores.argmax(1) == labels).float().mean().item()


def main():
    args = options()
    print(args)
    args.out = "results"
    device = torch.device("cuda")
    train_set = Pictures("train")
    train_loader = Loader(train_set,
                          batch_size=args.batch_size,
                          shuffle=True,
                          num_workers=args.workers  # a comment and no comma
                          )
    val_loader = Loader(Pictures("val"), batch_size=2 * args.batch_size, num_workers=2,)
    model = torch.nn.Linear(3, 2).to(device)
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=args.betas)
    for epoch in range(args.epochs):
        total = 0.0
        for step, (pictures, labels) in enumerate(train_loader):
            pictures, labels = pictures.to(device), labels.to(device)
            with torch.autocast("cuda", enabled=args.amp):
                scores = model(pictures)
                loss = criterion(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            if not torch.isfinite(loss):
                raise ValueError("loss is %f" % loss.item())
            if step % 50 == 0:
                print(step, loss.item(), accuracy(scores, labels))
        evaluate(model, val_loader, device)
        print(total)
        torch.save(model.state_dict(), args.out + "/model.pt")


@torch.no_grad()
def evaluate(model, loader, device):
    right = 0
    for pictures, labels in loader:
        right += (model(pictures.to(device)).argmax(1).cpu() == labels).sum().item()
    return right


if __name__ == "__main__":
    main()
